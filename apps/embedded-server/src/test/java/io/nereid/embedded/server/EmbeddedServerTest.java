// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.embedded.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.access.Caller;
import io.nereid.embedded.Nereid;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;

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
