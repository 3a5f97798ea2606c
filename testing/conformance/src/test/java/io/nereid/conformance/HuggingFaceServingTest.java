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
        // As save_pretrained and sentence-transformers leave them: the folder itself is the version.
        unpack("sentence-cls", repository.resolve("all-made-up-L1"));
        unpack("bert-embed", repository.resolve("org--encoder"));
        Files.writeString(repository.resolve("org--encoder").resolve("vocab.txt"), "[PAD]\n[UNK]\n");
        Files.writeString(repository.resolve("org--encoder").resolve("README.md"), "---\nlicense: mit\n---\n");
        kserve("cross-encoder", "kserve-ranker", "");
        kserve("bert-embed", "kserve-embed", "");
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
        unpack(folder, repository.resolve(name).resolve("1"));
    }

    private static void unpack(String folder, Path version) throws IOException {
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
    void embeddingsOfAFolderAreThoseOfItsLibraryAndTokensAreTexts() throws Exception {
        assertThat(server.output()).noneMatch(line -> line.contains("passed over"));
        JsonNode expected = expected("sentence-cls").get("embedding");
        JsonNode embedded = answer("/v1/embeddings", "{\"model\":\"all-made-up-L1\",\"input\":" + TEXTS + "}");
        assertThat(embedded.at("/usage/total_tokens").asInt()).isGreaterThan(10);
        for (int i = 0; i < 2; i++) {
            for (int j = 0; j < expected.get(i).size(); j++) {
                assertThat(embedded.at("/data/" + i + "/embedding/" + j).asDouble())
                        .isCloseTo(expected.get(i).get(j).asDouble(), within(1e-4));
            }
        }
        JsonNode vocabulary = JSON.readTree(repository
                        .resolve("org--encoder")
                        .resolve("tokenizer.json")
                        .toFile())
                .at("/model/vocab");
        String tokens = "[" + vocabulary.get("[CLS]") + "," + vocabulary.get("the") + "," + vocabulary.get("cat") + ","
                + vocabulary.get("[SEP]") + "]";
        JsonNode ofTokens = answer("/openai/v1/embeddings", "{\"model\":\"org--encoder\",\"input\":" + tokens + "}");
        JsonNode ofText = answer("/openai/v1/embeddings", "{\"model\":\"org--encoder\",\"input\":\"the cat\"}");
        assertThat(ofTokens.get("data")).isEqualTo(ofText.get("data"));
        assertThat(ofTokens.get("usage")).isEqualTo(ofText.get("usage"));
        HttpResponse<String> foreign = HttpClient.newHttpClient()
                .send(
                        post("/v1/embeddings", "{\"model\":\"org--encoder\",\"input\":[[100257]]}"),
                        HttpResponse.BodyHandlers.ofString());
        assertThat(foreign.statusCode()).isEqualTo(400);
        assertThat(foreign.body()).contains("token '100257' is not in the vocabulary");
    }

    @Test
    void documentsAreRankedByTheScoresOfTheirLibrary() throws Exception {
        JsonNode expected = expected("cross-encoder");
        for (String model : List.of("cross-encoder", "kserve-ranker")) {
            for (int i = 0; i < expected.get("pairs").size(); i++) {
                JsonNode pair = expected.get("pairs").get(i);
                JsonNode ranked = answer(
                        "/v1/rerank",
                        "{\"model\":\"" + model + "\",\"query\":" + pair.get(0) + ",\"documents\":[\"mat\","
                                + pair.get(1) + "]}");
                JsonNode results = ranked.get("results");
                JsonNode second = results.get(0).get("index").asInt() == 1 ? results.get(0) : results.get(1);
                assertThat(second.get("relevance_score").asDouble())
                        .isCloseTo(expected.get("scores").get(i).asDouble(), within(1e-4));
                assertThat(results.get(0).get("relevance_score").asDouble())
                        .isGreaterThanOrEqualTo(
                                results.get(1).get("relevance_score").asDouble());
            }
        }
        JsonNode vector = answer("/v1/embeddings", "{\"model\":\"kserve-embed\",\"input\":\"the cat\"}");
        assertThat(vector.at("/data/0/embedding"))
                .isEqualTo(answer("/v1/embeddings", "{\"model\":\"bert-embed\",\"input\":\"the cat\"}")
                        .at("/data/0/embedding"));
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
