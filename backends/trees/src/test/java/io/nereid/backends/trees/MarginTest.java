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
import io.nereid.spi.Signature;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;

/** A request can select the margin, as with the {@code predict} of the Python packages. */
class MarginTest {
    private static final Path BINARY = References.model("xgboost", "binary-logistic-dart-missing-categorical");
    private static final Path SOFTMAX = References.model("xgboost", "multi-softmax-gbtree");

    @TestFactory
    Stream<DynamicTest> theSignatureThatAParameterChoosesGivesTheMargin() {
        return Stream.of("xgboost", "lightgbm")
                .flatMap(kind -> References.models(kind).stream())
                .map(f -> DynamicTest.dynamicTest(f.getFileName().toString(), () -> {
                    Expected e = References.expected(f);
                    ModelConfig.Builder config = References.config(f);
                    if (f.toString().contains("wide")) {
                        config.inputs(List.of(new TensorSpec("x", DataType.FP64, Shape.of(e.features()))));
                    }
                    try (BackendModel model = References.load(f, config.build())) {
                        assertThat(model.signature(Map.of())).isEmpty();
                        assertThat(model.signature(Map.of("output_margin", false)))
                                .isEmpty();
                        String margin = model.signature(Map.of("output_margin", true));
                        assertThat(margin).isEqualTo("margin");
                        same(model, margin, e, e.margins(), f.toString().contains("xgboost") ? 1e-6 : 1e-12);
                    }
                    ModelConfig margins =
                            config.parameters(Map.of("raw_score", "True")).build();
                    try (BackendModel model = References.load(f, margins)) {
                        assertThat(model.signature(Map.of("raw_score", true))).isEmpty();
                        String answer = model.signature(Map.of("raw_score", false));
                        assertThat(answer).isEqualTo("answer");
                        same(model, answer, e, e.answers(), f.toString().contains("xgboost") ? 1e-6 : 1e-12);
                    }
                }));
    }

    private static void same(BackendModel model, String signature, Expected e, double[][] reference, double tolerance) {
        Signature metadata = model.signatures().get(signature);
        DataType type = model.config().inputs().get(0).dataType();
        try (ModelInstance invocation = model.newInstance(signature);
                Tensor in = References.rows(metadata.inputs().get(0).name(), type, e.x(), 0, e.rows(), e.features());
                Tensor out = invocation.run(List.of(in), List.of("predict")).get(0)) {
            TensorSpec spec = metadata.outputs().get(0);
            assertThat(out.dataType()).isEqualTo(spec.dataType());
            Shape shape = out.shape();
            assertThat(shape.rank()).isEqualTo(spec.shape().rank() + 1);
            assertThat(shape.elementCount()).isEqualTo((long) e.rows() * reference[0].length);
            double[] flat = Stream.of(reference).flatMapToDouble(Arrays::stream).toArray();
            for (int i = 0; i < flat.length; i++) {
                double found = out.dataType() == DataType.FP32
                        ? out.buffer().asFloatBuffer().get(i)
                        : out.buffer().asDoubleBuffer().get(i);
                if (!Double.isFinite(flat[i])) {
                    assertThat(Double.compare(found, flat[i]))
                            .as("value %d: %s", i, found)
                            .isZero();
                    continue;
                }
                assertThat(found)
                        .as("value %d", i)
                        .isCloseTo(flat[i], within(tolerance * Math.max(1, Math.abs(flat[i]))));
            }
        }
    }

    @Test
    void onlyPredictBecomesTheMarginOfSeveralOutputs() {
        ModelConfig config = References.config(SOFTMAX)
                .outputs(List.of(
                        new TensorSpec("label", DataType.INT64, Shape.SCALAR),
                        new TensorSpec("predict", DataType.FP64, Shape.SCALAR)))
                .build();
        Expected e = References.expected(SOFTMAX);
        try (BackendModel model = References.load(SOFTMAX, config)) {
            Signature margin = model.signatures().get("margin");
            assertThat(margin.outputs())
                    .containsExactly(
                            new TensorSpec("label", DataType.INT64, Shape.SCALAR),
                            new TensorSpec("predict", DataType.FP64, Shape.of(3)));
            try (ModelInstance invocation = model.newInstance("margin");
                    Tensor in = References.rows("input-0", DataType.FP32, e.x(), 0, 1, e.features())) {
                List<Tensor> out = invocation.run(List.of(in), List.of("label", "predict"));
                assertThat(out.get(0).buffer().getLong()).isEqualTo((long) e.answers()[0][0]);
                assertThat(out.get(1).shape()).isEqualTo(Shape.of(1, 3));
                assertThat(out.get(1).buffer().getDouble()).isCloseTo(e.margins()[0][0], within(1e-6));
                Tensor.closeAll(out);
            }
        }
    }

    @Test
    void whatMeansNothingIsRefused() {
        try (BackendModel model =
                References.load(BINARY, References.config(BINARY).build())) {
            rejected(
                    () -> model.signature(Map.of("output_margin", "perhaps")),
                    "parameter 'output_margin' is 'perhaps'");
            rejected(
                    () -> model.signature(Map.of("output_margin", true, "raw_score", false)),
                    "(expected: true or false, equal to output_margin)");
            rejected(() -> model.newInstance("answer").close(), "no signature 'answer' (expected: margin, shap)");
        }
        ModelConfig other = References.config(BINARY)
                .outputs(List.of(new TensorSpec("label", DataType.INT64, Shape.SCALAR)))
                .build();
        try (BackendModel model = References.load(BINARY, other)) {
            assertThat(model.signature(Map.of("output_margin", false))).isEmpty();
            rejected(() -> model.signature(Map.of("output_margin", true)), "has no output 'predict'");
        }
        rejected(
                () -> References.load(
                                BINARY,
                                References.config(BINARY)
                                        .parameters(Map.of("raw_score", "maybe"))
                                        .build())
                        .close(),
                "model 'm': parameter 'raw_score' is 'maybe' (expected: true or false)");
    }

    private static void rejected(ThrowingCallable call, String why) {
        assertThatThrownBy(call).isInstanceOfSatisfying(ServingException.class, e -> {
            assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
            assertThat(e.getMessage()).contains(why);
        });
    }
}
