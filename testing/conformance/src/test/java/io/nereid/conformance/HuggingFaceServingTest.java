// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.conformance;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.zip.ZipEntry;
import java.util.zip.ZipInputStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Folders of Hugging Face's transformers served over sockets, without a configuration and in the place of KServe's server. */
class HuggingFaceServingTest {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Path MODELS = Path.of("..", "..", "backends/huggingface/src/test/resources/models.zip");
    private static final String TEXTS = "[\"the cat sat on the mat .\", \"i love it !\"]";

    @TempDir
    static Path repository;

    private static ServerProcess server;

    @BeforeAll
    static void start() throws Exception {
        for (String name :
                List.of("bert-classify", "bert-embed", "sentence-cls", "bert-tokens", "bert-mask", "cross-encoder")) {
            unpack(name, name);
        }
        kserve("bert-classify", "kserve-labels", "");
        kserve("bert-classify", "kserve-probabilities", "return_probabilities");
        kserve("bert-mask", "kserve-mask", "");
        server = ServerProcess.serve(repository);
    }

    private static void kserve(String folder, String name, String flag) throws IOException {
        unpack(folder, name);
        String parameters = "parameters { key: \"nereid.kserve_server\" value { string_value: \"true\" } }";
        if (!flag.isEmpty()) {
            parameters += " parameters { key: \"" + flag + "\" value { string_value: \"true\" } }";
        }
        Files.writeString(repository.resolve(name).resolve("config.pbtxt"), "backend: \"huggingface\" " + parameters);
    }

    private static void unpack(String folder, String name) throws IOException {
        Path version = repository.resolve(name).resolve("1");
        try (InputStream in = Files.newInputStream(MODELS);
                ZipInputStream zip = new ZipInputStream(in)) {
            for (ZipEntry e = zip.getNextEntry(); e != null; e = zip.getNextEntry()) {
                String file = e.getName().equals("wordpiece.json") ? folder + "/tokenizer.json" : e.getName();
                if (file.startsWith(folder + "/")) {
                    Path to = version.resolve(file.substring(folder.length() + 1));
                    Files.createDirectories(to.getParent());
                    Files.write(to, zip.readAllBytes());
                }
            }
        }
    }

    @AfterAll
    static void stop() {
        if (server != null) {
            server.close();
            assertThat(server.output()).noneMatch(line -> line.contains("LEAK:"));
        }
    }

    private static HttpRequest post(String path, String body) {
        return HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + server.port() + path))
                .timeout(Duration.ofSeconds(60))
                .POST(HttpRequest.BodyPublishers.ofString(body))
                .build();
    }

    private static JsonNode answer(String path, String body) throws Exception {
        HttpResponse<String> response =
                HttpClient.newHttpClient().send(post(path, body), HttpResponse.BodyHandlers.ofString());
        assertThat(response.statusCode()).as(response.body()).isEqualTo(200);
        return JSON.readTree(response.body());
    }

    private static JsonNode v1(String model, String instances) throws Exception {
        return answer("/v1/models/" + model + ":predict", "{\"instances\": " + instances + "}")
                .get("predictions");
    }

    private static JsonNode v2(String model, String texts, int rows) throws Exception {
        return answer(
                        "/v2/models/" + model + "/infer",
                        "{\"inputs\": [{\"name\": \"anything\", \"datatype\": \"BYTES\", \"shape\": [" + rows
                                + "], \"data\": " + texts + "}]}")
                .get("outputs");
    }

    private static JsonNode expected(String folder) throws IOException {
        return JSON.readTree(
                repository.resolve(folder).resolve("1").resolve("expected.json").toFile());
    }

    @Test
    void sequencesAreClassifiedOverBothProtocols() throws Exception {
        JsonNode logits = expected("bert-classify").get("logits");
        JsonNode rows = v1("bert-classify", TEXTS);
        JsonNode outputs = v2("bert-classify", TEXTS, 2);
        assertThat(outputs.get(0).get("name").asText()).isEqualTo("label");
        for (int i = 0; i < 2; i++) {
            assertThat(rows.get(i).get("label").asText()).isIn("negative", "neutral", "positive");
            assertThat(outputs.get(0).get("data").get(i)).isEqualTo(rows.get(i).get("label"));
            for (int j = 0; j < 3; j++) {
                assertThat(rows.get(i).get("logits").get(j).asDouble())
                        .isCloseTo(logits.get(i).get(j).asDouble(), within(1e-4));
            }
        }
    }

    @Test
    void textsAreEmbedded() throws Exception {
        for (String model : List.of("bert-embed", "sentence-cls")) {
            JsonNode vectors = expected(model).get("embedding");
            JsonNode rows = v1(model, TEXTS);
            for (int i = 0; i < 2; i++) {
                assertThat(rows.get(i)).hasSameSizeAs(vectors.get(i));
                for (int j = 0; j < vectors.get(i).size(); j++) {
                    assertThat(rows.get(i).get(j).asDouble())
                            .isCloseTo(vectors.get(i).get(j).asDouble(), within(1e-4));
                }
            }
        }
    }

    @Test
    void documentsAreValuesInV1() throws Exception {
        JsonNode entities = v1("bert-tokens", TEXTS);
        assertThat(entities.get(0).isArray()).isTrue();
        JsonNode filled = v1("bert-mask", "[\"the [MASK] sat\"]");
        assertThat(filled.get(0).get(0).get("sequence").asText())
                .startsWith("the ")
                .endsWith(" sat");
        assertThat(filled.get(0)).hasSize(5);
    }

    @Test
    void pairsAreScored() throws Exception {
        JsonNode expected = expected("cross-encoder");
        JsonNode pair = expected.get("pairs").get(0);
        JsonNode rows = v1("cross-encoder", "[{\"TEXT\": " + pair.get(0) + ", \"TEXT_PAIR\": " + pair.get(1) + "}]");
        assertThat(rows.get(0).get("score").asDouble())
                .isCloseTo(expected.get("scores").get(0).asDouble(), within(1e-4));
    }

    @Test
    void kservesAnswers() throws Exception {
        JsonNode labels = v1("kserve-labels", TEXTS);
        assertThat(labels.get(0).isIntegralNumber()).isTrue();
        JsonNode output = v2("kserve-labels", TEXTS, 2).get(0);
        assertThat(output.get("name").asText()).isEqualTo("output-0");
        assertThat(output.get("datatype").asText()).isEqualTo("INT64");
        assertThat(output.get("shape").toString()).isEqualTo("[2]");
        assertThat(output.get("data")).isEqualTo(labels);
        JsonNode probabilities = v1("kserve-probabilities", TEXTS).get(0);
        assertThat(probabilities.get("0").asDouble()
                        + probabilities.get("1").asDouble()
                        + probabilities.get("2").asDouble())
                .isCloseTo(1, within(1e-3));
        String literal =
                v2("kserve-probabilities", TEXTS, 2).get(0).get("data").get(0).asText();
        assertThat(literal).startsWith("{0: ").contains(", 1: ").endsWith("}");
        assertThat(v1("kserve-mask", "[\"the [MASK] sat\"]").get(0).isTextual()).isTrue();
    }

    @Test
    void requestsOfDifferentLengthsShareBatches() throws Exception {
        HttpClient client = HttpClient.newHttpClient();
        List<CompletableFuture<HttpResponse<String>>> answers = new ArrayList<>();
        for (int i = 0; i < 40; i++) {
            answers.add(client.sendAsync(
                    post(
                            "/v1/models/bert-classify:predict",
                            "{\"instances\": [\"" + "cat ".repeat(1 + i % 20) + "\"]}"),
                    HttpResponse.BodyHandlers.ofString()));
        }
        for (int i = 0; i < 40; i++) {
            HttpResponse<String> together = answers.get(i).join();
            assertThat(together.statusCode()).isEqualTo(200);
            JsonNode alone = v1("bert-classify", "[\"" + "cat ".repeat(1 + i % 20) + "\"]");
            for (int j = 0; j < 3; j++) {
                assertThat(JSON.readTree(together.body())
                                .get("predictions")
                                .get(0)
                                .get("logits")
                                .get(j)
                                .asDouble())
                        .isCloseTo(alone.get(0).get("logits").get(j).asDouble(), within(1e-4));
            }
        }
    }

    @Test
    void wrongTextsAreRefusedForTheirRequestAlone() throws Exception {
        HttpResponse<String> response = HttpClient.newHttpClient()
                .send(
                        post("/v1/models/bert-mask:predict", "{\"instances\": [\"nothing to fill\"]}"),
                        HttpResponse.BodyHandlers.ofString());
        assertThat(response.statusCode()).isEqualTo(400);
        assertThat(response.body()).contains("no mask token");
    }
}
