// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.serve;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.net.httpserver.HttpServer;
import io.nereid.access.AccessControl;
import io.nereid.access.AccessOptions;
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
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
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
    private @Nullable NereidServer server;
    private int port;

    @BeforeEach
    void start() throws IOException {
        Path root = Path.of("").toAbsolutePath();
        while (!Files.exists(root.resolve("mvnw"))) {
            root = root.getParent();
        }
        byte[] iris = Files.readAllBytes(root.resolve("examples/models/iris/1/model.onnx"));
        store = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 16);
        store.createContext("/", exchange -> {
            String path = exchange.getRequestURI().getPath();
            byte[] body = path.startsWith("/broken") ? new byte[] {1, 2, 3} : iris;
            boolean found = path.endsWith(".onnx");
            exchange.sendResponseHeaders(found ? 200 : 404, found ? body.length : -1);
            if (found && !exchange.getRequestMethod().equals("HEAD")) {
                exchange.getResponseBody().write(body);
            }
            exchange.close();
        });
        store.start();
    }

    @AfterEach
    void stop() {
        store.stop(0);
        if (server != null) {
            boolean unused = server.stop(Duration.ofSeconds(5));
        }
    }

    private void serve(boolean storage) throws Exception {
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
                                ? StorageOptions.defaults(dir.resolve("cache"))
                                        .withAccess(StorageAccess.of(List.of(), true, Map.of()))
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
}
