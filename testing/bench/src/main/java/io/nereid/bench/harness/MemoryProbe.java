// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench.harness;

import java.io.File;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/**
 * Samples what a server holds: live heap, pooled direct memory, resident memory, file descriptors and threads, and checks
 * that none of it grows. A full garbage collection precedes each sample, where the JDK has {@code jcmd}. Confined to one
 * thread.
 */
public final class MemoryProbe {
    /** What each figure may grow: caches of the allocator, buffers of connections that are open at the moment. */
    private static final Map<String, Double> SLACK = slack();

    private final ServerProcess server;
    private final HttpClient client = HttpClient.newHttpClient();
    private final Map<String, List<Double>> samples = new LinkedHashMap<>();

    public MemoryProbe(ServerProcess server) {
        this.server = server;
        SLACK.keySet().forEach(name -> samples.put(name, new ArrayList<>()));
    }

    private static Map<String, Double> slack() {
        Map<String, Double> slack = new LinkedHashMap<>();
        slack.put("heap MB", 8.0);
        slack.put("direct MB", 16.0);
        slack.put("resident MB", 32.0);
        slack.put("fds", 24.0);
        slack.put("threads", 12.0);
        return slack;
    }

    /** Takes a sample. */
    public void sample() throws IOException, InterruptedException {
        collect();
        String metrics = client.send(
                        HttpRequest.newBuilder(URI.create(server.url("/metrics")))
                                .build(),
                        HttpResponse.BodyHandlers.ofString())
                .body();
        add("heap MB", metric(metrics, "nereid_heap_used_bytes") / 1e6);
        add("direct MB", metric(metrics, "nereid_direct_memory_bytes") / 1e6);
        add("resident MB", ProcessStatistics.residentBytes(server.pid()) / 1e6);
        add("fds", entries("fd"));
        add("threads", entries("task"));
    }

    private void add(String name, double value) {
        samples.computeIfAbsent(name, n -> new ArrayList<>()).add(value);
    }

    private double entries(String what) throws IOException {
        try (var all = Files.list(Path.of("/proc/" + server.pid(), what))) {
            return all.count();
        }
    }

    private static double metric(String page, String name) throws IOException {
        return page.lines()
                .filter(line -> line.startsWith(name + " "))
                .mapToDouble(line -> Double.parseDouble(line.substring(name.length() + 1)))
                .findFirst()
                .orElseThrow(() -> new IOException("/metrics has no " + name));
    }

    private void collect() throws IOException, InterruptedException {
        File jcmd = new File(System.getProperty("java.home"), "bin/jcmd");
        if (jcmd.canExecute()) {
            Process process = new ProcessBuilder(jcmd.getPath(), Long.toString(server.pid()), "GC.run")
                    .redirectErrorStream(true)
                    .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                    .start();
            if (!process.waitFor(30, TimeUnit.SECONDS)) {
                process.destroyForcibly();
            }
        }
    }

    /** The median of the third quarter of the samples and of the fourth; the first half is start and compilation. */
    private static double[] ends(List<Double> values) {
        int n = values.size();
        return new double[] {
            median(values.subList(n / 2, Math.max(n / 2 + 1, n * 3 / 4))), median(values.subList(n * 3 / 4, n))
        };
    }

    private static double median(List<Double> values) {
        return BenchmarkResult.median(values.stream().mapToDouble(v -> v).toArray());
    }

    /** The figures that have grown by more than their slack. */
    public List<String> grown() {
        List<String> grown = new ArrayList<>();
        samples.forEach((name, values) -> {
            double[] ends = ends(values);
            // Written so that a missing sample counts as grown.
            if (!(ends[1] - ends[0] <= SLACK.getOrDefault(name, 0.0))) {
                grown.add(String.format(
                        Locale.ROOT, "%s grew from %.0f to %.0f: %s", name, ends[0], ends[1], rounded(values)));
            }
        });
        return grown;
    }

    private static List<Long> rounded(List<Double> values) {
        return values.stream().map(Math::round).toList();
    }

    /** All figures at their ends, for the table. */
    public String summary() {
        List<String> all = new ArrayList<>();
        samples.forEach((name, values) -> {
            double[] ends = ends(values);
            all.add(String.format(Locale.ROOT, "%s %.0f, then %.0f", name, ends[0], ends[1]));
        });
        return String.join("; ", all);
    }

    /** All samples, for the log. */
    public List<String> lines() {
        List<String> lines = new ArrayList<>();
        samples.forEach((name, values) -> lines.add(name + ": " + rounded(values)));
        return lines;
    }
}
