// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.java;

import io.nereid.base.ServingException;
import io.nereid.spi.ModelConfig;
import io.nereid.spi.TensorSpec;
import io.nereid.tensor.Tensor;
import java.util.List;

/** A model of the server's own. Thread-safe: {@link #run} keeps nothing, or belongs to one instance. */
abstract class BuiltInModel implements JavaModel {
    private final ModelConfig config;

    BuiltInModel(ModelConfig config) {
        this.config = config;
    }

    /** With inputs and outputs. */
    final ModelConfig config() {
        return config;
    }

    /** Whether a run takes next to no time, whatever the tensors. */
    abstract boolean inline();

    /** What one instance runs: this model, or, when runs remember something, one of its own. */
    BuiltInModel forInstance() {
        return this;
    }

    /** Nothing to free, unless said otherwise. */
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

    /** The tensor of this name, which is there. */
    static Tensor named(List<Tensor> tensors, String name) {
        for (Tensor t : tensors) {
            if (t.name().equals(name)) {
                return t;
            }
        }
        throw ServingException.invalidArgument("input '" + name + "' is missing");
    }

    static ModelConfig with(ModelConfig c, List<TensorSpec> inputs, List<TensorSpec> outputs) {
        return c.completed(c.platform(), c.backend(), c.maxBatchSize(), inputs, outputs, c.batching(), c.instances());
    }

    static ServingException wrong(ModelConfig config, String what, String expected) {
        return ServingException.invalidArgument(
                "model '" + config.name() + "' " + what + " (expected: " + expected + ")", "correct its configuration");
    }
}
