// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.request;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceRequest.RequestedOutput;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class RequestValidatorTest {
    private static final RequestValidator CHECKS = new RequestValidator(new ModelMetadata(
            new ServableId("m", 1),
            "fake",
            List.of(
                    new TensorSpec("a", DataType.FP32, Shape.of(-1, 2)),
                    new TensorSpec("b", DataType.BYTES, Shape.of(-1, 1)),
                    new TensorSpec("extra", DataType.INT8, Shape.of(-1, 1), true)),
            List.of(new TensorSpec("out", DataType.FP32, Shape.of(-1, 2))),
            4,
            Map.of()));

    private final List<Tensor> made = new ArrayList<>();

    @AfterEach
    void closeTensors() {
        Tensor.closeAll(made);
    }

    @Test
    void inputsComeOutInTheModelsOrder() {
        Tensor a = zeros("a", DataType.FP32, Shape.of(2, 2));
        Tensor b = bytes("b", Shape.of(2, 1), 8);
        assertThat(CHECKS.inputs(request(b, a))).containsExactly(a, b);
        assertThat(CHECKS.batchSize(List.of(a, b))).isEqualTo(2);
    }

    @Test
    void everyFaultHasItsText() {
        Tensor a = zeros("a", DataType.FP32, Shape.of(2, 2));
        Tensor b = bytes("b", Shape.of(2, 1), 8);
        rejected(
                () -> CHECKS.inputs(request(a)),
                "expected number of inputs between 2 and 3 but got 1 inputs for model 'm'. Got input(s) ['a'], but"
                        + " missing required input(s) ['b']. Please provide all required input(s).");
        rejected(() -> CHECKS.inputs(request(a, b, a)), "input 'a' already exists in request");
        rejected(
                () -> CHECKS.inputs(request(a, b, zeros("extr", DataType.INT8, Shape.of(2, 1)))),
                "unexpected inference input 'extr' for model 'm'");
        rejected(
                () -> CHECKS.inputs(request(zeros("a", DataType.FP64, Shape.of(2, 2)), b)),
                "inference input 'a' data-type is 'FP64', but model 'm' expects 'FP32'");
        rejected(
                () -> CHECKS.inputs(request(zeros("a", DataType.FP32, Shape.of(2, 3)), b)),
                "unexpected shape for input 'a' for model 'm'. Expected [-1,2], got [2,3]. NOTE: Setting a non-zero");
        rejected(
                () -> CHECKS.inputs(request(zeros("a", DataType.FP32, Shape.of(2)), b)),
                "unexpected shape for input 'a' for model 'm'. Expected [-1,2], got [2]");
        rejected(
                () -> CHECKS.inputs(request(short4("a", Shape.of(2, 2)), b)),
                "input byte size mismatch for input 'a' for model 'm'. Expected 16, got 4");
        rejected(
                () -> CHECKS.inputs(request(a, bytes("b", Shape.of(3, 1), 8))),
                "unexpected number of string elements 2 for inference input 'b' for model 'm', expecting 3");
        rejected(
                () -> CHECKS.inputs(request(a, bytes("b", Shape.of(2, 1), 6))),
                "incomplete string length indicator for inference input 'b' for model 'm', expecting 4 bytes but"
                        + " only 2");
        rejected(
                () -> CHECKS.batchSize(List.of(a, bytes("b", Shape.of(3, 1), 12))),
                "input 'b' batch size does not match other inputs for 'm'");
        rejected(
                () -> CHECKS.batchSize(List.of(zeros("a", DataType.FP32, Shape.of(5, 2)))),
                "inference request batch-size must be <= 4 for 'm'");
        rejected(
                () -> CHECKS.outputs(List.of(new RequestedOutput("outt", 0))),
                "unexpected inference output 'outt' for model 'm'");
        rejected(
                () -> CHECKS.outputs(List.of(new RequestedOutput("out", 0), new RequestedOutput("out", 0))),
                "output 'out' already requested for model 'm'");
    }

    @Test
    void aNearNameIsSuggested() {
        assertThatThrownBy(() -> CHECKS.outputs(List.of(new RequestedOutput("outt", 0))))
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.remedy()).isEqualTo("did you mean 'out'?"));
    }

    private static void rejected(ThrowingCallable call, String text) {
        assertThatThrownBy(call)
                .hasMessageStartingWith(text)
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT));
    }

    private static InferenceRequest request(Tensor... inputs) {
        return new InferenceRequest(ModelRef.latest("m"), "", List.of(inputs), List.of(), Map.of(), Long.MAX_VALUE, 0);
    }

    private Tensor zeros(String name, DataType type, Shape shape) {
        Tensor t = Tensor.allocate(name, type, shape);
        t.region().zero();
        made.add(t);
        return t;
    }

    /** Elements of no bytes: each is four zero bytes of length. */
    private Tensor bytes(String name, Shape shape, int length) {
        Tensor t = Tensor.over(
                name, DataType.BYTES, shape, MemoryRegion.allocate(length).zero(), 0, length);
        made.add(t);
        return t;
    }

    private Tensor short4(String name, Shape shape) {
        Tensor t =
                Tensor.over(name, DataType.FP32, shape, MemoryRegion.allocate(4).zero(), 0, 4);
        made.add(t);
        return t;
    }
}
