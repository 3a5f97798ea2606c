// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.pmml;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelInstance;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class AnswersTest {
    private static final ModelConfig OPEN = ModelConfig.unspecified("m");

    @TempDir
    Path directory;

    private static List<Tensor> run(BackendModel model, List<Tensor> inputs) {
        try (ModelInstance invocation = model.newInstance()) {
            return invocation.run(
                    inputs,
                    model.config().outputs().stream().map(TensorSpec::name).toList());
        } finally {
            Tensor.closeAll(inputs);
        }
    }

    private static List<List<String>> answers(BackendModel model, List<Tensor> inputs) {
        List<Tensor> results = run(model, inputs);
        List<List<String>> values = results.stream().map(Documents::values).toList();
        Tensor.closeAll(results);
        return values;
    }

    @ParameterizedTest
    @ValueSource(strings = {"iris-tree", "iris-logistic", "mixed"})
    void answersAreThoseOfScikitLearn(String name) {
        List<String[]> rows = Documents.expected(name);
        try (BackendModel model = Documents.load(directory, Documents.text(name), OPEN)) {
            List<Tensor> inputs = new ArrayList<>();
            int fields = 4;
            for (int c = 0; c < fields; c++) {
                TensorSpec spec = model.config().inputs().get(c);
                int place = c;
                inputs.add(Documents.column(
                        spec.name(),
                        spec.dataType(),
                        rows.stream().map(r -> r[place]).toList()));
            }
            List<List<String>> outputs = answers(model, inputs);
            assertThat(outputs).hasSize(rows.get(0).length - fields);
            for (int row = 0; row < rows.size(); row++) {
                for (int o = 0; o < outputs.size(); o++) {
                    String expected = rows.get(row)[fields + o];
                    String found = outputs.get(o).get(row);
                    if (model.config().outputs().get(o).dataType() == DataType.FP64) {
                        assertThat(Double.parseDouble(found)).isCloseTo(Double.parseDouble(expected), within(1e-9));
                    } else {
                        assertThat(found).isEqualTo(expected);
                    }
                }
            }
        }
    }

    @Test
    void theFirstFlowerIsAnsweredAsKserveExpects() {
        try (BackendModel model = Documents.load(directory, Documents.text("iris-tree"), OPEN)) {
            Tensor row =
                    Documents.tensor("input-0", DataType.FP32, Shape.of(1, 4), List.of("5.1", "3.5", "1.4", "0.2"));
            assertThat(answers(model, List.of(row)))
                    .containsExactly(List.of("setosa"), List.of("1.0"), List.of("0.0"), List.of("0.0"), List.of("2"));
        }
    }

    @Test
    void withoutThePredictedValueTheTargetIsAnsweredFirst() {
        String text = Documents.text("iris-tree");
        String without = text.replaceFirst("<OutputField[^>]*feature=\"predictedValue\"[^>]*/>", "");
        assertThat(without).isNotEqualTo(text).contains("<OutputField");
        try (BackendModel model = Documents.load(directory, without, OPEN)) {
            Tensor row =
                    Documents.tensor("input-0", DataType.FP32, Shape.of(1, 4), List.of("5.1", "3.5", "1.4", "0.2"));
            assertThat(model.config().outputs().get(0).dataType()).isEqualTo(DataType.BYTES);
            assertThat(model.config().outputs()).hasSize(5);
            assertThat(answers(model, List.of(row)))
                    .containsExactly(List.of("setosa"), List.of("1.0"), List.of("0.0"), List.of("0.0"), List.of("2"));
        }
    }

    @Test
    void namesAndTypesAreTheDocuments() {
        try (BackendModel model = Documents.load(directory, Documents.text("mixed"), OPEN)) {
            assertThat(model.config().inputs())
                    .containsExactly(
                            new TensorSpec("age", DataType.INT64, Shape.of(-1), true),
                            new TensorSpec("city", DataType.BYTES, Shape.of(-1), true),
                            new TensorSpec("member", DataType.BOOL, Shape.of(-1), true),
                            new TensorSpec("income", DataType.FP64, Shape.of(-1), true));
            assertThat(model.config().outputs()).containsExactly(new TensorSpec("cost", DataType.FP64, Shape.of(-1)));
            assertThat(model.config().parameters()).containsEntry("feature_names", "age,city,member,income");
        }
    }

    @Test
    void rowsOfNumbersMayBeOfMorePrecision() {
        ModelConfig config = ModelConfig.builder("m")
                .parameters(Map.of("input_type", "FP64"))
                .build();
        try (BackendModel model = Documents.load(directory, Documents.text("iris-logistic"), config)) {
            String[] row = Documents.expected("iris-logistic").get(1);
            Tensor rows = Documents.tensor(
                    "input-0", DataType.FP64, Shape.of(1, 4), Arrays.asList(row).subList(0, 4));
            assertThat(Double.parseDouble(answers(model, List.of(rows)).get(1).get(0)))
                    .isCloseTo(Double.parseDouble(row[5]), within(1e-12));
        }
    }

    @Test
    void aFieldThatIsLeftOutIsMissing() {
        try (BackendModel model = Documents.load(directory, Documents.text("mixed"), OPEN)) {
            List<String> age = List.of("30");
            List<String> member = List.of("true");
            List<List<String>> without = answers(
                    model,
                    List.of(
                            Documents.column("age", DataType.INT64, age),
                            Documents.column("member", DataType.BOOL, member)));
            List<List<String>> replaced = answers(
                    model,
                    List.of(
                            Documents.column("age", DataType.INT64, age),
                            Documents.column("city", DataType.BYTES, List.of("Bern")),
                            Documents.column("member", DataType.BOOL, member),
                            Documents.column("income", DataType.FP64, List.of("60"))));
            assertThat(without).isEqualTo(replaced);
            assertThat(without.get(0).get(0)).isNotEqualTo("NaN");
        }
    }

    @Test
    void aRowWithoutAnAnswerSaysSoWithoutHarmToOthers() {
        try (BackendModel model = Documents.load(directory, Documents.text("iris-tree"), OPEN)) {
            List<List<String>> some =
                    answers(model, List.of(Documents.column("petal_width", DataType.FP64, List.of("0.2", "", "2.0"))));
            assertThat(some.get(0)).containsExactly("setosa", "", "virginica");
            assertThat(some.get(1)).containsExactly("1.0", "NaN", "0.0");
        }
    }

    private void rejected(String name, List<Tensor> inputs, String... words) {
        try (BackendModel model = Documents.load(directory, Documents.text(name), OPEN)) {
            assertThatThrownBy(() -> run(model, inputs)).isInstanceOfSatisfying(ServingException.class, e -> {
                assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
                assertThat(e.getMessage()).contains(words);
            });
        }
    }

    @Test
    void aCategoryThatTheDocumentDoesNotKnowIsRefusedByName() {
        rejected(
                "mixed",
                List.of(Documents.column("city", DataType.BYTES, List.of("Bern", "Wien"))),
                "field 'city' is 'Wien' in row 1 (expected: one of Bern, Basel, Chur)");
    }

    @Test
    void aNumberOutsideTheDocumentsIntervalsIsRefused() {
        rejected(
                "mixed",
                List.of(Documents.column("age", DataType.INT64, List.of("151"))),
                "field 'age' is 151 in row 0");
    }

    @Test
    void inputsThatDoNotFitEachOtherAreRefused() {
        rejected(
                "iris-tree",
                List.of(
                        Documents.column("petal_width", DataType.FP64, List.of("1", "2")),
                        Documents.column("petal_length", DataType.FP64, List.of("1"))),
                "input 'petal_length' has 1 values (expected: 2");
        rejected(
                "iris-tree",
                List.of(
                        Documents.column("petal_width", DataType.FP64, List.of("1")),
                        Documents.tensor("input-0", DataType.FP32, Shape.of(1, 4), List.of("1", "2", "3", "4"))),
                "combined with single fields");
        rejected("iris-tree", List.of(), "has no inputs");
    }
}
