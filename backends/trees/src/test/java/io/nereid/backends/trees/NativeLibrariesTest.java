// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.trees;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import io.nereid.backend.BackendModel;
import io.nereid.backends.trees.References.Expected;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.Stream;
import ml.dmlc.xgboost4j.java.XGBoostError;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.io.TempDir;

/**
 * Predictions equal those of the native libraries, through XGBoost4J and lightgbm4j, for every trained model: for the
 * rows of the Python packages' fixtures, and for many random ones.
 */
class NativeLibrariesTest {
    private static final double XGBOOST = 1e-6;
    private static final double LIGHTGBM = 1e-12;
    private static final int ROWS = 1000;
    /** XGBoost 3.0 cannot load this file of 1.7, which lacks the parameters of its objective. */
    private static final String UNSUPPORTED = "old-reg-gamma-gbtree-categorical.ubj";

    /** Predicts with the native library. */
    @FunctionalInterface
    interface Oracle {
        double[][] predict(double[] x, int rows, int features) throws XGBoostError;
    }

    @TestFactory
    Stream<DynamicTest> answersAndMarginsAreThoseOfXgboost4j(@TempDir Path directory) {
        NativeLibraries.needXgboost();
        return Stream.of("xgboost", "early")
                .flatMap(kind -> References.models(kind).stream())
                .filter(f -> !f.endsWith(UNSUPPORTED))
                .map(f -> DynamicTest.dynamicTest(f.getFileName().toString(), () -> {
                    Path file = NativeXgboost.written(f, directory);
                    try (NativeXgboost model = new NativeXgboost(file)) {
                        compare(file, model::answers, model::margins, XGBOOST);
                    }
                }));
    }

    @Test
    void oneModelIsNotForXgboost4j() {
        NativeLibraries.needXgboost();
        assertThatThrownBy(() -> new NativeXgboost(References.model("xgboost", UNSUPPORTED)))
                .isInstanceOf(XGBoostError.class)
                .hasMessageContaining("Invalid cast, from Null to Object");
    }

    @TestFactory
    Stream<DynamicTest> answersAndMarginsAreThoseOfLightgbm4j() {
        NativeLibraries.needLightgbm();
        return References.models("lightgbm").stream()
                .map(f -> DynamicTest.dynamicTest(f.getFileName().toString(), () -> {
                    try (NativeLightgbm model = new NativeLightgbm(f)) {
                        compare(f, model::answers, model::margins, LIGHTGBM);
                    }
                }));
    }

    private static void compare(Path file, Oracle answers, Oracle margins, double tolerance) throws XGBoostError {
        boolean lightgbm = file.toString().endsWith(".txt");
        int features = 6;
        Path expected = file.resolveSibling(file.getFileName().toString().replaceAll("\\.[a-z]+$", ".expected"));
        double[] known = Files.exists(expected) ? References.expected(file).x() : new double[0];
        double[] x = new double[known.length + ROWS * features];
        System.arraycopy(known, 0, x, 0, known.length);
        fill(x, known.length, file, features);
        if (!lightgbm) {
            for (int i = 0; i < x.length; i++) {
                x[i] = (float) x[i];
            }
        }
        compare(file, x, features, answers, margins, tolerance);
    }

    /** Compares predictions and margins of rows. */
    static void compare(Path file, double[] x, int features, Oracle answers, Oracle margins, double tolerance)
            throws XGBoostError {
        int rows = x.length / features;
        ModelConfig.Builder config = References.config(file);
        if (file.toString().endsWith(".txt")) {
            config.inputs(List.of(new TensorSpec("x", DataType.FP64, Shape.of(features))));
        }
        Expected inputs = new Expected(rows, features, x, new double[0][], new double[0][]);
        check(file, config.build(), inputs, answers.predict(x, rows, features), tolerance);
        check(
                file,
                config.parameters(Map.of("output_margin", "true")).build(),
                inputs,
                margins.predict(x, rows, features),
                tolerance);
    }

    /** Numbers of any size and sign, zeros, missing values; for categorical features, known and unknown categories. */
    static void fill(double[] x, int from, Path file, int features) {
        Random random = new Random(file.getFileName().toString().hashCode());
        boolean categories = file.getFileName().toString().contains("categor");
        for (int i = from; i < x.length; i++) {
            int kind = random.nextInt(20);
            int feature = i % features;
            if (kind < 3) {
                x[i] = Double.NaN;
            } else if (categories && feature >= 4) {
                x[i] = random.nextInt(feature == 4 ? 14 : 80);
            } else if (kind < 6) {
                x[i] = kind == 3 ? 0.0 : kind == 4 ? -0.0 : Math.scalb(random.nextGaussian(), random.nextInt(60) - 30);
            } else {
                x[i] = kind < 10 ? Math.round(random.nextGaussian() * 10) / 10.0 : 1.5 * random.nextGaussian();
            }
        }
    }

    private static void check(Path file, ModelConfig config, Expected inputs, double[][] reference, double tolerance) {
        try (BackendModel model = References.load(file, config)) {
            double[][] found = References.run(model, inputs, 0, inputs.rows(), "predict");
            for (int row = 0; row < found.length; row++) {
                assertThat(found[row]).hasSameSizeAs(reference[row]);
                for (int i = 0; i < found[row].length; i++) {
                    double value = reference[row][i];
                    if (Double.isInfinite(value) || Double.isNaN(value)) {
                        assertThat(Double.compare(found[row][i], value))
                                .as("row %d, value %d: %s, not %s", row, i, found[row][i], value)
                                .isZero();
                    } else {
                        assertThat(found[row][i])
                                .as("row %d, value %d", row, i)
                                .isCloseTo(value, within(tolerance * Math.max(1, Math.abs(value))));
                    }
                }
            }
        }
    }
}
