// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.trees;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import io.nereid.backend.BackendModel;
import io.nereid.backends.trees.References.Expected;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;

/** Predictions equal those of the Python packages, for every trained model. */
class PythonPackagesTest {
    private static final double XGBOOST = 1e-6;
    private static final double LIGHTGBM = 1e-12;

    @TestFactory
    Stream<DynamicTest> answersAndMarginsAreThoseOfXgboost() {
        return References.models("xgboost").stream()
                .map(f -> DynamicTest.dynamicTest(f.getFileName().toString(), () -> compare(f, XGBOOST)));
    }

    @TestFactory
    Stream<DynamicTest> answersAndMarginsAreThoseOfLightgbm() {
        return References.models("lightgbm").stream()
                .map(f -> DynamicTest.dynamicTest(f.getFileName().toString(), () -> compare(f, LIGHTGBM)));
    }

    @Test
    void thereAreManyModelsOfEachKind() {
        assertThat(References.models("xgboost")).hasSizeGreaterThan(40);
        assertThat(References.models("lightgbm")).hasSizeGreaterThan(40);
        assertThat(References.models("xgboost")).anyMatch(f -> f.toString().endsWith(".json"));
        assertThat(References.models("xgboost")).anyMatch(f -> f.toString().endsWith(".ubj"));
    }

    private static void compare(Path model, double tolerance) {
        Expected expected = References.expected(model);
        boolean wide = model.toString().contains("wide");
        ModelConfig.Builder config = References.config(model);
        if (wide) {
            config.inputs(List.of(new TensorSpec("x", DataType.FP64, Shape.of(expected.features()))));
        }
        check(model, config.build(), expected, expected.answers(), tolerance);
        check(
                model,
                config.parameters(Map.of("output_margin", "true")).build(),
                expected,
                expected.margins(),
                tolerance);
    }

    private static void check(
            Path file, ModelConfig config, Expected expected, double[][] reference, double tolerance) {
        try (BackendModel model = References.load(file, config)) {
            // All at once, one by one, and a few: rows in blocks of four, and the rest.
            double[][] all = References.run(model, expected, 0, expected.rows(), "predict");
            same(all, reference, 0, tolerance);
            for (int row = 0; row < expected.rows(); row++) {
                same(References.run(model, expected, row, 1, "predict"), reference, row, tolerance);
            }
            same(References.run(model, expected, 3, 7, "predict"), reference, 3, tolerance);
        }
    }

    private static void same(double[][] found, double[][] reference, int from, double tolerance) {
        for (int row = 0; row < found.length; row++) {
            assertThat(found[row]).hasSameSizeAs(reference[from + row]);
            for (int i = 0; i < found[row].length; i++) {
                double value = reference[from + row][i];
                if (Double.isInfinite(value) || Double.isNaN(value)) {
                    assertThat(Double.compare(found[row][i], value))
                            .as("row %d, value %d: %s", from + row, i, found[row][i])
                            .isZero();
                } else {
                    assertThat(found[row][i])
                            .as("row %d, value %d", from + row, i)
                            .isCloseTo(value, within(tolerance * Math.max(1, Math.abs(value))));
                }
            }
        }
    }
}
