// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.conformance;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The documents of models describe requests that the server answers: every example is sent. */
class OpenApiTest {
    private static final ObjectMapper JSON = new ObjectMapper();

    @TempDir
    static Path repository;

    private static ServerProcess server;
    private static final HttpClient CLIENT =
            HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();

    @BeforeAll
    static void start() throws Exception {
        identity("texts", "STRING", "[ -1 ]", 8, "");
        identity("raw_bytes", "UINT8", "[ 2, -1 ]", 0, "");
        identity("flags", "BOOL", "[ 3 ]", 4, "dynamic_batching {}");
        identity("halves", "FP16", "[ 2, 2 ]", 8, "");
        identity("brains", "BF16", "[ 4 ]", 8, "");
        identity("any", "FP32", "[ -1, -1, 3 ]", 0, "");
        identity("one value", "INT64", "[ 1 ]", 0, "");
        identity("table", "FP64", "[ 4 ]", 8, "");
        identity("huge", "FP32", "[ 3, 224, 224 ]", 8, "");
        identity(
                "warm",
                "FP32",
                "[ -1 ]",
                8,
                "model_warmup [ { name: \"w\" batch_size: 1 inputs { key: \"INPUT0\""
                        + " value { data_type: TYPE_FP32 dims: [ 7 ] zero_data: true } } } ]");
        model(
                "two_inputs",
                "backend: \"add_sub\" max_batch_size: 8 dynamic_batching {}"
                        + " input { name: \"INPUT0\" data_type: TYPE_INT32 dims: [ 16 ] }"
                        + " input { name: \"INPUT1\" data_type: TYPE_INT32 dims: [ 16 ] }"
                        + " output { name: \"OUTPUT0\" data_type: TYPE_INT32 dims: [ 16 ] }"
                        + " output { name: \"OUTPUT1\" data_type: TYPE_INT32 dims: [ 16 ] }");
        model("many", "backend: \"repeat\" model_transaction_policy { decoupled: true }");
        model(
                "turns",
                "backend: \"sequence\" max_batch_size: 4"
                        + " input { name: \"INPUT\" data_type: TYPE_INT32 dims: [ 1 ] }"
                        + " output { name: \"OUTPUT\" data_type: TYPE_INT32 dims: [ 1 ] }"
                        + " sequence_batching { control_input [ " + control("START") + "," + control("READY") + " ] }");
        server = ServerProcess.serve(repository);
    }

    @AfterAll
    static void stop() {
        server.close();
    }

    private static void identity(String name, String type, String dims, int batch, String more) throws Exception {
        String tensor = " data_type: TYPE_" + type + " dims: " + dims + " }";
        model(
                name,
                "backend: \"identity\" max_batch_size: " + batch + " input { name: \"INPUT0\"" + tensor
                        + " output { name: \"OUTPUT0\"" + tensor + " " + more);
    }

    private static String control(String kind) {
        return "{ name: \"" + kind + "\" control { kind: CONTROL_SEQUENCE_" + kind + " int32_false_true: [ 0, 1 ] } }";
    }

    private static void model(String name, String config) throws Exception {
        Files.createDirectories(repository.resolve(name).resolve("1"));
        Files.writeString(repository.resolve(name).resolve("config.pbtxt"), config);
    }

    private static JsonNode document(String path) throws Exception {
        HttpResponse<String> answer =
                CLIENT.send(HttpRequest.newBuilder(server.uri(path)).build(), BodyHandlers.ofString());
        assertThat(answer.statusCode()).as(answer.body()).isEqualTo(200);
        assertThat(answer.headers().firstValue("content-type")).hasValue("application/json");
        return JSON.readTree(answer.body());
    }

    /** The examples by path; the paths are resolved against the document, as a client does. */
    private static Map<URI, JsonNode> examples(String documentPath) throws Exception {
        JsonNode document = document(documentPath);
        URI base = server.uri(documentPath)
                .resolve(document.path("servers").path(0).path("url").asText());
        Map<URI, JsonNode> examples = new TreeMap<>();
        document.path("paths").properties().forEach(path -> {
            JsonNode body = path.getValue().path("post").path("requestBody");
            JsonNode example = body.path("content").path("application/json").path("example");
            if (!example.isMissingNode()) {
                examples.put(base.resolve(path.getKey().substring(1)), example);
            }
        });
        return examples;
    }

    private static void answered(Map<URI, JsonNode> examples) throws Exception {
        for (Map.Entry<URI, JsonNode> example : examples.entrySet()) {
            HttpResponse<String> answer = CLIENT.send(
                    HttpRequest.newBuilder(example.getKey())
                            .timeout(Duration.ofSeconds(20))
                            .header("content-type", "application/json")
                            .POST(BodyPublishers.ofString(example.getValue().toString()))
                            .build(),
                    BodyHandlers.ofString());
            assertThat(answer.statusCode())
                    .as(example.getKey() + " " + example.getValue() + " " + answer.body())
                    .isEqualTo(200);
            assertThat(answer.body()).doesNotContain("\"error\"");
        }
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "texts",
                "raw_bytes",
                "flags",
                "halves",
                "brains",
                "any",
                "one%20value",
                "table",
                "warm",
                "two_inputs"
            })
    void everyExampleOfAModelIsAnswered(String model) throws Exception {
        for (String place : new String[] {"", "/versions/1"}) {
            Map<URI, JsonNode> examples = examples("/v2/models/" + model + place + "/openapi.json");
            assertThat(examples.keySet().toString()).contains(model + place + "/infer", model + place + "/generate");
            answered(examples);
            examples = examples("/v1/models/" + model + place + "/openapi.json");
            assertThat(examples.keySet().toString()).contains(model + place + ":predict");
            answered(examples);
        }
    }

    @Test
    void explanationsAreInTheDocumentsOfTheModelsThatHaveThem() throws Exception {
        Map<URI, JsonNode> examples = examples("/v1/models/table/openapi.json");
        assertThat(examples.keySet().toString()).contains("table:explain");
        assertThat(document("/v1/models/texts/openapi.json").path("paths").has("/v1/models/texts:explain"))
                .isFalse();
        assertThat(document("/v2/models/texts/openapi.json").path("paths").has("/v2/models/texts/explain"))
                .isFalse();
    }

    @Test
    void schemasHaveTheModelsNamesTypesAndShapes() throws Exception {
        JsonNode schemas = document("/v2/models/two_inputs/openapi.json")
                .path("components")
                .path("schemas");
        JsonNode second = schemas.path("Input1").path("properties");
        assertThat(second.path("name").path("enum").toString()).isEqualTo("[\"INPUT1\"]");
        assertThat(second.path("datatype").path("enum").toString()).isEqualTo("[\"INT32\"]");
        assertThat(second.path("data").path("items").path("format").asText()).isEqualTo("int32");
        assertThat(schemas.path("Input1").path("x-nereid-shape").toString()).isEqualTo("[-1,16]");
        assertThat(schemas.path("Output1").path("properties").path("name").toString())
                .contains("OUTPUT1");
        JsonNode instance = document("/v1/models/two_inputs/openapi.json")
                .path("components")
                .path("schemas")
                .path("Instance");
        assertThat(instance.path("required").toString()).isEqualTo("[\"INPUT0\",\"INPUT1\"]");
        assertThat(instance.path("properties").path("INPUT0").path("minItems").asInt())
                .isEqualTo(16);
    }

    @Test
    void anExampleHasTheShapeOfTheWarmUp() throws Exception {
        assertThat(examples("/v2/models/warm/openapi.json").toString()).contains("\"shape\":[1,7]");
    }

    @Test
    void sequencesAndDecoupledModelsHaveTheRequestsThatTheyTake() throws Exception {
        Map<URI, JsonNode> turns = examples("/v2/models/turns/openapi.json");
        assertThat(turns.toString()).contains("\"sequence_start\":true");
        answered(turns);
        Map<URI, JsonNode> many = examples("/v2/models/many/openapi.json");
        assertThat(many.keySet().toString()).contains("/generate_stream").doesNotContain("/infer");
        answered(many);
        assertThat(examples("/v1/models/many/openapi.json")).isEmpty();
    }

    @Test
    void anExampleThatWouldBeLongIsLeftOut() throws Exception {
        assertThat(examples("/v2/models/huge/openapi.json")).isEmpty();
        assertThat(document("/v2/models/huge/openapi.json").path("paths").has("/v2/models/huge/infer"))
                .isTrue();
    }

    @Test
    void unknownModelsAndVersionsAreNamed() throws Exception {
        for (String path : new String[] {
            "/v2/models/missing/openapi.json",
            "/v1/models/missing/openapi.json",
            "/v2/models/texts/versions/9/openapi.json",
            "/v1/models/texts/versions/9/openapi.json"
        }) {
            HttpResponse<String> answer =
                    CLIENT.send(HttpRequest.newBuilder(server.uri(path)).build(), BodyHandlers.ofString());
            assertThat(answer.statusCode()).as(path).isEqualTo(404);
            assertThat(answer.body()).contains(path.contains("missing") ? "missing" : "texts");
        }
        HttpResponse<String> answer = CLIENT.send(
                HttpRequest.newBuilder(server.uri("/v1/models/texts/versions/x/openapi.json"))
                        .build(),
                BodyHandlers.ofString());
        assertThat(answer.statusCode()).isEqualTo(400);
    }

    /** A client that only knows the server's document can reach the documents of its models. */
    @Test
    void referencesOfADocumentResolve() throws Exception {
        for (String path :
                new String[] {"/openapi.json", "/v2/models/two_inputs/openapi.json", "/v1/models/texts/openapi.json"}) {
            JsonNode document = document(path);
            Set<String> targets = new TreeSet<>();
            document.findValuesAsText("$ref").forEach(targets::add);
            assertThat(targets).isNotEmpty();
            for (String target : targets) {
                assertThat(document.at(target.substring(1)).isMissingNode())
                        .as(path + " " + target)
                        .isFalse();
            }
        }
    }
}
