// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tensorflow;

import static io.nereid.backends.tensorflow.Models.ask;
import static io.nereid.backends.tensorflow.Models.example;
import static io.nereid.backends.tensorflow.Models.floats;
import static io.nereid.backends.tensorflow.Models.load;
import static io.nereid.backends.tensorflow.Models.texts;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelInstance;
import io.nereid.backends.tensorflow.Models.Answer;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.Signature;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.Shape;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** The models of TensorFlow Serving's own tests give the same results. */
@Engine
class GoldenAnswersTest {
    @Test
    void halfPlusTwoTakesAVectorWhereItsSignatureSaysAColumn() {
        try (BackendModel model = load("half_plus_two");
                ModelInstance run = model.newInstance()) {
            TensorSpec x = model.config().inputs().get(0);
            assertThat(x.name()).isEqualTo("x");
            assertThat(x.shape()).isEqualTo(Shape.of(-1, 1));
            assertThat(x.unchecked()).isTrue();
            assertThat(model.config().outputs().get(0).unchecked()).isTrue();
            assertThat(model.config().maxBatchSize()).isZero();
            Answer vector = ask(run, "y", floats("x", 1, 2, 5));
            assertThat(vector.values()).containsExactly(2.5f, 3.0f, 4.5f);
            assertThat(vector.shape()).isEqualTo(Shape.of(3));
            Answer matrix = ask(run, "y", floats("x", Shape.of(2, 2), 1, 2, 3, 4));
            assertThat(matrix.values()).containsExactly(2.5f, 3.0f, 3.5f, 4.0f);
            assertThat(matrix.shape()).isEqualTo(Shape.of(2, 2));
            assertThat(ask(run, "y", floats("x", Shape.SCALAR, 2)).shape()).isEqualTo(Shape.SCALAR);
        }
    }

    @Test
    void halfPlusThreeAddsThree() {
        try (BackendModel model = load("half_plus_three");
                ModelInstance run = model.newInstance()) {
            assertThat(ask(run, "y", floats("x", 1, 2, 5)).values()).containsExactly(3.5f, 4.0f, 5.5f);
        }
    }

    @Test
    void everySignatureOfHalfPlusTwoAnswers() {
        try (BackendModel model = load("half_plus_two")) {
            assertThat(model.signatures())
                    .containsOnlyKeys(
                            "serving_default",
                            "regress_x_to_y",
                            "regress_x_to_y2",
                            "regress_x2_to_y3",
                            "classify_x_to_y",
                            "classify_x2_to_y3");
            Signature regress = model.signatures().get("regress_x_to_y");
            assertThat(regress.method()).isEqualTo(Signature.REGRESS);
            assertThat(regress.tensors())
                    .containsEntry("inputs", "tf_example:0")
                    .containsEntry("outputs", "y:0");
            assertThat(model.signatures().get("classify_x_to_y").method()).isEqualTo(Signature.CLASSIFY);
            try (ModelInstance run = model.newInstance("regress_x_to_y")) {
                Answer answer = ask(run, "outputs", texts("inputs", example(Map.of("x", 80f))));
                assertThat(answer.values()).containsExactly(42.0f);
                assertThat(answer.shape()).isEqualTo(Shape.of(1, 1));
            }
            try (ModelInstance run = model.newInstance("regress_x_to_y2")) {
                assertThat(ask(run, "outputs", texts("inputs", example(Map.of("x", 60f))))
                                .values())
                        .containsExactly(33.0f);
            }
            try (ModelInstance run = model.newInstance("regress_x2_to_y3")) {
                assertThat(ask(run, "outputs", floats("inputs", Shape.of(1, 1), 4))
                                .values())
                        .containsExactly(5.0f);
            }
            try (ModelInstance run = model.newInstance("classify_x_to_y")) {
                Answer answer =
                        ask(run, "scores", texts("inputs", example(Map.of("x", 20f)), example(Map.of("x", 10f))));
                assertThat(answer.values()).containsExactly(12.0f, 7.0f);
                assertThat(answer.shape()).isEqualTo(Shape.of(2, 1));
            }
            try (ModelInstance run = model.newInstance("classify_x2_to_y3")) {
                assertThat(ask(run, "scores", floats("inputs", Shape.of(1, 1), 4))
                                .values())
                        .containsExactly(5.0f);
            }
        }
    }

    @Test
    void aMissingFeatureIsTheClientsFault() {
        try (BackendModel model = load("half_plus_two");
                ModelInstance run = model.newInstance("regress_x_to_y")) {
            assertThatThrownBy(() -> ask(run, "outputs", texts("inputs", example(Map.of("z", 1f)))))
                    .isInstanceOfSatisfying(ServingException.class, e -> {
                        assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
                        assertThat(e.getMessage()).contains("Feature: x").doesNotContain("\n");
                    });
            // A failed run does not affect later ones.
            assertThat(ask(run, "outputs", texts("inputs", example(Map.of("x", 2f))))
                            .values())
                    .containsExactly(3.0f);
        }
    }

    @Test
    void theCounterCountsInEachLoadedVersionByItself() {
        try (BackendModel model = load("counter");
                BackendModel other = load("counter");
                ModelInstance get = model.newInstance("get_counter");
                ModelInstance increment = model.newInstance("incr_counter");
                ModelInstance add = model.newInstance("incr_counter_by");
                ModelInstance reset = model.newInstance("reset_counter");
                ModelInstance elsewhere = other.newInstance("get_counter")) {
            assertThat(model.signatures())
                    .containsOnlyKeys("get_counter", "incr_counter", "incr_counter_by", "reset_counter");
            assertThat(model.config().maxBatchSize()).isZero();
            assertThat(model.config().inputs()).isEmpty();
            assertThat(ask(get, "output").values()).containsExactly(0f);
            assertThat(ask(increment, "output").values()).containsExactly(1f);
            assertThat(ask(increment, "output").values()).containsExactly(2f);
            assertThat(ask(add, "output", floats("delta", Shape.SCALAR, 5)).values())
                    .containsExactly(7f);
            assertThat(ask(add, "output", floats("delta", 1)).values())
                    .describedAs("a scalar may be sent as a vector of one element")
                    .containsExactly(8f);
            assertThat(ask(elsewhere, "output").values()).containsExactly(0f);
            assertThat(ask(reset, "output").values()).containsExactly(0f);
            assertThat(ask(get, "output").values()).containsExactly(0f);
            assertThat(ask(get, "output").shape()).isEqualTo(Shape.SCALAR);
        }
    }
}
