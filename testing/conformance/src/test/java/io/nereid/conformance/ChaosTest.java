// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.conformance;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * The program with the control plane is killed with SIGKILL at random moments, also while it starts, under the load of
 * writers and of inference requests, while its clock is moved by up to a day and some downloads never end. After every
 * start, each resource has its last acknowledged state, or that of the change whose acknowledgement was lost; the services
 * are ready and respond; and no request fails until the next kill.
 *
 * <p>{@code NEREID_CHAOS_KILLS} is the number of kills (6); {@code testing/chaos.sh} runs more.
 */
class ChaosTest {
    private static final int KILLS = Integer.parseInt(System.getenv().getOrDefault("NEREID_CHAOS_KILLS", "6"));
    private static final int WRITERS = 3;
    private static final int NAMES = 4;
    private static final int SERVICES = 3;
    private static final String MAPS = "/api/v1/namespaces/default/configmaps";
    private static final String INFERENCE = "/apis/serving.kserve.io/v1beta1/namespaces/default/inferenceservices";
    private static final String INPUT =
            "{\"inputs\":[{\"name\":\"INPUT0\",\"shape\":[1,4],\"datatype\":\"FP32\",\"data\":[1,2,3,4]}]}";

    @TempDir
    Path directory;

    private final ObjectMapper json = new ObjectMapper();
    private final Random random = new Random(20261124);
    /** A new one for each server: an old one may still hold connections to the server that was killed. */
    private volatile HttpClient client = client();

    private final AtomicBoolean ended = new AtomicBoolean();
    /** Whether the server is verified and not yet killed; requests that begin and end in such a time must succeed. */
    private final AtomicLong upSince = new AtomicLong();

    private final ConcurrentLinkedQueue<String> failures = new ConcurrentLinkedQueue<>();
    private final AtomicLong inferences = new AtomicLong();
    private final AtomicLong changes = new AtomicLong();
    private final List<Thread> threads = new ArrayList<>();
    private final CountDownLatch hanging = new CountDownLatch(1);
    private final List<Writer> writers = new ArrayList<>();
    private HttpServer store;
    private ExecutorService storeThreads;
    private Path clock;
    private Path stepClock;
    private int port;
    private int control;
    private Process server;

    @BeforeEach
    void start() throws Exception {
        byte[] model = Files.readAllBytes(
                BuiltDistribution.top().resolve("backends/onnx/src/test/resources/models/identity_fp32.onnx"));
        store = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 64);
        storeThreads = Executors.newCachedThreadPool();
        store.setExecutor(storeThreads);
        store.createContext("/good", exchange -> answer(exchange, model, model.length));
        store.createContext("/half", exchange -> answer(exchange, model, model.length / 2));
        store.createContext("/silent", exchange -> hang());
        store.start();
        port = freePort();
        control = freePort();
        clock = Files.write(directory.resolve("clock"), new byte[8]);
        stepClock = stepClock();
    }

    @AfterEach
    void stop() throws Exception {
        ended.set(true);
        upSince.set(0);
        hanging.countDown();
        if (server != null) {
            server.destroyForcibly().waitFor();
        }
        for (Thread thread : threads) {
            thread.join(20_000);
        }
        store.stop(0);
        storeThreads.shutdownNow();
    }

    private static HttpClient client() {
        return HttpClient.newBuilder()
                .version(HttpClient.Version.HTTP_1_1)
                .connectTimeout(Duration.ofSeconds(5))
                .build();
    }

    private static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return socket.getLocalPort();
        }
    }

    /** The library that moves the clock, or null where there is no compiler. */
    private Path stepClock() throws Exception {
        Path library = directory.resolve("step-clock.so");
        Path source = BuiltDistribution.top().resolve("testing/conformance/step-clock.c");
        try {
            Process compiler = new ProcessBuilder(
                            "cc", "-O2", "-shared", "-fPIC", "-o", library.toString(), source.toString(), "-ldl")
                    .redirectErrorStream(true)
                    .redirectOutput(directory.resolve("cc.log").toFile())
                    .start();
            return compiler.waitFor() == 0 ? library : null;
        } catch (IOException e) {
            return null;
        }
    }

    private void hang() {
        try {
            hanging.await();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private void answer(HttpExchange exchange, byte[] bytes, int sent) throws IOException {
        try (exchange) {
            exchange.getResponseHeaders().set("ETag", "\"" + bytes.length + "\"");
            exchange.getResponseHeaders().set("Content-Type", "application/octet-stream");
            if (exchange.getRequestMethod().equals("HEAD")) {
                exchange.getResponseHeaders().set("Content-Length", Integer.toString(bytes.length));
                exchange.sendResponseHeaders(200, -1);
                return;
            }
            exchange.sendResponseHeaders(200, bytes.length);
            exchange.getResponseBody().write(bytes, 0, sent);
            exchange.getResponseBody().flush();
            if (sent < bytes.length) {
                hang();
            }
        }
    }

    // ------------------------------------------------------------------ the server

    private void launch() throws IOException {
        List<String> command = new ArrayList<>(ServerProcess.program());
        command.addAll(List.of(
                "serve",
                Files.createDirectories(directory.resolve("repository")).toString(),
                "--port=" + port,
                "--control",
                "--control-port=" + control,
                "--control-directory=" + directory.resolve("control"),
                "--model-cache=" + directory.resolve("cache")));
        ProcessBuilder builder = new ProcessBuilder(command)
                .redirectErrorStream(true)
                .redirectOutput(ProcessBuilder.Redirect.appendTo(log().toFile()));
        if (stepClock != null) {
            builder.environment().put("LD_PRELOAD", stepClock.toString());
            builder.environment().put("NEREID_STEP_CLOCK", clock.toString());
        }
        client = client();
        server = builder.start();
    }

    private Path log() {
        return directory.resolve("server.log");
    }

    private void kill() throws InterruptedException {
        upSince.set(0);
        server.toHandle().destroyForcibly();
        server.waitFor();
    }

    /** Moves the clock by up to a day in either direction. */
    private long step() throws IOException {
        long seconds = random.nextInt(2 * 86_400) - 86_400L;
        try (RandomAccessFile file = new RandomAccessFile(clock.toFile(), "rw")) {
            file.write(ByteBuffer.allocate(8)
                    .order(ByteOrder.nativeOrder())
                    .putLong(seconds)
                    .array());
        }
        return seconds;
    }

    private HttpResponse<String> send(String method, int at, String path, String body)
            throws IOException, InterruptedException {
        return client.send(
                HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + at + path))
                        .timeout(Duration.ofSeconds(30))
                        .header("Content-Type", "application/json")
                        .method(
                                method,
                                body.isEmpty()
                                        ? HttpRequest.BodyPublishers.noBody()
                                        : HttpRequest.BodyPublishers.ofString(body))
                        .build(),
                HttpResponse.BodyHandlers.ofString());
    }

    private interface Condition {
        boolean holds() throws IOException, InterruptedException;
    }

    private void await(String what, Condition condition) throws Exception {
        long due = System.nanoTime() + TimeUnit.SECONDS.toNanos(120);
        while (true) {
            try {
                if (condition.holds()) {
                    return;
                }
            } catch (IOException e) {
                assertThat(server.isAlive())
                        .as("%s: the server ended by itself:%n%s", what, tail())
                        .isTrue();
            }
            if (System.nanoTime() - due > 0) {
                throw new AssertionError("not within 120 s: " + what + "\n" + tail());
            }
            LockSupport.parkNanos(20_000_000);
        }
    }

    private String tail() {
        try {
            List<String> lines = Files.readAllLines(log());
            return String.join("\n", lines.subList(Math.max(0, lines.size() - 60), lines.size()));
        } catch (IOException e) {
            return e.toString();
        }
    }

    // ------------------------------------------------------------------ the load

    /** Changes resources that it alone owns, one after another, and remembers what was acknowledged. */
    private final class Writer {
        final int number;
        final Random choice;
        /** By name: the value that was acknowledged; absent for a resource that does not exist. */
        final Map<String, Integer> acknowledged = new TreeMap<>();

        String inDoubt;
        /** The value of the change in doubt; -1 for a deletion. */
        int inDoubtValue;

        int next;

        Writer(int number) {
            this.number = number;
            this.choice = new Random(number);
        }

        synchronized void change() throws InterruptedException {
            if (upSince.get() == 0 || inDoubt != null) {
                return;
            }
            String name = "w" + number + "-" + choice.nextInt(NAMES);
            boolean exists = acknowledged.containsKey(name);
            boolean delete = exists && choice.nextInt(5) == 0;
            int value = delete ? -1 : ++next;
            inDoubt = name;
            inDoubtValue = value;
            try {
                HttpResponse<String> reply = delete
                        ? send("DELETE", control, MAPS + "/" + name, "")
                        : exists
                                ? send("PUT", control, MAPS + "/" + name, map(name, value))
                                : send("POST", control, MAPS, map(name, value));
                if (reply.statusCode() / 100 != 2) {
                    failures.add("change of " + name + ": " + reply.statusCode() + " " + reply.body());
                    return;
                }
                acknowledge(name, value);
                inDoubt = null;
                changes.incrementAndGet();
            } catch (IOException e) {
                // The server was killed; whether the change was stored is found out after the next start.
                if (upSince.get() != 0 && server.isAlive()) {
                    failures.add("change of " + name + ": " + e);
                }
            }
        }

        private void acknowledge(String name, int value) {
            if (value < 0) {
                acknowledged.remove(name);
            } else {
                acknowledged.put(name, value);
            }
        }

        /** Compares with what the server has, and takes over the outcome of the change in doubt. */
        synchronized void verify(Map<String, Integer> stored, String when) {
            for (int i = 0; i < NAMES; i++) {
                String name = "w" + number + "-" + i;
                Integer expected = acknowledged.get(name);
                Integer found = stored.get(name);
                if (name.equals(inDoubt)) {
                    Integer other = inDoubtValue < 0 ? null : (Integer) inDoubtValue;
                    assertThat(found).as("%s: %s", when, name).isIn(expected, other);
                    acknowledge(name, found == null ? -1 : found);
                } else {
                    assertThat(found).as("%s: %s", when, name).isEqualTo(expected);
                }
            }
            inDoubt = null;
        }
    }

    private static String map(String name, int value) {
        return "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"" + name
                + "\",\"namespace\":\"default\"},\"data\":{\"value\":\"" + value + "\"}}";
    }

    private void thread(String name, Condition turn) {
        Thread thread = new Thread(
                () -> {
                    try {
                        while (!ended.get()) {
                            if (!turn.holds()) {
                                LockSupport.parkNanos(5_000_000);
                            }
                        }
                    } catch (IOException e) {
                        failures.add(name + ": " + e);
                    } catch (InterruptedException e) {
                        Thread.currentThread().interrupt();
                    }
                },
                name);
        threads.add(thread);
        thread.start();
    }

    private HttpResponse<String> infer(int service) throws IOException, InterruptedException {
        String name = "good-" + service;
        return send("POST", port, "/serving/default/" + name + "/v2/models/" + name + "/infer", INPUT);
    }

    /** An inference request in a time in which the server is up; false if it is not. */
    private boolean inference(int service) throws InterruptedException {
        long up = upSince.get();
        if (up == 0) {
            return false;
        }
        String problem = null;
        try {
            HttpResponse<String> reply = infer(service);
            problem = reply.statusCode() == 200 ? null : reply.statusCode() + " " + reply.body();
        } catch (IOException e) {
            problem = e.toString();
        }
        if (upSince.get() == up) {
            inferences.incrementAndGet();
            if (problem != null) {
                failures.add("inference on good-" + service + ": " + problem);
            }
        }
        return true;
    }

    private void create(String name, String where) throws Exception {
        String uri = "http://127.0.0.1:" + store.getAddress().getPort() + "/" + where + "/model.onnx";
        HttpResponse<String> reply = send(
                "POST",
                control,
                INFERENCE,
                "{\"apiVersion\":\"serving.kserve.io/v1beta1\",\"kind\":\"InferenceService\",\"metadata\":{\"name\":\""
                        + name + "\",\"namespace\":\"default\"},\"spec\":{\"predictor\":{\"model\":{\"modelFormat\":"
                        + "{\"name\":\"onnx\"},\"protocolVersion\":\"v2\",\"storageUri\":\"" + uri + "\"}}}}");
        assertThat(reply.statusCode()).as(reply.body()).isEqualTo(201);
    }

    // ------------------------------------------------------------------ the test

    private Map<String, Integer> stored() throws Exception {
        JsonNode list = json.readTree(send("GET", control, MAPS, "").body());
        Map<String, Integer> stored = new TreeMap<>();
        for (JsonNode item : list.path("items")) {
            stored.put(
                    item.at("/metadata/name").asText(), item.at("/data/value").asInt());
        }
        return stored;
    }

    private void verify(String when) throws Exception {
        await(
                when + ": the control API answers",
                () -> send("GET", control, MAPS, "").statusCode() == 200);
        Map<String, Integer> stored = stored();
        for (Writer writer : writers) {
            writer.verify(stored, when);
        }
        List<String> services = new ArrayList<>();
        for (JsonNode item :
                json.readTree(send("GET", control, INFERENCE, "").body()).path("items")) {
            services.add(item.at("/metadata/name").asText());
        }
        assertThat(services).as(when).containsExactlyInAnyOrder("good-0", "good-1", "good-2", "half", "silent");
        for (int i = 0; i < SERVICES; i++) {
            int service = i;
            await(
                    when + ": service good-" + i + " responds",
                    () -> infer(service).statusCode() == 200);
        }
    }

    @Test
    void nothingAcknowledgedIsLostAndEverythingComesBack() throws Exception {
        launch();
        await("the control API answers", () -> send("GET", control, MAPS, "").statusCode() == 200);
        for (int i = 0; i < SERVICES; i++) {
            create("good-" + i, "good");
        }
        create("half", "half");
        create("silent", "silent");
        for (int i = 0; i < WRITERS; i++) {
            Writer writer = new Writer(i);
            writers.add(writer);
            thread("writer " + i, () -> {
                writer.change();
                return false;
            });
        }
        verify("at first");
        for (int i = 0; i < 2; i++) {
            int service = i;
            thread("client " + i, () -> inference(service));
        }
        if (stepClock != null) {
            clockIsMoved();
        }
        for (int round = 1; round <= KILLS; round++) {
            upSince.set(System.nanoTime() | 1);
            LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(random.nextInt(1500)));
            if (round % 2 == 0) {
                step();
            }
            LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(random.nextInt(500)));
            boolean died = !server.isAlive();
            kill();
            String before = tail();
            assertThat(died)
                    .as("the server ended by itself before kill %d:%n%s", round, before)
                    .isFalse();
            if (round % 4 == 0 && round < KILLS) {
                // A kill while it starts.
                launch();
                LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(random.nextInt(3000)));
                kill();
                round++;
            }
            if (round % 3 == 0) {
                step();
            }
            launch();
            verify("after kill " + round);
            assertThat(failures)
                    .as("until kill %d, before which the server wrote:%n%s", round, before)
                    .isEmpty();
        }
        System.getLogger(ChaosTest.class.getName())
                .log(
                        System.Logger.Level.INFO,
                        KILLS + " kills, " + changes + " acknowledged changes, " + inferences
                                + " inferences without a failure" + (stepClock == null ? ", no clock steps" : ""));
        assertThat(changes.get()).isGreaterThan(KILLS);
        assertThat(inferences.get()).isGreaterThan(KILLS);
    }

    private void clockIsMoved() throws Exception {
        long seconds = step();
        JsonNode created =
                json.readTree(send("POST", control, MAPS, map("clock", 0)).body());
        Duration off = Duration.between(
                Instant.now(),
                Instant.parse(created.at("/metadata/creationTimestamp").asText()));
        assertThat(Math.abs(off.toSeconds() - seconds)).isLessThan(30);
        assertThat(send("DELETE", control, MAPS + "/clock", "").statusCode()).isEqualTo(200);
    }
}
