// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.examples.linear;

import io.nereid.backend.ModelInstance;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.nio.ByteBuffer;
import java.util.List;

/** One instance of a linear model. Without state, so any number of instances may run at once. */
final class LinearModelInstance implements ModelInstance {
    private final Weights weights;

    LinearModelInstance(Weights weights) {
        this.weights = weights;
    }

    @Override
    public List<Tensor> run(List<Tensor> inputs, List<String> outputs) {
        Tensor x = inputs.get(0); // lent by the engine: not closed here
        long rows = x.shape().dim(0);
        Tensor y = Tensor.allocate("y", DataType.FP32, Shape.of(rows, 1));
        ByteBuffer from = x.buffer();
        ByteBuffer to = y.buffer();
        for (long row = 0; row < rows; row++) {
            float sum = weights.bias();
            for (int i = 0; i < weights.size(); i++) {
                sum += weights.weight(i) * from.getFloat();
            }
            to.putFloat(sum);
        }
        return List.of(y); // owned by the engine from here on
    }

    @Override
    public void cancel() {}

    @Override
    public void close() {}
}
