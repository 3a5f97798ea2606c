// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.java;

import io.nereid.base.ServingException;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.Tensor;
import java.util.List;

/**
 * A built-in model. Thread-safe: {@link #run} has no state, or {@link #forInstance} returns a separate object per
 * instance.
 */
public abstract class BuiltInModel implements JavaModel {
    private final ModelConfig config;

    public BuiltInModel(ModelConfig config) {
        this.config = config;
    }

    /** Returns the complete configuration, with inputs and outputs. */
    public final ModelConfig config() {
        return config;
    }

    /** Returns whether a run is so short for any input that it may execute on the thread that submits the request. */
    public abstract boolean inline();

    /** Returns the model that one instance runs: this object, or a new one if runs keep state. */
    public BuiltInModel forInstance() {
        return this;
    }

    /** Does nothing by default. */
    @Override
    public void close() {}

    @Override
    public abstract List<Tensor> run(List<Tensor> inputs, List<String> outputs);

    @Override
    public final List<TensorSpec> inputs() {
        return config.inputs();
    }

    @Override
    public final List<TensorSpec> outputs() {
        return config.outputs();
    }

    @Override
    public final int maxBatchSize() {
        return Math.max(0, config.maxBatchSize());
    }

    /** Returns the tensor with a name; fails with INVALID_ARGUMENT if it is missing. */
    public static Tensor named(List<Tensor> tensors, String name) {
        Tensor tensor = Tensor.find(tensors, name);
        if (tensor == null) {
            throw ServingException.invalidArgument("input '" + name + "' is missing");
        }
        return tensor;
    }

    public static ModelConfig with(ModelConfig c, List<TensorSpec> inputs, List<TensorSpec> outputs) {
        return c.completed(c.platform(), c.backend(), c.maxBatchSize(), inputs, outputs, c.batching(), c.instances());
    }

    public static ServingException wrong(ModelConfig config, String what, String expected) {
        return ServingException.invalidArgument(
                "model '" + config.name() + "' " + what + " (expected: " + expected + ")", "correct its configuration");
    }
}
