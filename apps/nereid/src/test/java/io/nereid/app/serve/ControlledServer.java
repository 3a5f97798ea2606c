// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.serve;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.nereid.access.AccessControl;
import io.nereid.access.AccessOptions;
import io.nereid.app.controlplane.ControlFlags;
import io.nereid.app.process.Logging;
import io.nereid.base.Clock;
import io.nereid.engine.options.EngineOptions;
import io.nereid.protocols.v2.options.V2Options;
import io.nereid.tensor.ByteBudget;
import io.nereid.tracing.TraceOptions;
import io.nereid.transport.ServerOptions;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;
import java.util.logging.Level;
import picocli.CommandLine;

/** A complete server with the control plane over a directory, on free ports. Confined to one test class. */
final class ControlledServer implements AutoCloseable {
    static final ObjectMapper JSON = new ObjectMapper();
    static final String SERVICES = "/apis/serving.kserve.io/v1beta1/namespaces/default/inferenceservices";
    static final String GRAPHS = "/apis/serving.kserve.io/v1alpha1/namespaces/default/inferencegraphs";
    static final String TRAINED = "/apis/serving.kserve.io/v1alpha1/namespaces/default/trainedmodels";
    private static final int SECONDS = 60;

    final int port;
    final int controlPort;

    private final HttpClient client = HttpClient.newHttpClient();
    private final CountDownLatch never = new CountDownLatch(1);
    private final NereidServer server;
    private final Path model;

    /** @param repositories what the server serves besides services */
    ControlledServer(Path dir, Path... repositories) throws IOException {
        model = Files.createDirectories(dir.resolve("stump"));
        try (InputStream in = Objects.requireNonNull(getClass().getResourceAsStream("/io/nereid/app/stump.json"))) {
            Files.copy(in, model.resolve("model.json"));
        }
        ControlFlags flags = new ControlFlags();
        new CommandLine(flags)
                .parseArgs(
                        "--control",
                        "--control-port=0",
                        "--control-directory=" + dir.resolve("control"),
                        "--model-cache=" + dir.resolve("cache"));
        server = new NereidServer(
                EngineOptions.builder(List.of(repositories))
                        .deviceThreads(1)
                        .loadThreads(1)
                        .scratch(dir.resolve("scratch"))
                        .build(),
                ServerOptions.builder().listen("127.0.0.1", 0),
                new ByteBudget(1 << 24),
                V2Options.defaults("test", 1 << 20),
                v1 -> {},
                TraceOptions.OFF,
                Logging.configure(Logging.Format.TEXT, Level.OFF),
                new AccessControl(AccessOptions.none(Clock.system())),
                new NereidServer.ClientRules(true, null),
                flags);
        List<InetSocketAddress> addresses = server.listen();
        port = addresses.get(0).getPort();
        server.load().toCompletableFuture().join();
        controlPort = server.control(addresses);
    }

    /** A model's block with the format and the storageUri of a small XGBoost model. */
    String model(String more) {
        return "{\"modelFormat\":{\"name\":\"xgboost\"},\"storageUri\":\"" + model.toUri() + "\"" + more + "}";
    }

    /** The storageUri of the small model. */
    String modelUri() {
        return model.toUri().toString();
    }

    /** An InferenceService with a predictor. */
    static String service(String name, String predictor) {
        return "{\"apiVersion\":\"serving.kserve.io/v1beta1\",\"kind\":\"InferenceService\",\"metadata\":{\"name\":\""
                + name + "\"},\"spec\":{\"predictor\":{" + predictor + "}}}";
    }

    HttpResponse<String> send(String method, int to, String path, String body, String... headers)
            throws IOException, InterruptedException {
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + to + path));
        if (Arrays.stream(headers).noneMatch("content-type"::equalsIgnoreCase)) {
            request.header("content-type", "application/json");
        }
        if (headers.length > 0) {
            request.headers(headers);
        }
        return client.send(
                request.method(method, HttpRequest.BodyPublishers.ofString(body))
                        .build(),
                HttpResponse.BodyHandlers.ofString());
    }

    /** Sends a request that must be answered with success. */
    JsonNode ok(String method, int to, String path, String body, String... headers)
            throws IOException, InterruptedException {
        HttpResponse<String> response = send(method, to, path, body, headers);
        assertThat(response.statusCode()).as(response.body()).isBetween(200, 201);
        return JSON.readTree(response.body());
    }

    /** Waits until a resource is ready, and returns it. */
    JsonNode ready(String path) throws IOException, InterruptedException {
        return until(
                path,
                resource -> resource.path("status").path("observedGeneration").asLong(-1)
                                == resource.path("metadata").path("generation").asLong()
                        && condition(resource, "Ready").path("status").asText().equals("True"));
    }

    /** Waits until a resource is as expected, and returns it. */
    JsonNode until(String path, Predicate<JsonNode> expected) throws IOException, InterruptedException {
        JsonNode resource = JSON.createObjectNode();
        for (int i = 0; i < SECONDS * 20; i++) {
            resource = ok("GET", controlPort, path, "");
            if (expected.test(resource)) {
                return resource;
            }
            boolean unused = never.await(50, TimeUnit.MILLISECONDS);
        }
        throw new AssertionError("not as expected: " + resource);
    }

    /** The condition of a type; a missing node without it. */
    static JsonNode condition(JsonNode resource, String type) {
        for (JsonNode condition : resource.path("status").path("conditions")) {
            if (condition.path("type").asText().equals(type)) {
                return condition;
            }
        }
        return JSON.missingNode();
    }

    @Override
    public void close() {
        boolean unused = server.stop(Duration.ofSeconds(2));
    }
}
