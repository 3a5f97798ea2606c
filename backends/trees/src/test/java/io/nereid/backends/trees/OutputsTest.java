// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.trees;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelInstance;
import io.nereid.backends.trees.References.Expected;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Inputs and outputs of a model, by default and as configured. */
class OutputsTest {
    private static final Path BINARY = References.model("xgboost", "binary-logistic-dart-missing-categorical");
    private static final Path SOFTMAX = References.model("xgboost", "multi-softmax-gbtree");
    private static final Path REGRESSION = References.model("xgboost", "reg-squarederror-gbtree-base");
    private static final Path MULTICLASS = References.model("lightgbm", "multiclass-gbdt-missing");

    private static TensorSpec spec(String name, DataType type, long... dims) {
        return new TensorSpec(name, type, Shape.of(dims));
    }

    private static void rejected(Path model, ModelConfig config, String why) {
        assertThatThrownBy(() -> References.load(model, config).close())
                .isInstanceOfSatisfying(ServingException.class, e -> {
                    assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
                    assertThat(e.getMessage()).contains(why);
                    assertThat(e.remedy()).isNotBlank();
                });
    }

    @Test
    void withoutConfigurationThereIsOneInputOfAllFeaturesAndTheAnswerOfTheLibrary() {
        try (BackendModel model =
                References.load(BINARY, References.config(BINARY).build())) {
            assertThat(model.config().maxBatchSize()).isEqualTo(1 << 20);
            assertThat(model.config().inputs()).containsExactly(spec("input-0", DataType.FP32, 6));
            assertThat(model.config().outputs()).containsExactly(spec("predict", DataType.FP32));
            assertThat(model.config().platform()).isEqualTo("xgboost");
            assertThat(model.traits().cancellable()).isTrue();
            // A batch of a million rows takes too long for inline execution.
            assertThat(model.traits().inline()).isFalse();
        }
        try (BackendModel model =
                References.load(MULTICLASS, References.config(MULTICLASS).build())) {
            assertThat(model.config().outputs()).containsExactly(spec("predict", DataType.FP64, 3));
        }
        ModelConfig small = References.config(BINARY).maxBatchSize(16).build();
        try (BackendModel model = References.load(BINARY, small)) {
            assertThat(model.traits().inline()).isTrue();
        }
    }

    @Test
    void namesOfFeaturesAreAParameter() {
        Path named = References.model("xgboost", "reg-squarederror-gbtree-missing-categorical");
        try (BackendModel model =
                References.load(named, References.config(named).build())) {
            assertThat(model.config().parameters().get("feature_names"))
                    .isEqualTo("f0 of it,f1 of it,f2 of it,f3 of it,f4 of it,f5 of it");
        }
    }

    @Test
    void labelsAndProbabilitiesAreGivenWhereTheyAreAskedFor() {
        Expected expected = References.expected(BINARY);
        ModelConfig config = References.config(BINARY)
                .outputs(List.of(
                        spec("predict", DataType.FP32, 1),
                        spec("predict_proba", DataType.FP64, 2),
                        spec("margin", DataType.FP32, 1),
                        spec("label", DataType.INT64, 1)))
                .build();
        try (BackendModel model = References.load(BINARY, config)) {
            double[][] margins = References.run(model, expected, 0, expected.rows(), "margin");
            double[][] both = References.run(model, expected, 0, expected.rows(), "predict_proba");
            double[][] labels = References.run(model, expected, 0, expected.rows(), "label");
            for (int row = 0; row < expected.rows(); row++) {
                double p = expected.answers()[row][0];
                assertThat(margins[row][0]).isCloseTo(expected.margins()[row][0], within(1e-6));
                assertThat(both[row][0]).isCloseTo(1 - p, within(1e-6));
                assertThat(both[row][1]).isCloseTo(p, within(1e-6));
                assertThat(labels[row][0]).isEqualTo(p > 0.5 ? 1 : 0);
            }
        }
    }

    @Test
    void theProbabilitiesBehindAClassAreThoseOfItsMargins() {
        Expected expected = References.expected(SOFTMAX);
        ModelConfig config = References.config(SOFTMAX)
                .outputs(List.of(spec("predict_proba", DataType.FP32, 3), spec("label", DataType.INT32)))
                .build();
        try (BackendModel model = References.load(SOFTMAX, config)) {
            double[][] all = References.run(model, expected, 0, expected.rows(), "predict_proba");
            for (int row = 0; row < expected.rows(); row++) {
                double sum = 0;
                int best = 0;
                for (int i = 0; i < 3; i++) {
                    sum += all[row][i];
                    best = all[row][i] > all[row][best] ? i : best;
                }
                assertThat(sum).isCloseTo(1, within(1e-6));
                assertThat((double) best).isEqualTo(expected.answers()[row][0]);
            }
        }
    }

    @Test
    void rowsMayComeInOtherTypesAndWithoutABatchDimension() {
        Expected expected = References.expected(REGRESSION);
        ModelConfig wide = References.config(REGRESSION)
                .maxBatchSize(0)
                .inputs(List.of(spec("x", DataType.FP64, -1, 6)))
                .build();
        try (BackendModel model = References.load(REGRESSION, wide)) {
            assertThat(model.config().outputs()).containsExactly(spec("predict", DataType.FP32, -1));
            double[][] answers = References.run(model, expected, 0, expected.rows(), "predict");
            assertThat(answers[7][0]).isCloseTo(expected.answers()[7][0], within(1e-6));
        }
        ModelConfig vector = References.config(REGRESSION)
                .maxBatchSize(0)
                .inputs(List.of(spec("x", DataType.FP32, 6)))
                .outputs(List.of(spec("predict", DataType.FP32, 1)))
                .build();
        try (BackendModel model = References.load(REGRESSION, vector);
                ModelInstance invocation = model.newInstance();
                Tensor row = References.rows("x", DataType.FP32, expected.x(), 7, 1, 6);
                Tensor flat = row.retainAs("x", Shape.of(6));
                Tensor answer =
                        invocation.run(List.of(flat), List.of("predict")).get(0)) {
            assertThat(answer.shape()).isEqualTo(Shape.of(1));
            assertThat((double) answer.buffer().getFloat()).isCloseTo(expected.answers()[7][0], within(1e-6));
        }
        ModelConfig whole = References.config(REGRESSION)
                .inputs(List.of(spec("x", DataType.INT64, 6)))
                .build();
        try (BackendModel model = References.load(REGRESSION, whole);
                BackendModel same = References.load(
                        REGRESSION, References.config(REGRESSION).build())) {
            Tensor numbers = Tensor.allocate("x", DataType.INT64, Shape.of(1, 6));
            for (int i = 0; i < 6; i++) {
                numbers.buffer().putLong(8 * i, i - 3);
            }
            Expected floats = new Expected(1, 6, new double[] {-3, -2, -1, 0, 1, 2}, new double[0][], new double[0][]);
            try (numbers;
                    ModelInstance invocation = model.newInstance();
                    Tensor answer =
                            invocation.run(List.of(numbers), List.of("predict")).get(0)) {
                assertThat((double) answer.buffer().getFloat())
                        .isEqualTo(References.run(same, floats, 0, 1, "predict")[0][0]);
            }
        }
    }

    @Test
    void aRowOfAnotherLengthIsTheClientsFault() {
        ModelConfig config = References.config(REGRESSION)
                .inputs(List.of(spec("x", DataType.FP32, -1)))
                .build();
        try (BackendModel model = References.load(REGRESSION, config);
                ModelInstance invocation = model.newInstance();
                Tensor input = References.rows("x", DataType.FP32, new double[10], 0, 2, 5)) {
            assertThatThrownBy(() -> invocation.run(List.of(input), List.of("predict")))
                    .isInstanceOfSatisfying(
                            ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT))
                    .hasMessageContaining("[2,5]")
                    .hasMessageContaining("[-1,6]");
        }
    }

    @Test
    void noRowsGiveNoAnswers() {
        try (BackendModel model = References.load(
                        MULTICLASS, References.config(MULTICLASS).build());
                ModelInstance invocation = model.newInstance();
                Tensor input = References.rows("input-0", DataType.FP32, new double[0], 0, 0, 6);
                Tensor answer =
                        invocation.run(List.of(input), List.of("predict")).get(0)) {
            assertThat(answer.shape()).isEqualTo(Shape.of(0, 3));
        }
    }

    @Test
    void aConfigurationThatTheModelDoesNotFitIsRefused() {
        ModelConfig.Builder config = References.config(REGRESSION);
        rejected(
                REGRESSION,
                config.outputs(List.of(spec("label", DataType.INT64, 1))).build(),
                "is not a classification");
        rejected(
                REGRESSION,
                config.outputs(List.of(spec("other", DataType.FP32, 1))).build(),
                "'other'");
        rejected(
                REGRESSION,
                config.outputs(List.of(spec("predict", DataType.FP32, 2))).build(),
                "FP32[2]");
        rejected(
                REGRESSION,
                config.outputs(List.of(spec("predict", DataType.BYTES, 1))).build(),
                "BYTES[1]");
        config.outputs(List.of());
        rejected(REGRESSION, config.inputs(List.of(spec("x", DataType.FP32, 7))).build(), "FP32[7]");
        rejected(
                REGRESSION, config.inputs(List.of(spec("x", DataType.BYTES, 6))).build(), "BYTES[6]");
        rejected(
                REGRESSION,
                config.inputs(List.of(spec("x", DataType.FP32, 3), spec("y", DataType.FP32, 3)))
                        .build(),
                "'y'");
        config.inputs(List.of());
        rejected(
                REGRESSION,
                config.parameters(Map.of("output_margin", "perhaps")).build(),
                "perhaps");
    }

    @Test
    void aRowMoreAllocatesNothing() {
        com.sun.management.ThreadMXBean threads = (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
        try (BackendModel model = References.load(
                        MULTICLASS, References.config(MULTICLASS).build());
                ModelInstance invocation = model.newInstance();
                Tensor few = References.random("input-0", 1, 8);
                Tensor many = References.random("input-0", 1, 4000)) {
            long fewer = 0;
            long more = 0;
            for (int i = 0; i < 20; i++) {
                fewer = allocated(threads, invocation, few);
                more = allocated(threads, invocation, many);
            }
            assertThat(more - fewer).isLessThan(4000);
        }
    }

    private static long allocated(com.sun.management.ThreadMXBean threads, ModelInstance invocation, Tensor input) {
        long before = threads.getCurrentThreadAllocatedBytes();
        Tensor.closeAll(invocation.run(List.of(input), List.of("predict")));
        return threads.getCurrentThreadAllocatedBytes() - before;
    }
}
