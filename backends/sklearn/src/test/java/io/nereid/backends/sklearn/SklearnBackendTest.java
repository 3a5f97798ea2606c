// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import com.fasterxml.jackson.databind.JsonNode;
import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelLocation;
import io.nereid.backends.sklearn.pickle.Fixtures;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SklearnBackendTest {
    @TempDir
    Path directory;

    private static JsonNode fixture(String name) {
        return Fixtures.expected(Fixtures.NEW).get(name);
    }

    private static double[] rows(String name) {
        JsonNode rows = fixture(name).get("rows");
        List<Double> all = new ArrayList<>();
        for (JsonNode row : rows) {
            for (JsonNode cell : row) {
                all.add(Fixtures.number(cell));
            }
        }
        return all.stream().mapToDouble(Double::doubleValue).toArray();
    }

    private static List<Object> answers(String name, String method) {
        List<Object> all = new ArrayList<>();
        for (JsonNode row : fixture(name).get("answers").get(method)) {
            if (row.isArray()) {
                row.forEach(cell -> all.add(Fixtures.number(cell)));
            } else {
                all.add(
                        row.isTextual()
                                ? row.asText()
                                : row.isIntegralNumber() ? (Object) row.asLong() : row.asDouble());
            }
        }
        return all;
    }

    @Test
    void aModelIsServedWithoutConfiguration() {
        try (BackendModel model = Models.load(Models.of(directory, "logistic_three"))) {
            assertThat(model.config().inputs()).containsExactly(new TensorSpec("input-0", DataType.FP64, Shape.of(4)));
            assertThat(model.config().outputs())
                    .containsExactly(new TensorSpec("predict", DataType.INT64, Shape.SCALAR));
            double[] rows = rows("logistic_three");
            assertThat(Models.run(model, "predict", Models.doubles("input-0", Shape.of(rows.length / 4, 4), rows)))
                    .isEqualTo(answers("logistic_three", "predict"));
        }
    }

    @Test
    void onlyQuickModelsOfFewRowsStayOnTheThreadThatReadTheRequest() {
        ModelConfig few = ModelConfig.builder("m").maxBatchSize(64).build();
        ModelConfig many = ModelConfig.builder("m").maxBatchSize(65).build();
        try (BackendModel quick = Models.load(Models.of(directory, "pipeline"), few);
                BackendModel large = Models.load(Models.of(directory, "pipeline"), many);
                BackendModel slow = Models.load(Models.of(directory, "knn"), few)) {
            assertThat(quick.traits().inline()).isTrue();
            assertThat(large.traits().inline()).isFalse();
            assertThat(slow.traits().inline()).isFalse();
        }
    }

    @Test
    void labelsThatAreTextComeAsText() {
        try (BackendModel model = Models.load(Models.of(directory, "svc_three"))) {
            assertThat(model.config().outputs())
                    .containsExactly(new TensorSpec("predict", DataType.BYTES, Shape.SCALAR));
            double[] rows = rows("svc_three");
            assertThat(Models.run(model, "predict", Models.doubles("input-0", Shape.of(rows.length / 4, 4), rows)))
                    .isEqualTo(answers("svc_three", "predict"));
        }
    }

    @Test
    void theRequestChoosesAmongTheMethodsOfTheConfiguration() {
        ModelConfig config = Models.with("m", Map.of("method", "predict, predict_proba,decision_function"));
        try (BackendModel model = Models.load(Models.of(directory, "logistic_three"), config)) {
            assertThat(model.config().outputs())
                    .extracting(TensorSpec::name)
                    .containsExactly("predict", "predict_proba", "decision_function");
            assertThat(model.config().outputs().get(1).shape()).isEqualTo(Shape.of(3));
            double[] rows = rows("logistic_three");
            for (String method : List.of("predict_proba", "decision_function")) {
                List<Object> got =
                        Models.run(model, method, Models.doubles("input-0", Shape.of(rows.length / 4, 4), rows));
                List<Object> expected = answers("logistic_three", method);
                assertThat(got).hasSameSizeAs(expected);
                for (int i = 0; i < got.size(); i++) {
                    assertThat((Double) got.get(i)).isCloseTo((Double) expected.get(i), within(1e-12));
                }
            }
        }
    }

    @Test
    void kserveNamesTheMethodItsWay() {
        ModelConfig config = Models.with("m", Map.of("predict_fn", "predict_proba"));
        try (BackendModel model = Models.load(Models.of(directory, "forest"), config)) {
            assertThat(model.config().outputs()).extracting(TensorSpec::name).containsExactly("predict_proba");
        }
    }

    @Test
    void aMethodThatTheModelDoesNotHaveIsRefused() {
        ModelConfig config = Models.with("m", Map.of("method", "predict_proba"));
        assertThatThrownBy(() -> Models.load(Models.of(directory, "linear"), config))
                .isInstanceOfSatisfying(ServingException.class, e -> {
                    assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
                    assertThat(e.getMessage()).contains("predict_proba", "LinearRegression", "predict");
                });
    }

    /** One value per row: a dimension of 1 for clients, none for the model. */
    private static TensorSpec column(String name, DataType type) {
        return new TensorSpec(name, type, Shape.of(1), false, false, Shape.SCALAR);
    }

    @Test
    void columnsWithoutABatchDimensionAreAsTheyWere() {
        ModelConfig config = ModelConfig.builder("m").maxBatchSize(0).build();
        try (BackendModel model = Models.load(Models.of(directory, "frame_model"), config)) {
            assertThat(model.config().inputs().get(0)).isEqualTo(new TensorSpec("age", DataType.FP64, Shape.of(-1)));
        }
    }

    @Test
    void probabilitiesAreTheAnswerWhereTheServerOrItsEnvironmentOrTheModelSaysSo() {
        ModelConfig plain = ModelConfig.unspecified("m");
        assertThat(answer(Map.of("PREDICT_PROBA", "true"), Map.of(), "boost", plain))
                .isEqualTo("predict_proba");
        assertThat(answer(Map.of(), Map.of("predict-proba", "true"), "boost", plain))
                .isEqualTo("predict_proba");
        assertThat(answer(Map.of("PREDICT_PROBA", "true"), Map.of("predict-proba", "false"), "boost", plain))
                .isEqualTo("predict");
        assertThat(answer(
                        Map.of("PREDICT_PROBA", "True"),
                        Map.of(),
                        "boost",
                        Models.with("m", Map.of("method", "predict"))))
                .isEqualTo("predict");
        assertThat(answer(Map.of(), Map.of(), "boost", Models.with("m", Map.of("predict_proba", "true"))))
                .isEqualTo("predict_proba");
        // A classifier without probabilities keeps its default method.
        assertThat(answer(Map.of("PREDICT_PROBA", "true"), Map.of(), "linear", plain))
                .isEqualTo("predict");
    }

    private String answer(
            Map<String, String> environment, Map<String, String> settings, String fixture, ModelConfig config) {
        ModelLocation source = Models.of(directory, fixture);
        try (BackendModel model = new SklearnBackend(environment)
                .load(source, config, new BackendContext(1, source.modelDirectory(), settings))) {
            return model.config().outputs().get(0).name();
        }
    }

    @Test
    void severalTargetsAreColumns() {
        try (BackendModel model = Models.load(
                Models.of(directory, "forest_many"), Models.with("m", Map.of("method", "predict,predict_proba")))) {
            assertThat(model.config().outputs())
                    .containsExactly(
                            new TensorSpec("predict", DataType.INT64, Shape.of(2)),
                            new TensorSpec("predict_proba", DataType.FP64, Shape.of(5)));
        }
    }

    @Test
    void aDataFrameWithTextHasAnInputForEachColumn() {
        try (BackendModel model = Models.load(Models.of(directory, "frame_model"))) {
            assertThat(model.config().inputs())
                    .containsExactly(
                            column("age", DataType.FP64),
                            column("city", DataType.BYTES),
                            column("size", DataType.BYTES),
                            column("income", DataType.FP64));
            assertThat(model.config().batched()).isTrue();
            JsonNode rows = fixture("frame_model").get("rows");
            int n = rows.size();
            Shape shape = Shape.of(n);
            double[] age = new double[n];
            double[] income = new double[n];
            String[] city = new String[n];
            String[] size = new String[n];
            for (int i = 0; i < n; i++) {
                age[i] = Fixtures.number(rows.get(i).get(0));
                city[i] = rows.get(i).get(1).asText();
                size[i] = rows.get(i).get(2).asText();
                income[i] = rows.get(i).get(3).asDouble();
            }
            // Inputs are matched by name, in any order.
            assertThat(Models.run(
                            model,
                            "predict",
                            Models.texts("size", shape, size),
                            Models.doubles("age", shape, age),
                            Models.doubles("income", shape, income),
                            Models.texts("city", shape, city)))
                    .isEqualTo(answers("frame_model", "predict"));
        }
    }

    @Test
    void anEmptyTextIsAMissingValueForAnImputer() {
        // The imputer of this column takes the most frequent city.
        ModelConfig config = Models.with("m", Map.of("method", "predict_proba"));
        try (BackendModel model = Models.load(Models.of(directory, "frame_model"), config)) {
            List<List<Object>> answers = new ArrayList<>();
            for (String city : List.of("", "Bern", "Zürich", "Genève")) {
                answers.add(Models.run(
                        model,
                        "predict_proba",
                        Models.doubles("age", Shape.of(1), 40),
                        Models.texts("city", Shape.of(1), city),
                        Models.texts("size", Shape.of(1), "M"),
                        Models.doubles("income", Shape.of(1), 600)));
            }
            assertThat(answers.subList(1, 4)).doesNotHaveDuplicates().contains(answers.get(0));
        }
    }

    @Test
    void aDataFrameOfNumbersIsAMatrixOrColumnsAsTheConfigurationSays() {
        try (BackendModel matrix = Models.load(Models.of(directory, "frame_numbers"))) {
            assertThat(matrix.config().inputs()).hasSize(1);
            assertThat(matrix.config().parameters()).containsEntry("feature_names", "a,b,c,d");
            assertThat(matrix.traits().takesTables()).isTrue();
        }
        ModelConfig config = Models.with("m", Map.of("inputs", "columns", "input_type", "FP32"));
        try (BackendModel columns = Models.load(Models.of(directory, "frame_numbers"), config)) {
            assertThat(columns.config().inputs()).extracting(TensorSpec::name).containsExactly("a", "b", "c", "d");
            double[] rows = rows("frame_numbers");
            List<Tensor> inputs = new ArrayList<>();
            for (int c = 0; c < 4; c++) {
                inputs.add(Models.floats("abcd".substring(c, c + 1), Shape.of(1), rows[c]));
            }
            Object got = Models.run(columns, "predict", inputs.toArray(Tensor[]::new))
                    .get(0);
            assertThat((Double) got)
                    .isCloseTo((Double) answers("frame_numbers", "predict").get(0), within(1e-4));
        }
    }

    @Test
    void textGoesIntoTextModels() {
        try (BackendModel model = Models.load(Models.of(directory, "text_model"))) {
            assertThat(model.config().inputs()).containsExactly(column("input-0", DataType.BYTES));
            JsonNode rows = fixture("text_model").get("rows");
            String[] texts = new String[rows.size()];
            for (int i = 0; i < texts.length; i++) {
                texts[i] = rows.get(i).get(0).asText();
            }
            assertThat(Models.run(model, "predict", Models.texts("input-0", Shape.of(texts.length), texts)))
                    .isEqualTo(answers("text_model", "predict"));
        }
    }

    @Test
    void theConfigurationMayNameTensorsAndTypes() {
        ModelConfig config = ModelConfig.builder("m")
                .maxBatchSize(0)
                .inputs(List.of(new TensorSpec("x", DataType.FP32, Shape.of(-1, 4))))
                .outputs(List.of(
                        new TensorSpec("predict_proba", DataType.FP32, Shape.of(-1, 3)),
                        new TensorSpec("predict", DataType.INT32, Shape.of(-1, 1))))
                .build();
        try (BackendModel model = Models.load(Models.of(directory, "logistic_three"), config)) {
            assertThat(model.config().inputs()).isEqualTo(config.inputs());
            assertThat(Models.run(model, "predict", Models.floats("x", Shape.of(1, 4), 1, 5, 1, -50))
                            .get(0))
                    .isInstanceOf(Integer.class);
            assertThat(Models.run(model, "predict_proba", Models.floats("x", Shape.of(2, 4), 1, 5, 1, -50, 1, 1, 1, 1)))
                    .hasSize(6)
                    .allSatisfy(p -> assertThat((Float) p).isBetween(0f, 1f));
        }
    }

    @Test
    void configurationsThatDoNotFitAreRefused() {
        List<ModelConfig> wrong = List.of(
                ModelConfig.builder("m")
                        .inputs(List.of(new TensorSpec("x", DataType.FP64, Shape.of(5))))
                        .build(),
                ModelConfig.builder("m")
                        .inputs(List.of(new TensorSpec("x", DataType.BF16, Shape.of(4))))
                        .build(),
                ModelConfig.builder("m")
                        .outputs(List.of(new TensorSpec("y", DataType.BYTES, Shape.of(1))))
                        .build(),
                ModelConfig.builder("m")
                        .outputs(List.of(new TensorSpec("transform", DataType.FP64, Shape.of(1))))
                        .build(),
                Models.with("m", Map.of("inputs", "rows")),
                Models.with("m", Map.of("input_type", "FP16")));
        ModelLocation source = Models.of(directory, "logistic_three");
        for (ModelConfig config : wrong) {
            assertThatThrownBy(() -> Models.load(
                            source, config.toBuilder().maxBatchSize(8).build()))
                    .isInstanceOfSatisfying(ServingException.class, e -> {
                        assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
                        assertThat(e.remedy()).isNotBlank();
                    });
        }
    }

    @Test
    void badValuesAreTheClientsFault() {
        try (BackendModel model = Models.load(Models.of(directory, "logistic_three"));
                BackendModel encoder = Models.load(Models.of(directory, "onehot"))) {
            assertThatThrownBy(() -> Models.run(
                            model, "predict", Models.doubles("input-0", Shape.of(1, 4), 1, Double.NaN, 1, 1)))
                    .isInstanceOfSatisfying(ServingException.class, e -> {
                        assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
                        assertThat(e.getMessage()).contains("LogisticRegression", "NaN");
                    });
            assertThatThrownBy(
                            () -> Models.run(encoder, "transform", Models.doubles("input-0", Shape.of(1, 3), 1, 77, 1)))
                    .isInstanceOfSatisfying(ServingException.class, e -> {
                        assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
                        assertThat(e.getMessage()).contains("unknown category", "77");
                    });
        }
    }

    @Test
    void everyFixtureIsServed() {
        for (String version : Fixtures.VERSIONS) {
            Fixtures.expected(version).properties().forEach(e -> {
                try (BackendModel model = Models.load(Models.of(directory, version, e.getKey()))) {
                    assertThat(model.config().outputs()).as(e.getKey()).isNotEmpty();
                }
            });
        }
    }

    @Test
    void requestsChooseMethodsByTheNamesOfOutputsOrAParameter() {
        try (BackendModel model = Models.load(Models.of(directory, "logistic_three"))) {
            assertThat(model.signatures().keySet())
                    .containsExactlyInAnyOrder(
                            "predict_proba", "predict_log_proba", "decision_function", MethodSignatures.ALL);
            assertThat(model.signatureWith(List.of("predict_proba"))).isEqualTo("predict_proba");
            assertThat(model.signatureWith(List.of("predict", "predict_proba"))).isEqualTo(MethodSignatures.ALL);
            assertThat(model.signatureWith(List.of("other"))).isEmpty();
            assertThat(model.signature(Map.of("method", "decision_function"))).isEqualTo("decision_function");
            assertThat(model.signature(Map.of("predict_fn", "predict"))).isEmpty();
            assertThatThrownBy(() -> model.signature(Map.of("method", "transform")))
                    .hasMessageContaining("parameter 'method' is 'transform'")
                    .hasMessageContaining("predict_proba");
            assertThat(model.signatures().get("predict_proba").outputs())
                    .containsExactly(new TensorSpec("predict_proba", DataType.FP64, Shape.of(3)));
            double[] rows = rows("logistic_three");
            try (var instance = model.newInstance("predict_proba")) {
                Tensor input = Models.doubles("input-0", Shape.of(rows.length / 4, 4), rows);
                List<Tensor> results = instance.run(List.of(input), List.of("predict_proba"));
                assertThat(results.get(0).shape()).isEqualTo(Shape.of(rows.length / 4, 3));
                assertThat(results.get(0).buffer().getDouble())
                        .isCloseTo(
                                (Double) answers("logistic_three", "predict_proba")
                                        .get(0),
                                within(1e-9));
                Tensor.closeAll(results);
                input.close();
            }
        }
    }
}
