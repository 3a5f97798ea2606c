// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench.harness;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Closed-loop load by the machine's {@code wrk} or {@code h2load}, on one thread. Immutable.
 *
 * @param grpc whether the load is gRPC, by h2load; else HTTP/1.1, by wrk
 * @param connections connections
 * @param streams concurrent requests on each connection; 1 with wrk
 * @param path the path of the URL
 * @param body the file of the request's body; for gRPC with the message's prefix. With {@link #TURN} in its name there is one
 *     file for each number
 * @param headers of HTTP requests, name and value in turn
 * @param turns how many numbers replace {@link #TURN} in the path and the body's name, one request after another; with wrk only
 */
public record LoadGenerator(
        boolean grpc, int connections, int streams, String path, Path body, List<String> headers, int turns) {
    /** The placeholder in a path for a number from 0 up. */
    static final String TURN = "@";

    private static final Pattern WRK_DONE = Pattern.compile("(?m)^\\s*(\\d+) requests in ([0-9.]+)(m?s|m)");
    private static final Pattern WRK_BAD = Pattern.compile("Non-2xx or 3xx responses: (\\d+)");
    private static final Pattern WRK_SOCKETS =
            Pattern.compile("Socket errors: connect (\\d+), read (\\d+), write (\\d+), timeout (\\d+)");
    private static final Pattern H2_DONE = Pattern.compile(
            "requests: \\d+ total, \\d+ started, \\d+ done, (\\d+) succeeded, (\\d+) failed, (\\d+) errored");

    /**
     * The outcome of a run. Times are in milliseconds.
     *
     * @param requests number of completed requests
     * @param failed number of rejected, failed and unanswered requests
     */
    public record Outcome(long requests, long failed, double seconds, double p50, double p99) {}

    /** Creates a load on a single path. */
    public LoadGenerator(boolean grpc, int connections, int streams, String path, Path body, List<String> headers) {
        this(grpc, connections, streams, path, body, headers, 0);
    }

    /** Returns this load, spread over a number of paths. */
    LoadGenerator inTurns(int count) {
        return new LoadGenerator(grpc, connections, streams, path, body, headers, count);
    }

    /** Returns this load with one more header. */
    public LoadGenerator with(String name, String value) {
        List<String> more = new ArrayList<>(headers);
        more.add(name);
        more.add(value);
        return new LoadGenerator(grpc, connections, streams, path, body, more, turns);
    }

    /** Returns the load generator's program. */
    public String program() {
        return grpc ? "h2load" : "wrk";
    }

    public static boolean onPath(String program) {
        return Arrays.stream(System.getenv().getOrDefault("PATH", "").split(":"))
                .anyMatch(dir -> Files.isExecutable(Path.of(dir, program)));
    }

    public Outcome run(ServerProcess server, double seconds, Path scratch) throws IOException, InterruptedException {
        return grpc ? h2load(server, seconds, scratch) : wrk(server, seconds, scratch);
    }

    private Outcome wrk(ServerProcess server, double seconds, Path scratch) throws IOException, InterruptedException {
        StringBuilder lua = new StringBuilder("local function read(name) local f=io.open(name,'rb')"
                + " local text=f:read('*a') f:close() return text end\nwrk.method='POST'\n");
        String file = body.toString();
        boolean many = turns > 0 && file.contains(TURN);
        if (!many) {
            lua.append("wrk.body=read('" + file + "')\n");
        }
        for (int i = 0; i < headers.size(); i += 2) {
            lua.append("wrk.headers['" + headers.get(i) + "']='" + headers.get(i + 1) + "'\n");
        }
        if (turns > 0) {
            // The requests are prepared before the run, so that many paths cost the load generator no more than one.
            lua.append("local all={} local n=0\ninit=function(args) for i=0," + (turns - 1)
                    + " do all[i]=wrk.format(nil,string.gsub('" + path + "','" + TURN + "',tostring(i)),nil,"
                    + (many ? "read((string.gsub('" + file + "','" + TURN + "',tostring(i))))" : "nil") + ") end end\n"
                    + "request=function() n=(n+1)%" + turns + " return all[n] end\n");
        }
        Path script = scratch.resolve("post.lua");
        Files.writeString(script, lua);
        String text = output(List.of(
                "wrk",
                "-t1",
                "-c" + connections,
                "-d" + Math.max(1, Math.round(seconds)) + "s",
                "--timeout",
                "20s",
                "--latency",
                "-s",
                script.toString(),
                server.url(path)));
        Matcher done = WRK_DONE.matcher(text);
        if (!done.find()) {
            throw new IOException("unexpected output of wrk:\n" + text);
        }
        double unit = done.group(3).equals("m") ? 60 : done.group(3).equals("ms") ? 1e-3 : 1;
        long failed = 0;
        Matcher bad = WRK_BAD.matcher(text);
        if (bad.find()) {
            failed += Long.parseLong(bad.group(1));
        }
        Matcher sockets = WRK_SOCKETS.matcher(text);
        if (sockets.find()) {
            for (int i = 1; i <= 4; i++) {
                failed += Long.parseLong(sockets.group(i));
            }
        }
        return new Outcome(
                Long.parseLong(done.group(1)),
                failed,
                Double.parseDouble(done.group(2)) * unit,
                wrkPercentile(text, 50),
                wrkPercentile(text, 99));
    }

    private static double wrkPercentile(String text, int percent) {
        Matcher m = Pattern.compile("(?m)^\\s+" + percent + "%\\s+([0-9.]+)(us|ms|s|m)\\s*$")
                .matcher(text);
        if (!m.find()) {
            return Double.NaN;
        }
        double value = Double.parseDouble(m.group(1));
        return switch (m.group(2)) {
            case "us" -> value / 1e3;
            case "s" -> value * 1e3;
            case "m" -> value * 6e4;
            default -> value;
        };
    }

    private Outcome h2load(ServerProcess server, double seconds, Path scratch)
            throws IOException, InterruptedException {
        Path log = scratch.resolve("h2load.log");
        Files.deleteIfExists(log);
        List<String> command = new ArrayList<>(List.of(
                "h2load",
                "-t1",
                "-c" + connections,
                "-m" + streams,
                "-D" + Math.max(1, Math.round(seconds)),
                "-w",
                "24",
                "-W",
                "26",
                "-d",
                body.toString(),
                "--log-file=" + log));
        for (int i = 0; i < headers.size(); i += 2) {
            command.add("-H");
            command.add(headers.get(i) + ": " + headers.get(i + 1));
        }
        command.add(server.url(path));
        String text = output(command);
        Matcher done = H2_DONE.matcher(text);
        if (!done.find()) {
            throw new IOException("unexpected output of h2load:\n" + text);
        }
        long[] micros = latencies(log);
        return new Outcome(
                Long.parseLong(done.group(1)),
                Long.parseLong(done.group(2)) + Long.parseLong(done.group(3)),
                Math.max(1, Math.round(seconds)),
                percentile(micros, 50) / 1e3,
                percentile(micros, 99) / 1e3);
    }

    private static long[] latencies(Path log) throws IOException {
        long[] all = new long[1 << 12];
        int n = 0;
        try (BufferedReader lines = Files.newBufferedReader(log, StandardCharsets.US_ASCII)) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                if (n == all.length) {
                    all = Arrays.copyOf(all, n * 2);
                }
                int tab = line.lastIndexOf('\t');
                if (tab > 0) {
                    all[n++] = Long.parseLong(line.substring(tab + 1));
                }
            }
        }
        Files.delete(log);
        long[] sorted = Arrays.copyOf(all, n);
        Arrays.sort(sorted);
        return sorted;
    }

    private static double percentile(long[] sorted, int percent) {
        return sorted.length == 0 ? Double.NaN : sorted[Math.min(sorted.length - 1, sorted.length * percent / 100)];
    }

    private static String output(List<String> command) throws IOException, InterruptedException {
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        String text = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        process.waitFor();
        return text;
    }
}
