// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.embedded.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.access.Caller;
import io.nereid.embedded.ModelSettings;
import io.nereid.embedded.Nereid;
import io.nereid.testkit.PluginJarBuilder;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The ports of an application's models, over sockets. */
class EmbeddedServerTest {
    private static final Path IRIS = Path.of("../../examples/models/iris/1/model.onnx");

    private final HttpClient client = HttpClient.newHttpClient();

    private String send(int port, String path, String body) throws IOException, InterruptedException {
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + path));
        if (!body.isEmpty()) {
            request.POST(HttpRequest.BodyPublishers.ofString(body));
        }
        HttpResponse<String> response = client.send(request.build(), HttpResponse.BodyHandlers.ofString());
        return response.statusCode() + " " + response.body();
    }

    @Test
    void clientsAskTheModelsAndMayNotChangeThem() throws Exception {
        try (Nereid nereid = Nereid.builder().model("iris", IRIS).build();
                EmbeddedServer server =
                        EmbeddedServer.builder(nereid).listen("127.0.0.1", 0).start()) {
            int port = server.port();
            assertThat(send(port, "/v2/health/ready", "")).startsWith("200");
            assertThat(send(port, "/v1/models/iris:predict", "{\"instances\": [[5.1, 3.5, 1.4, 0.2]]}"))
                    .startsWith("200")
                    .contains("\"label\"");
            assertThat(send(
                            port,
                            "/v2/models/iris/infer",
                            "{\"inputs\": [{\"name\": \"input\", \"shape\": [1, 4], \"datatype\": \"FP32\","
                                    + " \"data\": [5.1, 3.5, 1.4, 0.2]}]}"))
                    .startsWith("200")
                    .contains("probabilities");
            assertThat(send(port, "/v2/models/iris/stats", "")).contains("\"inference_count\":2");
            assertThat(send(port, "/metrics", "")).contains("nv_inference_request_success{model=\"iris\"");
            assertThat(send(port, "/openapi.json", "")).contains("\"/v2/models/{model}/infer\"", "\"/metrics\"");
            assertThat(send(port, "/v2/models/iris/openapi.json", ""))
                    .startsWith("200")
                    .contains("\"x-nereid-shape\":[-1,4]");
            assertThat(send(port, "/v2/repository/models/iris/unload", "{}"))
                    .startsWith("403")
                    .contains("does not let clients");
            assertThat(nereid.isReady()).isTrue();

            assertThatThrownBy(() -> EmbeddedServer.builder(nereid)
                            .listen("127.0.0.1", port)
                            .start())
                    .hasMessageContaining(Integer.toString(port));
            assertThatThrownBy(() -> EmbeddedServer.builder(nereid).start()).hasMessageContaining("no port");
        }
    }

    private static final String GATED = """
            package models;
            import io.nereid.backends.java.JavaModel;
            import io.nereid.spi.config.TensorSpec;
            import io.nereid.tensor.DataType;
            import io.nereid.tensor.Shape;
            import io.nereid.tensor.Tensor;
            import java.util.List;
            import java.util.concurrent.CountDownLatch;
            import java.util.concurrent.TimeUnit;
            public final class Gated implements JavaModel {
                public List<TensorSpec> inputs() { return List.of(new TensorSpec("x", DataType.INT32, Shape.of(1))); }
                public List<TensorSpec> outputs() { return List.of(new TensorSpec("y", DataType.INT32, Shape.of(1))); }
                public List<Tensor> run(List<Tensor> inputs, List<String> outputs) throws Exception {
                    if (System.getProperties().get("gated.inside") instanceof CountDownLatch inside) {
                        inside.countDown();
                        ((CountDownLatch) System.getProperties().get("gated.gate")).await(60, TimeUnit.SECONDS);
                    }
                    return List.of(Tensor.allocate("y", DataType.INT32, Shape.of(1)));
                }
            }
            """;

    private static final String ONE =
            "{\"inputs\": [{\"name\": \"x\", \"shape\": [1], \"datatype\": \"INT32\", \"data\": [1]}]}";

    private CompletableFuture<HttpResponse<String>> infer(int port) {
        return client.sendAsync(
                HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + "/v2/models/gated/infer"))
                        .POST(HttpRequest.BodyPublishers.ofString(ONE))
                        .build(),
                HttpResponse.BodyHandlers.ofString());
    }

    @Test
    void whatWouldMissTheLatencyObjectiveIsRefusedWithATimeToRetry(@TempDir Path directory) throws Exception {
        Path model = directory.resolve("gated");
        Files.createDirectories(model);
        new PluginJarBuilder()
                .source("models.Gated", GATED)
                .service("io.nereid.backends.java.JavaModel", "models.Gated")
                .build(model.resolve("model.jar"));
        CountDownLatch inside = new CountDownLatch(1);
        CountDownLatch gate = new CountDownLatch(1);
        try (Nereid nereid = Nereid.builder()
                        .model("gated", model, ModelSettings.DEFAULT.parameter("slo", "p99=800ms"))
                        .build();
                EmbeddedServer server =
                        EmbeddedServer.builder(nereid).listen("127.0.0.1", 0).start()) {
            int port = server.port();
            for (int i = 0; i < 6; i++) {
                assertThat(infer(port).get(60, TimeUnit.SECONDS).statusCode()).isEqualTo(200);
            }
            System.getProperties().put("gated.gate", gate);
            System.getProperties().put("gated.inside", inside);
            CompletableFuture<HttpResponse<String>> slow = infer(port);
            assertThat(inside.await(60, TimeUnit.SECONDS)).isTrue();
            // The only instance is not free again before this request has waited for as long as it may, which is longer
            // than a busy
            // machine takes to give the last request below a thread.
            HttpResponse<String> refused = infer(port).get(60, TimeUnit.SECONDS);
            assertThat(slow).isNotDone();
            assertThat(refused.statusCode()).isEqualTo(503);
            assertThat(refused.headers().firstValue("retry-after")).hasValue("1");
            assertThat(refused.body()).contains("model 'gated' is overloaded");
            System.getProperties().remove("gated.inside");
            gate.countDown();
            assertThat(slow.get(60, TimeUnit.SECONDS).statusCode()).isEqualTo(200);
            assertThat(infer(port).get(60, TimeUnit.SECONDS).statusCode())
                    .as("an idle instance takes any request")
                    .isEqualTo(200);
            assertThat(send(port, "/metrics", ""))
                    .contains(
                            "nereid_slo_refused_total{model=\"gated\",version=\"1\",percentile=\"p99\"} 1",
                            "nereid_slo_objective_seconds{model=\"gated\",version=\"1\",percentile=\"p99\"} 0.8");
        } finally {
            gate.countDown();
            System.getProperties().remove("gated.inside");
            System.getProperties().remove("gated.gate");
        }
    }

    @Test
    void whoMayDoWhatIsTheApplicationsChoice() throws Exception {
        try (Nereid nereid = Nereid.builder().model("iris", IRIS).build();
                EmbeddedServer server = EmbeddedServer.builder(nereid)
                        .listen("127.0.0.1", 0)
                        .modelControl(true)
                        .access((head, connection, operation, model) -> {
                            if (!"secret".equals(head.header("x-key"))) {
                                throw ServingException.of(ErrorCode.UNAUTHENTICATED, "x-key is missing");
                            }
                            return Caller.ANONYMOUS;
                        })
                        .start()) {
            assertThat(send(server.port(), "/v2/models/iris", "")).startsWith("401");
            HttpResponse<String> allowed = client.send(
                    HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + server.port() + "/v2/models/iris"))
                            .header("x-key", "secret")
                            .build(),
                    HttpResponse.BodyHandlers.ofString());
            assertThat(allowed.statusCode()).isEqualTo(200);
        }
    }
}
