// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.serve;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import io.nereid.access.AccessControl;
import io.nereid.access.AccessOptions;
import io.nereid.app.controlplane.StoredModels;
import io.nereid.app.process.Logging;
import io.nereid.base.Clock;
import io.nereid.engine.options.EngineOptions;
import io.nereid.protocols.v2.options.V2Options;
import io.nereid.repository.RepositorySource;
import io.nereid.storage.request.StorageAccess;
import io.nereid.storage.request.StorageOptions;
import io.nereid.tensor.ByteBudget;
import io.nereid.tracing.TraceOptions;
import io.nereid.transport.ServerOptions;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.logging.Level;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Models that clients load by storage URI, from a web server into a real server. */
class ModelStorageTest {
    private static final String ROW =
            "{\"inputs\":[{\"name\":\"input\",\"shape\":[1,4],\"datatype\":\"FP32\",\"data\":[5.1,3.5,1.4,0.2]}]}";

    @TempDir
    Path dir;

    private final HttpClient client = HttpClient.newHttpClient();
    private HttpServer store;
    private byte[] iris;
    private volatile @Nullable NereidServer server;
    private volatile int port;

    @BeforeEach
    void start() throws IOException {
        Path root = Path.of("").toAbsolutePath();
        while (!Files.exists(root.resolve("mvnw"))) {
            root = root.getParent();
        }
        iris = Files.readAllBytes(root.resolve("examples/models/iris/1/model.onnx"));
        store = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 16);
        store.createContext("/", this::serveFile);
        store.start();
    }

    private void serveFile(HttpExchange exchange) throws IOException {
        String path = exchange.getRequestURI().getPath();
        byte[] body = path.startsWith("/broken") ? new byte[] {1, 2, 3} : iris;
        boolean found = path.endsWith(".onnx");
        exchange.sendResponseHeaders(found ? 200 : 404, found ? body.length : -1);
        if (found && !exchange.getRequestMethod().equals("HEAD")) {
            exchange.getResponseBody().write(body);
        }
        exchange.close();
    }

    @AfterEach
    void stop() {
        store.stop(0);
        NereidServer running = server;
        if (running != null) {
            boolean unused = running.stop(Duration.ofSeconds(5));
        }
    }

    private void serve(boolean storage) throws Exception {
        serve(storage, null);
    }

    /** @param models the file with the models of a service with many; null for none */
    private void serve(boolean storage, @Nullable Path models) throws Exception {
        NereidServer started = new NereidServer(
                EngineOptions.builder(List.of())
                        .repository(RepositorySource.Options.DEFAULT.withMode(RepositorySource.Mode.EXPLICIT))
                        .deviceThreads(1)
                        .scratch(dir.resolve("scratch"))
                        .build(),
                ServerOptions.builder().listen("127.0.0.1", 0),
                new ByteBudget(1 << 24),
                V2Options.defaults("test", 1 << 20),
                v1 -> {},
                TraceOptions.OFF,
                Logging.configure(Logging.Format.TEXT, Level.OFF),
                new AccessControl(AccessOptions.none(Clock.system())),
                new NereidServer.ClientRules(
                        true,
                        null,
                        true,
                        List.of(),
                        null,
                        storage
                                ? new StoredModels(
                                        StorageOptions.defaults(dir.resolve("cache"))
                                                .withAccess(StorageAccess.of(List.of(), true, Map.of())),
                                        models)
                                : null),
                null);
        server = started;
        port = started.listen().get(0).getPort();
        Object unused = started.load().toCompletableFuture().get(60, TimeUnit.SECONDS);
    }

    private String post(String path, String body) throws Exception {
        HttpResponse<String> answer = client.send(
                HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + path))
                        .POST(HttpRequest.BodyPublishers.ofString(body))
                        .build(),
                HttpResponse.BodyHandlers.ofString());
        return answer.statusCode() + " " + answer.body();
    }

    private String load(String uri) throws Exception {
        return post("/v2/repository/models/iris/load", "{\"parameters\":{\"storage_uri\":\"" + uri + "\"}}");
    }

    private String uri(String path) {
        return "http://127.0.0.1:" + store.getAddress().getPort() + path;
    }

    @Test
    void aModelIsLoadedServedAndUnloaded() throws Exception {
        serve(true);
        assertThat(load(uri("/iris/model.onnx"))).startsWith("200");
        assertThat(post("/v2/models/iris/infer", ROW)).startsWith("200").contains("\"model_name\":\"iris\"");

        assertThat(load(uri("/broken/model.onnx"))).startsWith("400").contains("load failed for model 'iris'");
        assertThat(load(uri("/nothing"))).startsWith("404");
        assertThat(post("/v2/models/iris/infer", ROW))
                .as("the former model serves")
                .startsWith("200");
        assertThat(load(uri("/other/model.onnx"))).as("another file").startsWith("200");
        assertThat(post("/v2/models/iris/infer", ROW)).startsWith("200");

        assertThat(post("/v2/repository/models/iris/unload", "{}")).startsWith("200");
        assertThat(post("/v2/models/iris/infer", ROW)).startsWith("4");
        assertThat(load(uri("/iris/model.onnx"))).startsWith("200");
        assertThat(post("/v2/models/iris/infer", ROW)).startsWith("200");
    }

    @Test
    void filesOfTheServerAreNoStore() throws Exception {
        serve(true);
        assertThat(load("file:///etc")).startsWith("403").contains("names files of the server");
        assertThat(post(
                        "/v2/repository/models/iris/load",
                        "{\"parameters\":{\"storage_uri\":\"gs://a/b\",\"config\":\"{}\"}}"))
                .startsWith("400")
                .contains("goes with neither 'config' nor files");
        assertThat(post("/v2/repository/models/iris/load", "{\"parameters\":{\"storage_uri\":1}}"))
                .startsWith("400")
                .contains("must have string type");
    }

    @Test
    void aServerThatFetchesNothingSaysHowToAllowIt() throws Exception {
        serve(false);
        assertThat(load(uri("/iris/model.onnx"))).startsWith("403").contains("--allow-model-storage");
    }

    private String model(String name, String path) {
        return "{\"modelName\":\"" + name + "\",\"modelSpec\":{\"storageUri\":\"" + uri(path)
                + "\",\"framework\":\"onnx\",\"memory\":\"1Mi\"}}";
    }

    private String get(String path) throws Exception {
        HttpResponse<String> answer = client.send(
                HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + path))
                        .build(),
                HttpResponse.BodyHandlers.ofString());
        return answer.statusCode() + " " + answer.body();
    }

    private void until(String path, String start) throws Exception {
        long end = System.nanoTime() + Duration.ofSeconds(30).toNanos();
        while (!get(path).startsWith(start)) {
            assertThat(System.nanoTime()).as(path + ": " + get(path)).isLessThan(end);
            LockSupport.parkNanos(50_000_000);
        }
    }

    @Test
    void theModelsOfAFileAreServedBeforeTheServerIsReadyAndFollowIt() throws Exception {
        Path file = dir.resolve("models.json");
        Files.writeString(
                file,
                "[" + model("iris", "/iris/model.onnx") + "," + model("second", "/second/model.onnx") + ","
                        + model("broken", "/broken/model.onnx") + "]");
        CountDownLatch opened = new CountDownLatch(1);
        store.removeContext("/");
        store.createContext("/", exchange -> {
            try {
                opened.await();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
            serveFile(exchange);
        });
        Thread starting = new Thread(() -> {
            try {
                serve(true, file);
            } catch (Exception e) {
                throw new AssertionError(e);
            }
        });
        starting.start();
        while (port == 0 && starting.isAlive()) {
            LockSupport.parkNanos(10_000_000);
        }
        assertThat(get("/v2/health/ready")).as("a model is still to be loaded").startsWith("503");
        opened.countDown();
        starting.join(30_000);
        assertThat(get("/v2/health/ready"))
                .as("one has failed, the others serve")
                .startsWith("200");
        assertThat(post("/v2/models/iris/infer", ROW)).startsWith("200");
        assertThat(post("/v2/models/second/infer", ROW)).startsWith("200");
        assertThat(post("/v2/models/broken/infer", ROW)).startsWith("4");
        assertThat(post("/v2/repository/models/iris/unload", "{}"))
                .startsWith("4")
                .contains("TrainedModel");
        assertThat(load(uri("/iris/model.onnx"))).as("clients load nothing").startsWith("403");

        Path next = dir.resolve("next.json");
        Files.writeString(
                next, "[" + model("second", "/second-b/model.onnx") + "," + model("third", "/third/model.onnx") + "]");
        Files.move(next, file, StandardCopyOption.ATOMIC_MOVE);
        until("/v2/models/third/ready", "200");
        until("/v2/models/iris/ready", "503");
        assertThat(post("/v2/models/second/infer", ROW)).startsWith("200");
        Files.writeString(file, "{");
        LockSupport.parkNanos(Duration.ofMillis(1200).toNanos());
        assertThat(get("/v2/models/third/ready"))
                .as("a wrong file changes nothing")
                .startsWith("200");
    }
}
