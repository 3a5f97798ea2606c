// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.samples.model;

import io.nereid.backends.java.BuiltInModel;
import io.nereid.base.ServingException;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.SequenceBatching;
import io.nereid.spi.config.SequenceStateConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.util.ArrayList;
import java.util.List;

/**
 * Sums the values of a sequence in an implicit state: {@code OUTPUT} and the new state are {@code INPUT} plus the old
 * state. Needs exactly one state, with the numeric type and dims of the input. Thread-safe: has no state of its own.
 */
public final class ImplicitStateModel extends BuiltInModel {
    private final SequenceStateConfig state;

    public ImplicitStateModel(ModelConfig config) {
        super(config);
        this.state = state(config);
    }

    private static SequenceStateConfig state(ModelConfig config) {
        SequenceBatching sequence = config.sequence();
        if (sequence == null || sequence.states().size() != 1) {
            throw wrong(
                    config,
                    "has " + (sequence == null ? 0 : sequence.states().size()) + " states",
                    "sequence_batching with one state");
        }
        return sequence.states().get(0);
    }

    public static ModelConfig complete(ModelConfig config) {
        SequenceStateConfig state = state(config);
        List<TensorSpec> inputs = config.inputs().isEmpty()
                ? List.of(new TensorSpec("INPUT", state.dataType(), state.shape()))
                : config.inputs();
        List<TensorSpec> outputs = config.outputs().isEmpty()
                ? List.of(new TensorSpec("OUTPUT", state.dataType(), state.shape()))
                : config.outputs();
        boolean numeric = state.dataType() != DataType.BYTES && state.dataType() != DataType.BOOL;
        if (!numeric || inputs.size() != 1 || !fits(inputs.get(0), state)) {
            throw wrong(
                    config,
                    "has inputs " + inputs,
                    "one of the state's numeric type and dims, " + state.dataType() + state.shape());
        }
        for (TensorSpec output : outputs) {
            if (!fits(output, state)) {
                throw wrong(
                        config,
                        "has output " + output,
                        "the state's type and dims, " + state.dataType() + state.shape());
            }
        }
        return with(config, inputs, outputs);
    }

    private static boolean fits(TensorSpec spec, SequenceStateConfig state) {
        return spec.dataType() == state.dataType() && spec.modelShape().equals(state.shape());
    }

    @Override
    public boolean inline() {
        return false;
    }

    @Override
    public List<Tensor> run(List<Tensor> inputs, List<String> outputs) {
        Tensor in = named(inputs, inputs().get(0).name());
        Tensor before = named(inputs, state.inputName());
        Shape shape = in.shape();
        if (!before.shape().equals(shape)) {
            throw ServingException.invalidArgument("state '" + state.inputName() + "' is of shape " + before.shape()
                    + " and input '" + in.name() + "' of shape " + shape + " (expected: equal shapes)");
        }
        List<Tensor> results = new ArrayList<>(outputs.size());
        try (Tensor sum = Tensor.allocate("", in.dataType(), shape)) {
            AddSubModel.compute(in.dataType(), in.buffer(), before.buffer(), sum.buffer(), 1);
            for (String output : outputs) {
                results.add(sum.retainAs(output, shape));
            }
        }
        return results;
    }
}
