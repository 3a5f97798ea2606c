// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.modelserver;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What clients of KServe's Python servers send and expect, of the containers that serve in their place. */
class KserveServersTest {
    private static final Path ROOT =
            Path.of("").toAbsolutePath().resolve("../..").normalize();
    private static final String SKLEARN = "backends/sklearn/src/test/resources/models/1.1.3/";
    private static final String TREES = "backends/trees/src/test/resources/models/";

    @TempDir
    Path directory;

    private PodProcess start(String model, String source, String file) throws Exception {
        Path folder = Files.createDirectories(directory.resolve("models"));
        Files.copy(ROOT.resolve(source), folder.resolve(file));
        return PodProcess.start("modelFormat: {name: " + model + "}, storageUri: 'gs://models/iris'", "", folder);
    }

    private static JsonNode ok(PodProcess pod, String path, String body) throws Exception {
        HttpResponse<String> response = pod.post(path, body);
        assertThat(response.statusCode()).as(body + " -> " + response.body()).isEqualTo(200);
        return pod.json(response);
    }

    private static String names(PodProcess pod) throws Exception {
        return pod.json(pod.get("/v2/models/iris"))
                .at("/properties/feature_names")
                .asText();
    }

    private static int width(PodProcess pod) throws Exception {
        return pod.json(pod.get("/v2/models/iris")).at("/inputs/0/shape/1").asInt();
    }

    private static String zeros(int width) {
        return "[" + "0,".repeat(width - 1) + "0]";
    }

    private static String infer(int width, String more) {
        return "{\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP64\",\"shape\":[1," + width + "],\"data\":" + zeros(width)
                + "}]" + more + "}";
    }

    @ParameterizedTest
    @CsvSource(textBlock = """
            sklearn,  backends/sklearn/src/test/resources/models/1.1.3/ridge.joblib,                         model.joblib
            xgboost,  backends/trees/src/test/resources/models/xgboost/binary-logistic-gbtree.ubj,           model.ubj
            lightgbm, backends/trees/src/test/resources/models/lightgbm/binary-gbdt-nomissing-missing.txt,   model.bst
            """)
    void outputsHaveTheirNameAndInputsAreAnsweredWithPredictions(String format, String source, String file)
            throws Exception {
        try (PodProcess pod = start(format, source, file)) {
            int width = width(pod);
            JsonNode answer = ok(pod, "/v2/models/iris/infer", infer(width, ""));
            assertThat(answer.at("/outputs/0/name").asText()).isEqualTo("output-0");
            assertThat(pod.json(pod.get("/v2/models/iris"))
                            .at("/outputs/0/name")
                            .asText())
                    .isEqualTo("output-0");
            JsonNode named = ok(pod, "/v2/models/iris/infer", infer(width, ",\"outputs\":[{\"name\":\"output-0\"}]"));
            assertThat(named.path("outputs")).isEqualTo(answer.path("outputs"));
            String v1 = "/v1/models/iris:predict";
            JsonNode rows = ok(pod, v1, "{\"instances\":[" + zeros(width) + "]}");
            assertThat(rows.path("predictions")).hasSize(1);
            assertThat(ok(pod, v1, "{\"inputs\":[" + zeros(width) + "]}")).isEqualTo(rows);
            // both: KServe's servers take the inputs
            assertThat(ok(pod, v1, "{\"instances\":[],\"inputs\":[" + zeros(width) + "]}"))
                    .isEqualTo(rows);
        }
    }

    @Test
    void theOutputsOfMlserverKeepTheirName() throws Exception {
        try (PodProcess pod =
                start("sklearn}, protocolVersion: v2, resources: {", SKLEARN + "ridge.joblib", "model.joblib")) {
            int width = width(pod);
            JsonNode answer = ok(pod, "/v2/models/iris/infer", infer(width, ""));
            assertThat(answer.at("/outputs/0/name").asText()).isEqualTo("predict");
            JsonNode columns = ok(pod, "/v1/models/iris:predict", "{\"inputs\":[" + zeros(width) + "]}");
            assertThat(columns.has("outputs")).isTrue();
        }
    }

    @Test
    void aTableComesInTheFormsOfADataFrame() throws Exception {
        try (PodProcess pod = start("lightgbm", TREES + "lightgbm/binary-gbdt-nomissing-missing.txt", "model.bst")) {
            List<String> names = List.of(names(pod).split(","));
            assertThat(names).hasSizeGreaterThan(1);
            List<String> rows = new ArrayList<>();
            List<String> objects = new ArrayList<>();
            List<String> columns = new ArrayList<>();
            List<String> labelled = new ArrayList<>();
            for (int c = 0; c < names.size(); c++) {
                String one = (c + 1) * 0.5 + "";
                String other = (c + 1) * -0.25 + "";
                rows.add(one);
                objects.add("\"" + names.get(c) + "\":" + one);
                columns.add("\"" + names.get(c) + "\":[" + one + "," + other + "]");
                labelled.add(0, "\"" + names.get(c) + "\":{\"0\":" + one + ",\"1\":" + other + "}");
            }
            String others = String.join(
                    ",",
                    names.stream()
                            .map(name -> "\"" + name + "\":" + (names.indexOf(name) + 1) * -0.25)
                            .toList());
            String v1 = "/v1/models/iris:predict";
            String second = String.join(
                    ",",
                    names.stream().map(n -> (names.indexOf(n) + 1) * -0.25 + "").toList());
            JsonNode expected = ok(pod, v1, "{\"instances\":[[" + String.join(",", rows) + "],[" + second + "]]}");
            assertThat(expected.path("predictions")).hasSize(2);
            for (String field : List.of("instances", "inputs")) {
                String begin = "{\"" + field + "\":[";
                String rowByRow = begin + "{" + String.join(",", objects) + "},{" + others + "}]}";
                assertThat(ok(pod, v1, rowByRow)).isEqualTo(expected);
                assertThat(ok(pod, v1, begin + "{" + String.join(",", columns) + "}]}"))
                        .isEqualTo(expected);
                assertThat(ok(pod, v1, begin + "{" + String.join(",", labelled) + "}]}"))
                        .isEqualTo(expected);
                String list = begin + "[{" + String.join(",", objects) + "},{" + others + "}]]}";
                assertThat(ok(pod, v1, list)).isEqualTo(expected);
            }
            // LightGBM's server leaves out other columns, and a column that is not given has missing values.
            JsonNode missing =
                    ok(pod, v1, "{\"instances\":[{\"" + names.get(0) + "\":{\"0\":0.5},\"other\":{\"0\":1}}]}");
            JsonNode nans = ok(pod, v1, "{\"instances\":[[0.5" + ",NaN".repeat(names.size() - 1) + "]]}");
            assertThat(missing).isEqualTo(nans);
            HttpResponse<String> unlike = pod.post(v1, "{\"instances\":[{\"other\":[1]}]}");
            assertThat(unlike.statusCode()).isEqualTo(400);
            assertThat(unlike.body()).contains("any of the model's columns", names.get(0));
            HttpResponse<String> uneven =
                    pod.post(v1, "{\"instances\":[{\"" + names.get(0) + "\":[1,2],\"" + names.get(1) + "\":[1]}]}");
            assertThat(uneven.statusCode()).isEqualTo(400);
            assertThat(uneven.body()).contains("has 1 values (expected: 2");
        }
    }

    @Test
    void aModelFittedOnADataFrameTakesObjectsOfItsColumns() throws Exception {
        try (PodProcess pod = start("sklearn", SKLEARN + "frame_numbers.joblib", "model.joblib")) {
            List<String> names = List.of(names(pod).split(","));
            String values = String.join(
                    ",", names.stream().map(name -> "\"" + name + "\":0.5").toList());
            String array = String.join(",", names.stream().map(name -> "0.5").toList());
            String v1 = "/v1/models/iris:predict";
            JsonNode expected = ok(pod, v1, "{\"instances\":[[" + array + "]]}");
            assertThat(ok(pod, v1, "{\"instances\":[{" + values + "}]}")).isEqualTo(expected);
            assertThat(ok(pod, v1, "{\"inputs\":[{" + values.replace("0.5", "{\"7\":0.5}") + "}]}"))
                    .isEqualTo(expected);
            HttpResponse<String> unknown = pod.post(v1, "{\"instances\":[{" + values + ",\"color\":1}]}");
            assertThat(unknown.statusCode()).isEqualTo(400);
            assertThat(unknown.body()).contains("'color' is not a column of the model");
            HttpResponse<String> missing = pod.post(v1, "{\"instances\":[{\"" + names.get(0) + "\":1}]}");
            assertThat(missing.statusCode()).isEqualTo(400);
            assertThat(missing.body()).contains("The column '" + names.get(1) + "' is missing");
        }
    }

    @Test
    void aModelWithoutNamesTakesTheColumnsOfADataFrameInTheirOrder() throws Exception {
        try (PodProcess pod = start("sklearn", SKLEARN + "ridge.joblib", "model.joblib")) {
            int width = width(pod);
            StringBuilder row = new StringBuilder();
            StringBuilder object = new StringBuilder();
            for (int c = 0; c < width; c++) {
                row.append(c == 0 ? "" : ",").append(c + 0.5);
                object.append(c == 0 ? "" : ",")
                        .append("\"c")
                        .append(c)
                        .append("\":")
                        .append(c + 0.5);
            }
            String v1 = "/v1/models/iris:predict";
            JsonNode expected = ok(pod, v1, "{\"instances\":[[" + row + "]]}");
            assertThat(ok(pod, v1, "{\"inputs\":[{" + object + "}]}")).isEqualTo(expected);
            HttpResponse<String> few = pod.post(v1, "{\"inputs\":[{\"a\":1}]}");
            assertThat(few.statusCode()).isEqualTo(400);
            assertThat(few.body()).contains("1 columns (expected: " + width + ")");
        }
    }

    @Test
    void theColumnsOfADataFrameInOpenInferenceNeedNoNames() throws Exception {
        try (PodProcess pod = start("sklearn", SKLEARN + "ridge.joblib", "model.joblib")) {
            int width = width(pod);
            StringBuilder row = new StringBuilder();
            StringBuilder columns = new StringBuilder();
            for (int c = 0; c < width; c++) {
                row.append(c == 0 ? "" : ",").append(c + 0.5);
                columns.append(c == 0 ? "" : ",").append("{\"name\":\"any").append(c);
                columns.append("\",\"datatype\":\"FP32\",\"shape\":[1],\"data\":[")
                        .append(c + 0.5)
                        .append("]}");
            }
            String v2 = "/v2/models/iris/infer";
            JsonNode expected = ok(
                    pod,
                    v2,
                    "{\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP64\",\"shape\":[1," + width + "],\"data\":[" + row
                            + "]}]}");
            String body = "{\"parameters\":{\"content_type\":\"pd\"},\"inputs\":[" + columns + "]}";
            assertThat(ok(pod, v2, body).at("/outputs/0/data")).isEqualTo(expected.at("/outputs/0/data"));
            assertThat(pod.post(v2, body.replace("\"pd\"", "\"np\"")).statusCode())
                    .isEqualTo(400);
        }
    }
}
