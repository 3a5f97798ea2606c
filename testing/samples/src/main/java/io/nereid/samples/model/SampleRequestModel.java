// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.samples.model;

import io.nereid.backends.java.BuiltInModel;
import io.nereid.backends.java.JavaRequestModel;
import io.nereid.base.ServingException;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.util.List;

/** A model that executes requests instead of batched tensors. Thread-safe. */
public abstract class SampleRequestModel extends BuiltInModel implements JavaRequestModel {
    public SampleRequestModel(ModelConfig config) {
        super(config);
    }

    @Override
    public final boolean inline() {
        return false;
    }

    @Override
    public final List<Tensor> run(List<Tensor> inputs, List<String> outputs) {
        throw new UnsupportedOperationException("model '" + config().name() + "' takes requests");
    }

    public static TensorSpec spec(String name, DataType type, long... dims) {
        return new TensorSpec(name, type, Shape.of(dims));
    }

    /** Creates an output tensor with one 32-bit element, with the batch dimension if the model has one. */
    public final Tensor one(TensorSpec output, int bits) {
        Shape shape = maxBatchSize() > 0 ? Shape.of(1, 1) : Shape.of(1);
        Tensor tensor = Tensor.allocate(output.name(), output.dataType(), shape);
        tensor.buffer().putInt(0, bits);
        return tensor;
    }

    /**
     * Returns the configuration with these tensors and as decoupled if it does not have any tensors; otherwise checks
     * that it has exactly these.
     *
     * @throws ServingException INVALID_ARGUMENT when it has other tensors
     */
    public static ModelConfig exactly(ModelConfig config, List<TensorSpec> inputs, List<TensorSpec> outputs) {
        if (config.inputs().isEmpty() && config.outputs().isEmpty()) {
            return with(config, inputs, outputs).toBuilder().decoupled(true).build();
        }
        same(config, "input", config.inputs(), inputs);
        same(config, "output", config.outputs(), outputs);
        return config;
    }

    private static void same(ModelConfig config, String side, List<TensorSpec> given, List<TensorSpec> expected) {
        if (given.size() != expected.size()) {
            throw wrong(
                    config,
                    "expected " + expected.size() + " " + side + "s, got " + given.size(),
                    String.join(", ", expected.stream().map(TensorSpec::name).toList()));
        }
        for (int i = 0; i < given.size(); i++) {
            TensorSpec e = expected.get(i);
            TensorSpec g = given.get(i);
            boolean shape = g.shape().rank() == e.shape().rank()
                    && (e.shape().dim(0) < 0 || e.shape().equals(g.shape()));
            if (!g.name().equals(e.name()) || g.dataType() != e.dataType() || !shape) {
                throw wrong(
                        config,
                        "expected " + side + " " + (i + 1) + " to be " + e.name() + " " + e.dataType() + e.shape()
                                + ", got " + g.name() + " " + g.dataType() + g.shape(),
                        "these tensors in this order");
            }
        }
    }
}
