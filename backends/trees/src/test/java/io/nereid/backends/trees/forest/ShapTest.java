// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.trees.forest;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelInstance;
import io.nereid.backends.trees.References;
import io.nereid.backends.trees.References.Expected;
import io.nereid.base.ServingException;
import io.nereid.spi.Signature;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.io.TempDir;

/** SHAP values equal those of the Python packages, for every trained model, and add up to the margin. */
class ShapTest {
    private static final double TOLERANCE = 1e-6;
    private static final int STEP = 3;

    @TestFactory
    Stream<DynamicTest> contributionsAreThoseOfXgboost() {
        return cases("xgboost");
    }

    @TestFactory
    Stream<DynamicTest> contributionsAreThoseOfLightgbm() {
        return cases("lightgbm");
    }

    @Test
    void theWholeOfAModelWithEarlyStoppingIsExplained() {
        for (String name : List.of("binary-logistic", "multi-softprob", "reg-squarederror")) {
            Path early = References.MODELS.resolve("early");
            compare(early.resolve(name + ".json"), References.expected(early.resolve(name + "-all.json")));
        }
    }

    private static Stream<DynamicTest> cases(String kind) {
        List<Path> explained = References.models(kind).stream()
                .filter(f -> Files.exists(contributions(f)))
                .toList();
        assertThat(explained).hasSizeGreaterThan(40);
        return explained.stream()
                .map(f ->
                        DynamicTest.dynamicTest(f.getFileName().toString(), () -> compare(f, References.expected(f))));
    }

    private static Path contributions(Path model) {
        String name = model.getFileName().toString();
        return model.resolveSibling(name.substring(0, name.lastIndexOf('.')) + ".contributions");
    }

    private static void compare(Path file, Expected expected) {
        ByteBuffer wanted =
                ByteBuffer.wrap(References.bytes(contributions(file))).order(ByteOrder.LITTLE_ENDIAN);
        int rows = wanted.getInt();
        int outputs = wanted.getInt();
        int width = wanted.getInt();
        ModelConfig.Builder config = References.config(file);
        if (file.toString().contains("wide")) {
            config.inputs(List.of(new TensorSpec("x", DataType.FP64, Shape.of(expected.features()))));
        }
        double[] x = new double[rows * expected.features()];
        for (int row = 0; row < rows; row++) {
            System.arraycopy(
                    expected.x(), row * STEP * expected.features(), x, row * expected.features(), expected.features());
        }
        try (BackendModel model = References.load(file, config.build())) {
            Signature signature = model.signatures().get("shap");
            assertThat(signature.outputs().get(0).shape())
                    .isEqualTo(outputs == 1 ? Shape.of(width) : Shape.of(outputs, width));
            double[] found = explain(model, x, rows, expected.features());
            assertThat(found).hasSize(rows * outputs * width);
            for (int row = 0; row < rows; row++) {
                double[] margins = expected.margins()[row * STEP];
                for (int o = 0; o < outputs; o++) {
                    double sum = 0;
                    for (int f = 0; f < width; f++) {
                        double value = found[(row * outputs + o) * width + f];
                        double other = wanted.getDouble();
                        sum += value;
                        assertThat(value)
                                .as("row %d, output %d, feature %d", row, o, f)
                                .isCloseTo(other, within(TOLERANCE * Math.max(1, Math.abs(other))));
                    }
                    assertThat(sum)
                            .as("sum of row %d, output %d", row, o)
                            .isCloseTo(margins[o], within(1e-5 * Math.max(1, Math.abs(margins[o]))));
                }
            }
        }
    }

    private static double[] explain(BackendModel model, double[] x, int rows, int features) {
        TensorSpec spec = model.signatures().get("shap").inputs().get(0);
        try (ModelInstance invocation = model.newInstance("shap");
                Tensor input = References.rows(spec.name(), spec.dataType(), x, 0, rows, features);
                Tensor result =
                        invocation.run(List.of(input), List.of("contributions")).get(0)) {
            boolean single = result.dataType() == DataType.FP32;
            double[] all = new double[(int) result.shape().elementCount()];
            ByteBuffer in = result.buffer();
            for (int i = 0; i < all.length; i++) {
                all[i] = single ? in.getFloat() : in.getDouble();
            }
            return all;
        }
    }

    @Test
    void aSmallTreeHasTheValuesOfAllOrdersOfItsFeatures() {
        // x0 < 1 ? (x1 < 1 ? 10 : 20) : (x0 < 2 ? 30 : 40), of 10 rows: 6 (2, 4) and 4 (1, 3).
        ParsedTree tree = new ParsedTree(
                new int[] {0, 1, 0},
                new double[] {1, 1, 2},
                new byte[3],
                new boolean[3],
                new int[] {1, ~0, ~2},
                new int[] {2, ~1, ~3},
                null,
                new double[] {10, 20, 30, 40},
                1,
                0,
                null,
                new ParsedTree.Cover(new double[] {10, 6, 4}, new double[] {2, 4, 1, 3}));
        ParsedModel model = new ParsedModel(
                "xgboost",
                "reg:squarederror",
                List.of(tree),
                null,
                2,
                1,
                new double[] {0.5},
                1,
                LinkFunction.IDENTITY,
                0,
                List.of());
        TreeShap shap = new TreeShap(model);
        double[] found = new double[3];
        shap.explain(new double[] {0, 0}, found, shap.newPath(), () -> false);
        // Values of the sets: {} = (2*10 + 4*20 + 1*30 + 3*40) / 10, {0} = (2*10 + 4*20) / 6, {1} = (6*10 + 150) / 10.
        double none = 25;
        double first = 100.0 / 6;
        double second = 21;
        assertThat(found[0]).isCloseTo(((first - none) + (10 - second)) / 2, within(1e-12));
        assertThat(found[1]).isCloseTo(((second - none) + (10 - first)) / 2, within(1e-12));
        assertThat(found[2]).isCloseTo(none + 0.5, within(1e-12));
    }

    @Test
    void modelsThatCannotBeExplainedSayWhyAndDoNotOfferIt() {
        Map<String, String> reasons = Map.of(
                "lightgbm/binary-gbdt-linear-missing-categorical.txt", "linear_tree",
                "xgboost/reg-squarederror-gbtree-vectors-missing.json", "multi_output_tree");
        reasons.forEach((name, reason) -> {
            Path file = References.MODELS.resolve(name);
            if (!Files.exists(file)) {
                file = file.resolveSibling(file.getFileName().toString().replace(".json", ".ubj"));
            }
            try (BackendModel model =
                    References.load(file, References.config(file).build())) {
                assertThat(model.signatures()).doesNotContainKey("shap");
                assertThatThrownBy(() -> model.newInstance("shap").close())
                        .isInstanceOf(ServingException.class)
                        .hasMessageContaining(reason);
            }
        });
    }

    @Test
    void aFileWithoutCountsIsServedAndNotExplained(@TempDir Path directory) throws IOException {
        Path whole = References.MODELS.resolve("lightgbm/regression-gbdt-stump-missing.txt");
        String text = Files.readString(whole, StandardCharsets.UTF_8).replaceAll("(?m)^internal_count=.*\n", "");
        Path file = Files.writeString(directory.resolve("model.txt"), text.replaceAll("(?m)^tree_sizes=.*\n", ""));
        try (BackendModel model = References.load(file, References.config(file).build())) {
            assertThat(model.signatures()).doesNotContainKey("shap");
            assertThatThrownBy(() -> model.newInstance("shap").close()).hasMessageContaining("internal_count");
        }
    }

    @Test
    void aLargeModelIsReadAgainUnlessItsFileHasChanged(@TempDir Path directory) throws IOException {
        Path from = References.model("lightgbm", "regression-gbdt-nomissing");
        Path file = directory.resolve("model.txt");
        // The text after the trees is not read.
        Files.writeString(file, Files.readString(from, StandardCharsets.UTF_8) + " ".repeat(5 << 20));
        double[] x = {0.5, 0.1, 0, -1, 0.3, 2};
        double[] wanted;
        try (BackendModel model = References.load(from, References.config(from).build())) {
            wanted = explain(model, x, 1, 6);
        }
        try (BackendModel model = References.load(file, References.config(file).build())) {
            assertThat(explain(model, x, 1, 6)).containsExactly(wanted);
        }
        try (BackendModel model = References.load(file, References.config(file).build())) {
            Files.writeString(file, "tree\n");
            assertThatThrownBy(() -> explain(model, x, 1, 6))
                    .hasMessageContaining("has changed since")
                    .extracting(e -> ((ServingException) e).remedy())
                    .isEqualTo("load the model again");
        }
    }

    @Test
    void rowsOfAnotherWidthAreRefused() {
        Path file = References.model("xgboost", "binary-logistic-dart");
        try (BackendModel model = References.load(file, References.config(file).build());
                ModelInstance invocation = model.newInstance("shap");
                Tensor input = References.rows("input-0", DataType.FP32, new double[5], 0, 1, 5)) {
            assertThatThrownBy(() -> Tensor.closeAll(invocation.run(List.of(input), List.of("contributions"))))
                    .hasMessageContaining("[-1,6]");
        }
    }

    @Test
    void rowsOfAnUnbatchedModelHaveADimensionOfTheirOwn() {
        Path file = References.model("xgboost", "multi-softprob-gbtree");
        try (BackendModel model = References.backend(file)
                .load(
                        References.source(file),
                        References.config(file).maxBatchSize(0).build(),
                        new BackendContext(1, Path.of("target"), Map.of()))) {
            assertThat(model.signatures().get("shap").outputs().get(0).shape()).isEqualTo(Shape.of(-1, 3, 7));
            assertThat(model.signatures().get("shap").method()).isEqualTo("nereid/shap");
        }
    }
}
