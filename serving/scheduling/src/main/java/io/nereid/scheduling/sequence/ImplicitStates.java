// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.sequence;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.scheduling.InitialStateFiles;
import io.nereid.spi.InferenceRequest.RequestedOutput;
import io.nereid.spi.config.InitialStateConfig;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.SequenceStateConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The implicit states of a model (Triton: implicit state management): tensors that the model outputs for one request of
 * a sequence and gets as inputs of the next. This class adds them to requests and takes them out of responses; the
 * values of a sequence are in its {@link ActiveSequence}. The initial values are created once and shared by all
 * sequences. Thread-safe: immutable until closed.
 */
public final class ImplicitStates implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(ImplicitStates.class);

    private final String model;
    private final List<Carried> states = new ArrayList<>();
    private final List<String> declared;
    private final List<RequestedOutput> all = new ArrayList<>();

    /**
     * @throws ServingException INVALID_ARGUMENT for a state with an invalid initial value
     */
    public ImplicitStates(ModelConfig config, List<SequenceStateConfig> configured, InitialStateFiles files) {
        this.model = config.name();
        this.declared = config.outputs().stream().map(TensorSpec::name).toList();
        Set<String> seen = new HashSet<>();
        try {
            for (SequenceStateConfig state : configured) {
                boolean newInput = seen.add("in " + state.inputName());
                boolean newOutput = seen.add("out " + state.outputName());
                if (!newInput || !newOutput) {
                    LOG.warn(
                            "model {}: state {} -> {} is configured twice; using the first one",
                            model,
                            state.outputName(),
                            state.inputName());
                    continue;
                }
                Shape shape = config.batched() ? state.shape().prepend(1) : state.shape();
                states.add(new Carried(state, shape, initial(config, state, files)));
            }
        } catch (RuntimeException e) {
            close();
            throw e;
        }
        declared.forEach(name -> all.add(new RequestedOutput(name, 0)));
    }

    boolean isEmpty() {
        return states.isEmpty();
    }

    int count() {
        return states.size();
    }

    /** Adds the current states to the inputs of a request; the caller owns a reference to each. */
    void append(List<Tensor> inputs, ActiveSequence sequence) {
        for (int i = 0; i < states.size(); i++) {
            inputs.add(current(sequence, false, i).retain());
        }
    }

    /** Returns whether the states of two requests have the same shapes, so that they can share a batch. */
    boolean sameShapes(ActiveSequence a, boolean aStarts, ActiveSequence b, boolean bStarts) {
        for (int i = 0; i < states.size(); i++) {
            if (!current(a, aStarts, i).shape().equals(current(b, bStarts, i).shape())) {
                return false;
            }
        }
        return true;
    }

    /** Returns the outputs to request from the model: those that the client requested, and all states. */
    List<RequestedOutput> withStates(List<RequestedOutput> wanted) {
        if (states.isEmpty()) {
            return wanted;
        }
        List<RequestedOutput> outputs = new ArrayList<>(wanted.isEmpty() ? all : wanted);
        for (Carried c : states) {
            if (!names(outputs, c.state.outputName())) {
                outputs.add(new RequestedOutput(c.state.outputName(), 0));
            }
        }
        return outputs;
    }

    /**
     * Takes the states out of a response and stores them for the next request of the sequence.
     *
     * @param outputs owned by the callee, unless it throws
     * @param keep whether another request may follow
     * @return the outputs that the client requested, owned by the caller
     * @throws ServingException INTERNAL for an output that is not configured, or a state with another type or shape
     */
    List<Tensor> take(ActiveSequence sequence, List<Tensor> outputs, List<RequestedOutput> wanted, boolean keep) {
        if (states.isEmpty() && declared.isEmpty()) {
            return outputs;
        }
        List<RequestedOutput> asked = wanted.isEmpty() ? all : wanted;
        boolean plain = true;
        for (Tensor t : outputs) {
            int state = check(t);
            plain &= state < 0;
        }
        if (plain) {
            return outputs;
        }
        List<Tensor> answer = new ArrayList<>(outputs.size());
        for (Tensor t : outputs) {
            int i = indexOf(t.name());
            if (i >= 0 && keep) {
                sequence.state(states.size(), i, t.retainAs(states.get(i).state.inputName(), t.shape()));
            }
            if (i < 0 || names(asked, t.name())) {
                answer.add(t);
            } else {
                t.close();
            }
        }
        return answer;
    }

    /** Returns the index of the state that an output holds, or -1 for an ordinary output. */
    private int check(Tensor t) {
        int i = indexOf(t.name());
        if (i < 0) {
            if (!declared.contains(t.name())) {
                throw ServingException.of(
                        ErrorCode.INTERNAL,
                        "unable to add state '" + t.name() + "'. State configuration is missing for model '" + model
                                + "'.");
            }
            return -1;
        }
        Carried c = states.get(i);
        if (t.dataType() != c.state.dataType() || !c.shape.accepts(t.shape())) {
            throw ServingException.of(
                    ErrorCode.INTERNAL,
                    "model '" + model + "' returned state '" + t.name() + "' as " + t.dataType() + " of shape "
                            + t.shape() + " (expected: " + c.state.dataType() + " of shape " + c.shape + ")",
                    "correct data_type or dims of the state in sequence_batching");
        }
        return i;
    }

    private int indexOf(String output) {
        for (int i = 0; i < states.size(); i++) {
            if (states.get(i).state.outputName().equals(output)) {
                return i;
            }
        }
        return -1;
    }

    private Tensor current(ActiveSequence sequence, boolean starts, int i) {
        Tensor kept = starts ? null : sequence.state(i);
        return kept == null ? states.get(i).initial : kept;
    }

    private static boolean names(List<RequestedOutput> outputs, String name) {
        for (RequestedOutput o : outputs) {
            if (o.name().equals(name)) {
                return true;
            }
        }
        return false;
    }

    private static Tensor initial(ModelConfig config, SequenceStateConfig state, InitialStateFiles files) {
        Shape dims = state.initial() == null ? resolved(state.shape()) : checked(state, state.initial());
        Shape shape = config.batched() ? dims.prepend(1) : dims;
        DataType type = state.dataType();
        long needed = type.isFixedSize() ? shape.byteSize(type) : 4 * shape.elementCount();
        if (needed > Integer.MAX_VALUE - MemoryRegion.ALIGNMENT) {
            throw ServingException.invalidArgument("state '" + state.inputName() + "' of shape " + shape + " takes "
                    + needed + " bytes (expected: < 2 GiB)");
        }
        String file = state.initial() == null ? "" : state.initial().file();
        if (file.isEmpty()) {
            MemoryRegion zeros = MemoryRegion.allocate((int) needed).zero();
            return Tensor.over(state.inputName(), type, shape, zeros, 0, (int) needed);
        }
        byte[] bytes = files.read(file);
        boolean fits = type.isFixedSize() ? bytes.length >= needed : holdsTexts(bytes, shape.elementCount());
        if (!fits) {
            throw ServingException.invalidArgument("initial_state setting expects " + needed
                    + " bytes, but the data provided from " + file + " only has " + bytes.length + " bytes.");
        }
        int length = type.isFixedSize() ? (int) needed : bytes.length;
        return Tensor.over(state.inputName(), type, shape, MemoryRegion.copyOf(bytes, 0, length), 0, length);
    }

    private static Shape resolved(Shape shape) {
        long[] dims = shape.dims();
        for (int i = 0; i < dims.length; i++) {
            dims[i] = dims[i] < 0 ? 1 : dims[i];
        }
        return Shape.of(dims);
    }

    private static Shape checked(SequenceStateConfig state, InitialStateConfig initial) {
        String name = state.inputName();
        if (initial.name().isEmpty()) {
            throw ServingException.invalidArgument(
                    "Field 'name' must be set when using initial_state for state input '" + name + "'.");
        }
        Shape given = initial.shape();
        Shape wanted = state.shape();
        if (given.rank() != wanted.rank()) {
            throw ServingException.invalidArgument(
                    "Number of dimensions in 'initial_state' doesn't match the size of 'state' dimensions for state"
                            + " input '" + name + "'. " + given.rank() + " != " + wanted.rank());
        }
        for (int i = 0; i < given.rank(); i++) {
            if (given.dim(i) < 0) {
                throw ServingException.invalidArgument(
                        "'initial_state' field for state input name '" + name + "' contains variable dimensions.");
            }
            if (wanted.dim(i) >= 0 && wanted.dim(i) != given.dim(i)) {
                throw ServingException.invalidArgument("'initial_state' dim for input name '" + name
                        + "' doesn't match 'state' dim description. " + given.dim(i) + " != " + wanted.dim(i));
            }
        }
        return given;
    }

    /** Returns whether the bytes are exactly {@code count} strings, each preceded by its length. */
    private static boolean holdsTexts(byte[] bytes, long count) {
        long at = 0;
        for (long i = 0; i < count; i++) {
            if (at + 4 > bytes.length) {
                return false;
            }
            int p = (int) at;
            long length = (bytes[p] & 0xFFL)
                    | (bytes[p + 1] & 0xFFL) << 8
                    | (bytes[p + 2] & 0xFFL) << 16
                    | (bytes[p + 3] & 0xFFL) << 24;
            at += 4 + length;
        }
        return at == bytes.length;
    }

    @Override
    public void close() {
        states.forEach(c -> c.initial.close());
        states.clear();
    }

    private record Carried(SequenceStateConfig state, Shape shape, Tensor initial) {}
}
