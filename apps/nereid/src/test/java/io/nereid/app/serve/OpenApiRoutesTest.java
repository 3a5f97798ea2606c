// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.serve;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.nereid.access.AccessControl;
import io.nereid.access.AccessOptions;
import io.nereid.app.process.Logging;
import io.nereid.base.Clock;
import io.nereid.base.access.Operation;
import io.nereid.engine.options.EngineOptions;
import io.nereid.protocols.v2.options.V2Options;
import io.nereid.tensor.ByteBudget;
import io.nereid.tracing.TraceOptions;
import io.nereid.transport.ServerOptions;
import io.nereid.transport.api.HttpRoute;
import io.nereid.transport.api.ProtocolCodec;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.logging.Level;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The OpenAPI document of the server has the routes of the server, each with a description and its permission. */
class OpenApiRoutesTest {
    private static final ObjectMapper JSON = new ObjectMapper();

    @TempDir
    Path dir;

    /** A document and the routes of the server that it came from. */
    private record Served(JsonNode document, List<HttpRoute> routes) {}

    private Served served(AccessOptions access) throws Exception {
        NereidServer server = new NereidServer(
                EngineOptions.builder(List.of(Files.createDirectories(dir.resolve("models"))))
                        .deviceThreads(1)
                        .scratch(dir.resolve("scratch"))
                        .build(),
                ServerOptions.builder().listen("127.0.0.1", 0),
                new ByteBudget(1 << 20),
                V2Options.defaults("test", 1 << 20),
                v1 -> v1.metricsPath("/my/metrics"),
                TraceOptions.OFF,
                Logging.configure(Logging.Format.TEXT, Level.OFF),
                new AccessControl(access),
                new NereidServer.ClientRules(true, null),
                null);
        try {
            int port = server.listen().get(0).getPort();
            List<HttpRoute> routes = server.codecs().stream()
                    .map(ProtocolCodec::httpRoutes)
                    .flatMap(List::stream)
                    .toList();
            return new Served(get("http://127.0.0.1:" + port + "/openapi.json"), routes);
        } finally {
            boolean unused = server.stop(Duration.ofSeconds(1));
        }
    }

    private static JsonNode get(String url) throws IOException, InterruptedException {
        HttpResponse<String> response = HttpClient.newHttpClient()
                .send(HttpRequest.newBuilder(URI.create(url)).build(), HttpResponse.BodyHandlers.ofString());
        assertThat(response.statusCode()).as(response.body()).isEqualTo(200);
        return JSON.readTree(response.body());
    }

    private static Map<String, JsonNode> operations(JsonNode document) {
        Map<String, JsonNode> operations = new TreeMap<>();
        for (Map.Entry<String, JsonNode> path : document.path("paths").properties()) {
            for (Map.Entry<String, JsonNode> one : path.getValue().properties()) {
                operations.put(one.getKey().toUpperCase(Locale.ROOT) + " " + path.getKey(), one.getValue());
            }
        }
        return operations;
    }

    @Test
    void theDocumentHasExactlyTheRoutesOfTheServerAndEachIsDescribed() throws Exception {
        Served served = served(AccessOptions.none(Clock.system()));
        Map<String, JsonNode> operations = operations(served.document());
        Set<String> paths = new TreeSet<>();
        Set<String> prefixes = new TreeSet<>();
        Map<String, String> permissions = new TreeMap<>();
        for (HttpRoute route : served.routes()) {
            String key = route.method() + " " + route.template();
            if (route.template().endsWith("{rest...}")) {
                prefixes.add(route.template());
            } else {
                paths.add(key);
                permissions.put(
                        key, ((Operation) route.operations()).permission().configName());
            }
        }
        assertThat(operations.keySet()).isEqualTo(paths).hasSizeGreaterThan(60).contains("GET /my/metrics");
        JsonNode tails = served.document().path("x-nereid-prefixes");
        Set<String> described = new TreeSet<>();
        tails.fieldNames().forEachRemaining(described::add);
        assertThat(described).isEqualTo(prefixes);
        tails.forEach(tail -> assertThat(tail.path("summary").asText()).isNotBlank());
        Set<String> ids = new TreeSet<>();
        operations.forEach((route, operation) -> {
            assertThat(operation.path("summary").asText())
                    .as("summary of " + route + ", in the openapi.json of its protocol")
                    .isNotBlank();
            assertThat(operation.path("tags").size()).as(route).isEqualTo(1);
            assertThat(operation.path("x-nereid-permission").asText()).as(route).isEqualTo(permissions.get(route));
            assertThat(operation.path("responses").has("500")).as(route).isTrue();
            assertThat(operation.has("security")).isFalse();
            assertThat(ids.add(operation.path("operationId").asText()))
                    .as("operationId of " + route)
                    .isTrue();
        });
    }

    @Test
    void credentialsAreSchemesAndEachOperationSaysWhichItTakes() throws Exception {
        Path config = Files.writeString(dir.resolve("access.yaml"), """
                anonymous: [health]
                """);
        AccessOptions options = new AccessOptions(
                Files.writeString(dir.resolve("keys.yaml"), "keys: []\n"),
                config,
                false,
                Set.of(),
                List.of(),
                List.of(),
                null,
                null,
                Clock.system());
        // The document itself needs credentials, so the rules are asked without a server.
        try (AccessControl access = new AccessControl(options)) {
            io.nereid.app.access.AccessSchemes schemes = new io.nereid.app.access.AccessSchemes(access);
            assertThat(schemes.schemes()).containsOnlyKeys("bearer", "apiKey", "basic");
            assertThat(schemes.alternatives(Operation.HEALTH)).contains(List.of(), List.of("bearer"));
            assertThat(schemes.alternatives(Operation.INFERENCE))
                    .containsExactly(List.of("bearer"), List.of("apiKey"), List.of("basic"));
        }
        AccessOptions restricted = new AccessOptions(
                null,
                null,
                false,
                Set.of(),
                List.of("inference,statistics:My-Key=secret"),
                List.of(),
                null,
                null,
                Clock.system());
        Map<String, JsonNode> operations = operations(served(restricted).document());
        assertThat(operations
                        .get("POST /v2/models/{model}/infer")
                        .path("security")
                        .toString())
                .isEqualTo("[{\"restricted-my-key\":[]}]");
        assertThat(operations.get("GET /v2/models/stats").path("security").toString())
                .isEqualTo("[{\"restricted-my-key\":[]}]");
        assertThat(operations.get("GET /v2").path("security").toString()).isEqualTo("[]");
    }

    @Test
    void aServiceHasTheDocumentsOfItsRoutesBehindItsPrefix() throws Exception {
        try (ControlledServer server = new ControlledServer(dir)) {
            JsonNode unused = server.ok(
                    "POST",
                    server.controlPort,
                    ControlledServer.SERVICES,
                    ControlledServer.service("stump", "\"model\": " + server.model("")));
            unused = server.ready(ControlledServer.SERVICES + "/stump");
            URI place = URI.create(
                    "http://127.0.0.1:" + server.port + "/serving/default/stump/v1/models/stump/openapi.json");
            JsonNode document = get(place.toString());
            URI base =
                    place.resolve(document.path("servers").path(0).path("url").asText());
            assertThat(base.getPath()).isEqualTo("/serving/default/stump/");
            JsonNode example = document.path("paths")
                    .path("/v1/models/stump:predict")
                    .path("post")
                    .path("requestBody")
                    .path("content")
                    .path("application/json")
                    .path("example");
            String path = base.resolve("v1/models/stump:predict").getPath();
            JsonNode answer = server.ok("POST", server.port, path, example.toString());
            assertThat(answer.path("predictions").size()).isEqualTo(1);
            assertThat(operations(get("http://127.0.0.1:" + server.port + "/serving/default/stump/openapi.json")))
                    .containsKeys("POST /v2/models/{model}/infer", "GET /metrics", "GET /openapi.json");
        }
    }
}
