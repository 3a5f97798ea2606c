// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.serve;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Requests with more rows than Triton's default batch size of an ONNX model, by each protocol and command line. */
class LargeRequestsTest {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Path IRIS = Path.of("")
            .toAbsolutePath()
            .resolve("../../examples/models/iris/1/model.onnx")
            .normalize();
    private static final int ROWS = 11;
    private static final String LIMIT = "inference request batch-size must be <= 4";

    @TempDir
    Path dir;

    private Path models() throws Exception {
        Path version = Files.createDirectories(dir.resolve("models/iris/1"));
        Files.copy(IRIS, version.resolve("model.onnx"));
        return dir.resolve("models");
    }

    /** Rows of which each is another. */
    private static String rows(int from, int to) {
        StringBuilder rows = new StringBuilder("[");
        for (int i = from; i < to; i++) {
            rows.append(i == from ? "" : ",")
                    .append("[")
                    .append(4 + 0.3 * i)
                    .append(",3.0,")
                    .append(1 + 0.4 * i);
            rows.append(",").append(0.2 * i).append("]");
        }
        return rows.append("]").toString();
    }

    private static String v2(String input, String rows) {
        int count = rows.split("\\],").length;
        return "{\"inputs\":[{\"name\":\"" + input + "\",\"datatype\":\"FP32\",\"shape\":[" + count + ",4],\"data\":"
                + rows + "}]}";
    }

    private static JsonNode ok(HttpResponse<String> response) throws Exception {
        assertThat(response.statusCode()).as(response.body()).isEqualTo(200);
        return JSON.readTree(response.body());
    }

    @Test
    void aModelWithoutALimitTakesAnyNumberOfRows() throws Exception {
        try (ServeProcess server = new ServeProcess(dir.resolve("cache"), models().toString()).listening()) {
            JsonNode metadata = ok(server.get("/v2/models/iris"));
            String input = metadata.at("/inputs/0/name").asText();
            JsonNode config = ok(server.get("/v2/models/iris/config"));
            assertThat(config.path("max_batch_size").asInt()).isEqualTo(4);
            JsonNode whole = ok(server.post("/v2/models/iris/infer", v2(input, rows(0, ROWS))));
            for (JsonNode output : whole.path("outputs")) {
                assertThat(output.at("/shape/0").asInt()).isEqualTo(ROWS);
            }
            JsonNode predictions = ok(server.post("/v1/models/iris:predict", "{\"instances\":" + rows(0, ROWS) + "}"))
                    .path("predictions");
            assertThat(predictions).hasSize(ROWS);
            for (int i = 0; i < ROWS; i++) {
                JsonNode one = ok(server.post("/v1/models/iris:predict", "{\"instances\":" + rows(i, i + 1) + "}"));
                JsonNode row = predictions.get(i);
                assertThat(row.path("label")).as("row %s", i).isEqualTo(one.at("/predictions/0/label"));
                assertThat(row.at("/probabilities/0").asDouble())
                        .as("row %s", i)
                        .isCloseTo(one.at("/predictions/0/probabilities/0").asDouble(), within(1e-6));
            }
            JsonNode invoked = ok(server.post("/invocations", "{\"inputs\":" + rows(0, ROWS) + "}"));
            assertThat(invoked.path("predictions").isMissingNode()).isFalse();
        }
    }

    @Test
    void aLimitThatWasSetStays() throws Exception {
        Path models = models();
        Path cache = dir.resolve("cache");
        Path config = models.resolve("iris/config.pbtxt");
        Files.writeString(config, "backend: \"onnxruntime\"\n");
        refused(cache, models.toString());
        Files.delete(config);
        refused(cache, models.toString(), "--backend-config=onnxruntime,default-max-batch-size=4");
        refused(cache, "--model-repository=" + models);
    }

    private static void refused(Path cache, String... options) throws Exception {
        try (ServeProcess server = new ServeProcess(cache, options).listening()) {
            HttpResponse<String> response =
                    server.post("/v1/models/iris:predict", "{\"instances\":" + rows(0, ROWS) + "}");
            assertThat(response.statusCode()).as(String.join(" ", options)).isEqualTo(400);
            assertThat(response.body()).contains(LIMIT);
        }
    }
}
