// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.conformance;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.zip.GZIPOutputStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Tables as Arrow streams to a real server, against the same rows in JSON: a random forest and the identity model. */
class ArrowTest {
    private static final String STREAM = "application/vnd.apache.arrow.stream";
    private static final String JSON_TYPE = "application/json";
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Path ROOT = Path.of("..", "..");
    private static final String ROWS = "[[5.1,3.5,1.4,0.2],[6.2,2.9,4.3,1.3],[4.9,3.0,1.5,0.1]]";
    private static final HttpClient CLIENT =
            HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();

    @TempDir
    static Path repository;

    private static ServerProcess server;

    @BeforeAll
    static void start() throws Exception {
        Files.createDirectories(repository.resolve("forest/1"));
        Files.copy(
                ROOT.resolve("backends/sklearn/src/test/resources/models/1.9.1/forest.joblib"),
                repository.resolve("forest/1/model.joblib"));
        Files.createDirectories(repository.resolve("identity/1"));
        Files.writeString(
                repository.resolve("identity/config.pbtxt"),
                "backend: \"identity\" input { name: \"INPUT0\" data_type: TYPE_FP64 dims: [ -1, -1 ] }"
                        + " output { name: \"OUTPUT0\" data_type: TYPE_FP64 dims: [ -1, -1 ] }");
        server = ServerProcess.serve(repository);
    }

    @AfterAll
    static void stop() {
        if (server != null) {
            server.close();
        }
    }

    private static byte[] table(String fixture) throws IOException {
        return Files.readAllBytes(
                ROOT.resolve("protocols/v2/src/test/resources/arrow").resolve(fixture));
    }

    private static HttpResponse<byte[]> infer(String model, byte[] body, String... headers) throws Exception {
        return CLIENT.send(
                HttpRequest.newBuilder(server.uri("/v2/models/" + model + "/infer"))
                        .headers(headers)
                        .POST(BodyPublishers.ofByteArray(body))
                        .build(),
                BodyHandlers.ofByteArray());
    }

    private static String type(HttpResponse<byte[]> response) {
        return response.headers().firstValue("content-type").orElse("");
    }

    private static JsonNode outputs(HttpResponse<byte[]> response) throws IOException {
        String text = new String(response.body(), StandardCharsets.UTF_8);
        assertThat(response.statusCode()).as(text).isEqualTo(200);
        assertThat(type(response)).isEqualTo(JSON_TYPE);
        return JSON.readTree(text).get("outputs");
    }

    private static JsonNode outputsOfJson(String model) throws Exception {
        HttpResponse<byte[]> metadata = CLIENT.send(
                HttpRequest.newBuilder(server.uri("/v2/models/" + model)).build(), BodyHandlers.ofByteArray());
        JsonNode input = JSON.readTree(metadata.body()).get("inputs").get(0);
        String request = "{\"inputs\":[{\"name\":" + input.get("name") + ",\"shape\":[3,4],\"datatype\":"
                + input.get("datatype") + ",\"data\":" + ROWS + "}]}";
        return outputs(infer(model, request.getBytes(StandardCharsets.UTF_8), "content-type", JSON_TYPE));
    }

    @Test
    void aForestAnswersATableAsItAnswersItsRowsInJson() throws Exception {
        JsonNode expected = outputsOfJson("forest");
        assertThat(outputs(infer("forest", table("iris.arrows"), "content-type", STREAM, "accept", JSON_TYPE)))
                .isEqualTo(expected);
        HttpResponse<byte[]> response = infer("forest", table("iris.arrows"), "content-type", STREAM);
        assertThat(response.statusCode()).isEqualTo(200);
        assertThat(type(response)).isEqualTo(STREAM);
    }

    @Test
    void theIdentityModelAnswersWithTheTable() throws Exception {
        assertThat(outputs(infer("identity", table("iris.arrows"), "content-type", STREAM, "accept", JSON_TYPE)))
                .isEqualTo(outputsOfJson("identity"));
        HttpResponse<byte[]> response = infer("identity", table("iris.arrows"), "content-type", STREAM);
        assertThat(type(response)).isEqualTo(STREAM);
        // the response is a table of one column of lists, which a tabular model takes under any name
        assertThat(outputs(infer("forest", response.body(), "content-type", STREAM, "accept", JSON_TYPE)))
                .isEqualTo(outputsOfJson("forest"));
    }

    @Test
    void aBodyMayBeCompressed() throws Exception {
        ByteArrayOutputStream packed = new ByteArrayOutputStream();
        try (GZIPOutputStream out = new GZIPOutputStream(packed)) {
            out.write(table("iris.arrows"));
        }
        assertThat(outputs(infer(
                        "forest",
                        packed.toByteArray(),
                        "content-type",
                        STREAM,
                        "content-encoding",
                        "gzip",
                        "accept",
                        JSON_TYPE)))
                .isEqualTo(outputsOfJson("forest"));
    }

    private static String error(HttpResponse<byte[]> response) throws IOException {
        assertThat(type(response)).isEqualTo(JSON_TYPE);
        return JSON.readTree(response.body()).get("error").asText();
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "dictionary.arrows | column 'x' has a type that is not supported: dictionary",
                "zstd.arrows | the buffers of the Arrow stream are compressed with ZSTD",
                "null_list.arrows | column 'x' has a null in place of a list",
                "file.arrow | the body is an Arrow file",
            })
    void whatIsWrongIsAnErrorInJson(String fixture, String message) throws Exception {
        HttpResponse<byte[]> response = infer("identity", table(fixture), "content-type", STREAM);
        assertThat(response.statusCode()).isEqualTo(400);
        assertThat(error(response)).startsWith(message);
    }

    @Test
    void theFormatOfFilesIsAnUnsupportedMediaType() throws Exception {
        HttpResponse<byte[]> response =
                infer("identity", table("file.arrow"), "content-type", "application/vnd.apache.arrow.file");
        assertThat(response.statusCode()).isEqualTo(415);
        assertThat(error(response)).contains(STREAM);
    }
}
