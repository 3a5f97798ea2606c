// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.mlflow;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelInstance;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SignatureTest {
    private static final ModelConfig OPEN = ModelConfig.unspecified("m");

    @TempDir
    Path directory;

    private static ServingException refusal(Path model, ModelConfig config) {
        try (BackendModel loaded = Models.load(model, config)) {
            throw new AssertionError("loaded " + loaded.config());
        } catch (ServingException e) {
            assertThat(e.remedy()).isNotBlank();
            return e;
        }
    }

    private Path changed(String name, String from, String to) {
        Path copy = Models.copy(name, directory);
        try {
            String text = Files.readString(copy.resolve("MLmodel"));
            assertThat(text).contains(from);
            Models.write(copy.resolve("MLmodel"), text.replace(from, to));
            return copy;
        } catch (java.io.IOException e) {
            throw new java.io.UncheckedIOException(e);
        }
    }

    @Test
    void columnsOfTheSignatureAreTheInputs() {
        try (BackendModel model = Models.load("sklearn-mixed-cloudpickle", OPEN)) {
            assertThat(model.config().inputs())
                    .containsExactly(
                            new TensorSpec("age", DataType.INT64, Shape.of(-1)),
                            new TensorSpec("city", DataType.BYTES, Shape.of(-1)),
                            new TensorSpec("income", DataType.FP64, Shape.of(-1)));
            assertThat(model.config().platform()).isEqualTo("mlflow_sklearn");
            assertThat(model.config().parameters())
                    .containsEntry("mlflow_flavor", "sklearn")
                    .containsEntry("feature_names", "age,city,income");
        }
    }

    @Test
    void theInputExampleIsTold() {
        try (BackendModel model = Models.load("sklearn-cloudpickle", OPEN)) {
            assertThat(model.config().parameters().get("mlflow_input_example")).contains("dataframe_split");
        }
    }

    @Test
    void withoutASignatureTheModelsOwnInputsStay() {
        try (BackendModel model = Models.load("sklearn-unsigned", OPEN)) {
            assertThat(model.config().inputs()).containsExactly(new TensorSpec("input-0", DataType.FP64, Shape.of(4)));
            assertThat(model.config().maxBatchSize()).isPositive();
        }
    }

    @Test
    void aMatrixMayBeAskedForInSpiteOfColumns() {
        ModelConfig config =
                ModelConfig.builder("m").parameters(Map.of("inputs", "matrix")).build();
        try (BackendModel model = Models.load("sklearn-cloudpickle", config);
                ModelInstance invocation = model.newInstance()) {
            assertThat(model.config().inputs()).extracting(TensorSpec::name).containsExactly("input-0");
            assertThat(model.config().parameters())
                    .containsEntry("feature_names", "sepal length,sepal width,petal length,petal width");
            Tensor rows = Models.tensor("input-0", DataType.FP64, Shape.of(1, 4), List.of(5.1, 3.5, 6.4, 2.2));
            List<Tensor> answer = invocation.run(List.of(rows), List.of("predict"));
            assertThat(Models.values(answer.get(0))).containsExactly(2L);
            Tensor.closeAll(answer);
            rows.close();
        }
    }

    @Test
    void tensorsOfTheSignatureSayTheirTypes() throws Exception {
        Path wide = changed("onnx", "\"float32\"", "\"float64\"");
        try (BackendModel model = Models.load(wide, OPEN);
                ModelInstance invocation = model.newInstance()) {
            assertThat(model.config().inputs().get(0).dataType()).isEqualTo(DataType.FP64);
            Tensor rows = Models.tensor(
                    model.config().inputs().get(0).name(), DataType.FP64, Shape.of(1, 4), List.of(5.1, 3.5, 6.4, 2.2));
            List<Tensor> answer = invocation.run(List.of(rows), List.of("label"));
            assertThat(Models.values(answer.get(0))).containsExactly(2L);
            Tensor.closeAll(answer);
            rows.close();
        }
    }

    @Test
    void classesOfXgboostAnswerWithTheClass() {
        try (BackendModel model = Models.load("xgboost-classifier", OPEN)) {
            assertThat(model.config().outputs())
                    .containsExactly(new TensorSpec("predict", DataType.INT64, Shape.of(-1)));
        }
    }

    @Test
    void columnsOfDifferentLengthsAreRefused() {
        try (BackendModel model = Models.load("xgboost-regressor", OPEN);
                ModelInstance invocation = model.newInstance()) {
            List<Tensor> inputs = new java.util.ArrayList<>();
            for (TensorSpec spec : model.config().inputs()) {
                List<Object> values = inputs.isEmpty() ? List.of(1, 2) : List.of(1);
                inputs.add(Models.tensor(spec.name(), spec.dataType(), Shape.of(values.size()), values));
            }
            assertThatThrownBy(() -> invocation.run(inputs, List.of("predict")))
                    .isInstanceOf(ServingException.class)
                    .hasMessageContaining("column 'sepal width' has 1 values (expected: 2");
            Tensor.closeAll(inputs);
        }
    }

    @Test
    void anOptionalColumnThatIsLeftOutIsMissing() {
        Path optional = changed(
                "xgboost-regressor",
                "\"petal width\", \"required\":\n    true",
                "\"petal width\", \"required\":\n    false");
        try (BackendModel model = Models.load(optional, OPEN);
                ModelInstance invocation = model.newInstance()) {
            assertThat(model.config().inputs().get(3).optional()).isTrue();
            List<Tensor> some = new java.util.ArrayList<>();
            for (TensorSpec spec : model.config().inputs().subList(0, 3)) {
                some.add(Models.tensor(spec.name(), spec.dataType(), Shape.of(1), List.of(2.5)));
            }
            List<Tensor> all = new java.util.ArrayList<>(some);
            all.add(Models.tensor("petal width", DataType.FP64, Shape.of(1), List.of(Double.NaN)));
            List<Tensor> without = invocation.run(some, List.of("predict"));
            List<Tensor> with = invocation.run(all, List.of("predict"));
            assertThat(Models.values(without.get(0))).isEqualTo(Models.values(with.get(0)));
            Tensor.closeAll(without);
            Tensor.closeAll(with);
            Tensor.closeAll(all);
        }
    }

    @Test
    void aSignatureThatIsNotTheModelsIsRefused() {
        ServingException e = refusal(
                changed(
                        "xgboost-regressor",
                        "\"name\": \"petal width\"",
                        "\"name\": \"nothing\"}, {\"type\": \"double\", \"name\": \"more\""),
                OPEN);
        assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
        assertThat(e.getMessage()).contains("its signature's columns");
    }

    @Test
    void aPythonFunctionNeedsTheBackendPython() {
        ServingException e = refusal(Models.ROOT.resolve("pyfunc"), OPEN);
        assertThat(e.code()).isEqualTo(ErrorCode.FAILED_PRECONDITION);
        assertThat(e.getMessage()).contains("needs the backend 'python'");
    }

    @Test
    void theFlavorMayBeSelected() {
        ModelConfig function =
                OPEN.toBuilder().parameters(Map.of("flavor", "python_function")).build();
        assertThat(refusal(Models.ROOT.resolve("sklearn-pickle"), function).getMessage())
                .contains("has the flavor 'python_function', which needs the backend 'python'");
        ModelConfig other =
                OPEN.toBuilder().parameters(Map.of("flavor", "prophet")).build();
        assertThat(refusal(Models.ROOT.resolve("sklearn-pickle"), other).getMessage())
                .contains("'flavor' 'prophet' (expected: one of python_function, sklearn");
    }

    @Test
    void aClassifierOfLightgbmReturnsItsLabelsOfAnyType() {
        try (BackendModel model = Models.load("lightgbm-truth", OPEN)) {
            assertThat(model.config().outputs().get(0).dataType()).isEqualTo(DataType.BOOL);
        }
    }

    @Test
    void aDamagedFileOfSkopsIsRefused() throws Exception {
        Path copy = Models.copy("lightgbm-regressor", directory);
        byte[] bytes = Files.readAllBytes(copy.resolve("model.skops"));
        Files.write(copy.resolve("model.skops"), Arrays.copyOf(bytes, bytes.length / 2));
        ServingException e = refusal(copy, OPEN);
        assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
        assertThat(e.getMessage()).contains("its archive is damaged");
    }

    @Test
    void anUnknownFlavourIsNamed() {
        assertThat(refusal(changed("pyfunc", "  python_function:", "  spark:"), OPEN)
                        .getMessage())
                .contains("in the flavors spark, none of which is supported");
    }

    @Test
    void aMissingFileOfTheModelIsNamed() throws Exception {
        Path copy = Models.copy("xgboost-regressor", directory);
        Files.delete(copy.resolve("model.json"));
        assertThat(refusal(copy, OPEN).getMessage()).contains("lacks 'model.json'");
    }

    @Test
    void aFileOutsideTheModelIsRefused() {
        assertThat(refusal(changed("xgboost-regressor", "    data: model.json", "    data: ../../etc/passwd"), OPEN)
                        .getMessage())
                .contains("lacks '../../etc/passwd'");
    }

    @Test
    void aTagOfPythonIsNotFollowed() {
        Path copy = Models.copy("pyfunc", directory);
        Models.write(copy.resolve("MLmodel"), "flavors: !!python/object/apply:os.system ['true']\n");
        assertThat(refusal(copy, OPEN).code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
    }

    @Test
    void aBackendThatIsNotThereIsNamed() {
        assertThatThrownBy(() -> new MlflowBackend(List.of())
                        .load(
                                Models.source(Models.ROOT.resolve("onnx")),
                                OPEN,
                                new BackendContext(1, directory, Map.of())))
                .isInstanceOfSatisfying(ServingException.class, e -> {
                    assertThat(e.code()).isEqualTo(ErrorCode.FAILED_PRECONDITION);
                    assertThat(e.getMessage()).contains("needs the backend 'onnxruntime'");
                });
    }
}
