// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.request;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.base.ServingException;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceResponse;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ResponseSink;
import io.nereid.spi.ServableId;
import io.nereid.spi.Signature;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.junit.jupiter.api.Test;

class ScalarShapesTest {
    private static final TensorSpec SCALAR =
            new TensorSpec("s", DataType.FP32, Shape.of(1), false, false, Shape.SCALAR);
    private static final TensorSpec ROW = new TensorSpec("r", DataType.FP32, Shape.of(1));

    private static ModelConfig config(int maxBatch, TensorSpec... both) {
        return ModelConfig.builder("m")
                .maxBatchSize(maxBatch)
                .inputs(List.of(both))
                .outputs(List.of(both))
                .build();
    }

    private static ScalarShapes mixed() {
        return Objects.requireNonNull(ScalarShapes.of(config(8, SCALAR, ROW)));
    }

    @Test
    void aModelWithoutThemHasNone() {
        assertThat(ScalarShapes.of(config(8, ROW))).isNull();
        assertThat(ScalarShapes.of(config(0, SCALAR))).isNull();
    }

    @Test
    void theSignatureShowsTheBatchDimensionAlone() {
        TensorSpec s = new TensorSpec("s", DataType.FP32, Shape.of(-1, 1));
        TensorSpec r = new TensorSpec("r", DataType.FP32, Shape.of(-1, 1));
        Signature seen = mixed().describe(new Signature(Signature.PREDICT, List.of(s, r), List.of(s), Map.of()));
        assertThat(seen.inputs()).extracting(TensorSpec::shape).containsExactly(Shape.of(-1), Shape.of(-1, 1));
        assertThat(seen.outputs()).extracting(TensorSpec::shape).containsExactly(Shape.of(-1));
    }

    @Test
    void flatInputsGetTheDimensionThatTheConfigurationHas() {
        Tensor flat = Tensor.allocate("s", DataType.FP32, Shape.of(3));
        Tensor other = Tensor.allocate("r", DataType.FP32, Shape.of(3));
        InferenceRequest request =
                new InferenceRequest(ModelRef.latest("m"), "", List.of(flat, other), List.of(), Map.of(), 0, 0);
        InferenceRequest fed = mixed().toModel(request);
        assertThat(fed.inputs()).extracting(Tensor::shape).containsExactly(Shape.of(3, 1), Shape.of(3));
        fed.release();
    }

    @Test
    void answersLoseIt() {
        List<InferenceResponse> got = new ArrayList<>();
        ResponseSink sink = new ResponseSink() {
            @Override
            public void next(InferenceResponse response, boolean last) {
                got.add(response);
            }

            @Override
            public void fail(ServingException e) {
                throw e;
            }
        };
        Tensor scalar = Tensor.allocate("s", DataType.FP32, Shape.of(3, 1));
        Tensor row = Tensor.allocate("r", DataType.FP32, Shape.of(3, 1));
        mixed().toClient(sink)
                .next(new InferenceResponse(new ServableId("m", 1), "", List.of(scalar, row), Map.of()), true);
        try (InferenceResponse response = got.get(0)) {
            assertThat(response.outputs()).extracting(Tensor::shape).containsExactly(Shape.of(3), Shape.of(3, 1));
        }
    }
}
