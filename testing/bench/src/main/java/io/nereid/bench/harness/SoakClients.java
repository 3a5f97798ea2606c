// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench.harness;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The clients of the soak besides the load generator: callers of a Python model whose worker processes are killed, a
 * client that loads and unloads a model, clients that leave before their response, and clients that send and read slowly.
 * Each is a thread; the counts are thread-safe.
 */
public final class SoakClients implements AutoCloseable {
    private static final Pattern PID = Pattern.compile("\"data\":\\[(\\d+)\\]");
    private static final String BEGUN = "before it responded";

    private final ServerProcess server;
    private final String pythonBody;
    private final String body;
    private final AtomicBoolean ended = new AtomicBoolean();
    private final List<Thread> threads = new ArrayList<>();
    private final Map<String, AtomicLong> failures = new ConcurrentHashMap<>();
    /** The workers that have responded and were not killed. */
    private final Set<Long> serving = ConcurrentHashMap.newKeySet();

    private final AtomicLong python = new AtomicLong();
    private final AtomicLong inKilled = new AtomicLong();
    private final AtomicLong kills = new AtomicLong();
    private final AtomicLong transitions = new AtomicLong();
    private final AtomicLong slow = new AtomicLong();
    private final AtomicLong cancelled = new AtomicLong();

    /**
     * @param body a request to the model {@code simple}, of one line
     * @param pythonBody a request to the Python model {@code py}
     */
    public SoakClients(ServerProcess server, String body, String pythonBody) {
        this.server = server;
        this.body = body;
        this.pythonBody = pythonBody;
    }

    /** What a client does again and again. */
    private interface Turn {
        void run() throws IOException, InterruptedException;
    }

    /** Starts all clients. */
    public void start() {
        for (int i = 0; i < 6; i++) {
            HttpClient client = HttpClient.newHttpClient();
            again("python", 0, () -> callPython(client));
        }
        Random random = new Random(20261124);
        again("kill", 1500, () -> kill(random));
        HttpClient operator = HttpClient.newHttpClient();
        again("transition", 1000, () -> {
            transition(operator, "load");
            transition(operator, "unload");
        });
        again("cancelled", 20, this::cancel);
        for (int i = 0; i < 4; i++) {
            again("slow", 50, this::slowBody);
        }
        again("slow reader", 200, this::slowReader);
    }

    private void again(String name, long pauseMillis, Turn turn) {
        Thread thread = new Thread(
                () -> {
                    while (!ended.get()) {
                        try {
                            turn.run();
                        } catch (IOException e) {
                            if (!ended.get()) {
                                failed(name + ": " + e);
                            }
                        } catch (InterruptedException e) {
                            return;
                        }
                        LockSupport.parkNanos(Math.max(1, pauseMillis) * 1_000_000);
                    }
                },
                "soak " + name);
        thread.setDaemon(true);
        threads.add(thread);
        thread.start();
    }

    private void failed(String how) {
        String kind = how.replaceAll("[0-9]{2,}", "N");
        failures.computeIfAbsent(kind.length() > 300 ? kind.substring(0, 300) : kind, k -> new AtomicLong())
                .incrementAndGet();
    }

    private static HttpRequest post(String url, String body) {
        return HttpRequest.newBuilder(URI.create(url))
                .timeout(Duration.ofSeconds(60))
                .POST(HttpRequest.BodyPublishers.ofString(body))
                .build();
    }

    private void callPython(HttpClient client) throws IOException, InterruptedException {
        HttpResponse<String> reply =
                client.send(post(server.url("/v2/models/py/infer"), pythonBody), HttpResponse.BodyHandlers.ofString());
        python.incrementAndGet();
        if (reply.statusCode() == 503 && reply.body().contains(BEGUN)) {
            inKilled.incrementAndGet();
        } else if (reply.statusCode() == 200) {
            Matcher pid = PID.matcher(reply.body());
            if (pid.find()) {
                serving.add(Long.parseLong(pid.group(1)));
            }
        } else {
            failed("python: " + reply.statusCode() + " " + reply.body());
        }
    }

    /**
     * Kills a worker that has responded. A process that is killed while it starts, again and again, is a model that cannot
     * be started; its requests fail by design.
     */
    private void kill(Random random) {
        List<Long> pids = List.copyOf(serving);
        if (!pids.isEmpty()) {
            long pid = pids.get(random.nextInt(pids.size()));
            serving.remove(pid);
            if (ProcessHandle.of(pid).map(ProcessHandle::destroyForcibly).orElse(false)) {
                kills.incrementAndGet();
            }
        }
    }

    private void transition(HttpClient client, String what) throws IOException, InterruptedException {
        HttpResponse<String> reply = client.send(
                post(server.url("/v2/repository/models/iris/" + what), ""), HttpResponse.BodyHandlers.ofString());
        transitions.incrementAndGet();
        if (reply.statusCode() != 200) {
            failed(what + ": " + reply.statusCode() + " " + reply.body());
        }
    }

    private Socket connected() throws IOException {
        Socket socket = new Socket(InetAddress.getLoopbackAddress(), server.port());
        socket.setSoTimeout(60_000);
        return socket;
    }

    private String head(int length, boolean close) {
        return "POST /v2/models/simple/infer HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: "
                + length + (close ? "\r\nConnection: close" : "") + "\r\n\r\n";
    }

    /** One client leaves in the middle of its body, one before the response. */
    private void cancel() throws IOException {
        byte[] bytes = body.getBytes(StandardCharsets.UTF_8);
        for (int length : new int[] {bytes.length / 2, bytes.length}) {
            try (Socket socket = connected()) {
                OutputStream out = socket.getOutputStream();
                out.write(head(bytes.length, false).getBytes(StandardCharsets.US_ASCII));
                out.write(bytes, 0, length);
                out.flush();
                socket.setSoLinger(true, 0);
            }
            cancelled.incrementAndGet();
        }
    }

    /** A body in twenty parts, over two seconds. */
    private void slowBody() throws IOException {
        byte[] bytes = body.getBytes(StandardCharsets.UTF_8);
        try (Socket socket = connected()) {
            OutputStream out = socket.getOutputStream();
            out.write(head(bytes.length, true).getBytes(StandardCharsets.US_ASCII));
            int part = bytes.length / 20 + 1;
            for (int from = 0; from < bytes.length; from += part) {
                out.write(bytes, from, Math.min(part, bytes.length - from));
                out.flush();
                LockSupport.parkNanos(100_000_000);
            }
            String answer = new String(socket.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
            slow.incrementAndGet();
            if (!answer.startsWith("HTTP/1.1 200")) {
                failed("slow: " + answer.lines().findFirst().orElse("no response"));
            }
        }
    }

    /** Twenty requests at once, whose responses are read in small parts. */
    private void slowReader() throws IOException {
        String request = head(body.getBytes(StandardCharsets.UTF_8).length, false) + body;
        try (Socket socket = connected()) {
            socket.getOutputStream().write(request.repeat(20).getBytes(StandardCharsets.UTF_8));
            socket.getOutputStream().flush();
            InputStream in = socket.getInputStream();
            StringBuilder answers = new StringBuilder();
            byte[] some = new byte[64];
            int count = 0;
            while (count < 20) {
                int n = in.read(some);
                if (n < 0) {
                    break;
                }
                answers.append(new String(some, 0, n, StandardCharsets.ISO_8859_1));
                count = answers.toString().split("HTTP/1\\.1 200", -1).length - 1;
                LockSupport.parkNanos(5_000_000);
            }
            slow.addAndGet(count);
            if (count < 20) {
                failed("slow reader: " + count + " of 20 responses");
            }
        }
    }

    @Override
    public void close() {
        end();
    }

    /** Ends the clients and waits for them. */
    public void end() {
        ended.set(true);
        for (Thread thread : threads) {
            try {
                thread.join(30_000);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                return;
            }
        }
    }

    /** The failures that must not be, by text, with their numbers. */
    public Map<String, AtomicLong> failures() {
        return failures;
    }

    /** More requests failed in killed workers than ran in them: each runs one request at a time. */
    public boolean tooManyInKilled() {
        return inKilled.get() > kills.get();
    }

    /** The counts, for the table. */
    public String summary() {
        return python + " Python requests, " + inKilled + " of them in " + kills + " killed workers, " + transitions
                + " loads and unloads, " + cancelled + " cancelled and " + slow + " slow requests, "
                + failures.values().stream().mapToLong(AtomicLong::get).sum() + " failed";
    }
}
