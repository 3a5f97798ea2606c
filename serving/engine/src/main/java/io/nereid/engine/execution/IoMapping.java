// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.execution;

import io.nereid.spi.config.BatchOutput;
import io.nereid.spi.config.BatchSizePolicy;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/**
 * The mapping between the tensors of clients and those of the model: reshaping, ragged and padded inputs, scattered outputs.
 * Computed once per model, so that a run only looks it up. Immutable.
 *
 * <p>Requests whose tensors differ beyond the first dimension share a batch only where padding is allowed; otherwise
 * each shape has its own batches, where TensorFlow Serving would fail the whole batch.
 */
public final class IoMapping {
    /**
     * An input of clients.
     *
     * @param spec as clients see it
     * @param ragged whether the model gets the batch as one flat tensor
     * @param compared whether requests must have equal shapes to share a batch
     */
    record Input(TensorSpec spec, boolean ragged, boolean compared) {}

    /**
     * An output that a run may be asked for.
     *
     * @param spec as clients see it
     * @param accepted its shape as the model returns it, the batch dimension (-1) included
     * @param source the input by whose shape the output is split, or null
     */
    record Output(TensorSpec spec, Shape accepted, @Nullable String source) {
        String name() {
            return spec.name();
        }

        DataType dataType() {
            return spec.dataType();
        }

        boolean plain() {
            return spec.reshape() == null && source == null;
        }
    }

    private static final int[] ANY = {};
    /** Tensors of a higher rank are not padded: their shapes must be equal. */
    private static final int MOST_PADDED = 6;

    private final boolean batched;
    /** The allowed sizes of a run, ascending; {@link #ANY} for any size. */
    private final int[] allowed;

    private final boolean pads;
    /** How requests of different lengths share a batch; null if they do not, or if {@link #pads}. */
    private final @Nullable LengthPadding lengths;

    private final boolean plainInputs;
    private final boolean plainOutputs;
    private final boolean alwaysJoinable;
    private final Input[] inputs;
    private final Output[] outputs;
    private final List<String> allOutputs;

    public IoMapping(ModelConfig config) {
        this(config, config.batchSizePolicy());
    }

    /** Creates a mapping with other padding settings than the configuration's. */
    IoMapping(ModelConfig config, BatchSizePolicy fit) {
        this.batched = config.batched();
        this.allowed =
                fit == BatchSizePolicy.NONE || !batched || fit.allowedSizes().isEmpty()
                        ? ANY
                        : fit.allowedSizes().stream()
                                .mapToInt(Integer::intValue)
                                .sorted()
                                .toArray();
        this.lengths = LengthPadding.of(config);
        this.pads = fit != BatchSizePolicy.NONE && batched && fit.padVariableLength() && lengths == null;
        this.inputs = config.inputs().stream()
                .map(s -> new Input(s, s.ragged() && batched, (s.shape().isDynamic() || s.unchecked()) && !s.ragged()))
                .toArray(Input[]::new);
        List<Output> all = new ArrayList<>();
        for (TensorSpec s : config.outputs()) {
            all.add(new Output(s, onWire(s.modelShape()), source(config, s.name())));
        }
        this.allOutputs = config.outputs().stream().map(TensorSpec::name).toList();
        for (TensorSpec s : config.modelOutputs()) {
            if (!allOutputs.contains(s.name())) {
                all.add(new Output(s, onWire(s.shape()), null));
            }
        }
        this.outputs = all.toArray(Output[]::new);
        this.plainInputs = config.batchInputs().isEmpty()
                && config.inputs().stream().allMatch(s -> s.reshape() == null && !(s.ragged() && batched));
        this.plainOutputs = all.stream().allMatch(Output::plain);
        this.alwaysJoinable = config.sequence() == null
                && config.inputs().stream().noneMatch(TensorSpec::optional)
                && List.of(inputs).stream().noneMatch(Input::compared);
    }

    private Shape onWire(Shape shape) {
        return batched ? shape.prepend(-1) : shape;
    }

    private static @Nullable String source(ModelConfig config, String output) {
        for (BatchOutput b : config.batchOutputs()) {
            if (b.targets().contains(output)) {
                return b.source();
            }
        }
        return null;
    }

    boolean batched() {
        return batched;
    }

    /** Whether the inputs of a batch are padded to one shape. */
    boolean pads() {
        return pads;
    }

    /** Returns how requests of different lengths share a batch; null if the model's configuration has nothing about it. */
    @Nullable LengthPadding lengths() {
        return lengths;
    }

    /** Returns the input of this name if {@link #lengths} pads it; else null. */
    LengthPadding.@Nullable Input stretched(String input) {
        return lengths == null ? null : lengths.input(input);
    }

    /**
     * The number of rows to add to a batch of {@code rows}; 0 when that size is allowed, or no allowed size is large
     * enough.
     */
    int missing(int rows) {
        if (allowed == ANY || rows == 0) {
            return 0;
        }
        for (int size : allowed) {
            if (size >= rows) {
                return size - rows;
            }
        }
        return 0;
    }

    /** Whether the model gets the clients' tensors unchanged. */
    boolean plainInputs() {
        return plainInputs;
    }

    /** Whether clients get the model's tensors unchanged. */
    boolean plainOutputs() {
        return plainOutputs;
    }

    /** The outputs for clients that request none explicitly, in the model's order. */
    List<String> allOutputs() {
        return allOutputs;
    }

    /** The outputs that occur in at least one list, in the model's order. */
    List<String> union(List<List<String>> wanted) {
        Set<String> names = new TreeSet<>();
        wanted.forEach(names::addAll);
        List<String> union = new ArrayList<>();
        for (Output o : outputs) {
            if (names.contains(o.name())) {
                union.add(o.name());
            }
        }
        return union;
    }

    /**
     * Whether requests with these inputs, in the model's order, may share a batch. An equivalence relation, so that
     * comparing with the first request of a batch suffices.
     */
    boolean joinable(List<Tensor> left, List<Tensor> right) {
        if (left.size() != right.size()) {
            return false;
        }
        if (alwaysJoinable) {
            return true;
        }
        boolean stretches = lengths != null
                && lengths.on()
                && lengths.length(left) != LengthPadding.NONE
                && lengths.length(right) != LengthPadding.NONE;
        for (int i = 0; i < left.size(); i++) {
            Tensor l = left.get(i);
            Tensor r = right.get(i);
            if (!l.name().equals(r.name())) {
                return false;
            }
            Input input = input(l.name(), i);
            if (stretches && stretched(l.name()) != null) {
                // a single variable dimension, which is padded: the others are equal
                continue;
            }
            // inputs that the server has added (states) are concatenated too, so their shapes must be equal
            if ((input == null || input.compared())
                    && !l.shape().sameBeyondFirst(r.shape())
                    && (input == null || !paddable(l.shape(), r.shape()))) {
                return false;
            }
        }
        return true;
    }

    private boolean paddable(Shape left, Shape right) {
        return pads && left.rank() == right.rank() && left.rank() <= MOST_PADDED;
    }

    /**
     * Returns the client input with this name, or null for one that the server has added.
     *
     * @param guess the likely position
     */
    @Nullable Input input(String name, int guess) {
        if (guess < inputs.length && inputs[guess].spec().name().equals(name)) {
            return inputs[guess];
        }
        for (Input input : inputs) {
            if (input.spec().name().equals(name)) {
                return input;
            }
        }
        return null;
    }

    /**
     * Returns the output with this name, or null for an unknown one.
     *
     * @param guess the likely position
     */
    @Nullable Output output(String name, int guess) {
        if (guess < outputs.length && outputs[guess].name().equals(name)) {
            return outputs[guess];
        }
        for (Output output : outputs) {
            if (output.name().equals(name)) {
                return output;
            }
        }
        return null;
    }

    /** The shape in which the model sees a client's tensor of shape {@code given}. */
    Shape modelShape(@Nullable Input input, Shape given) {
        if (input == null) {
            return given;
        }
        if (input.ragged()) {
            return Shape.of(given.elementCount());
        }
        Shape reshape = input.spec().reshape();
        return reshape == null ? given : map(given, input.spec().shape(), reshape);
    }

    /** The shape in which clients see a model's tensor of shape {@code given}. */
    Shape clientShape(Output output, Shape given) {
        Shape reshape = output.spec().reshape();
        return reshape == null ? given : map(given, reshape, output.spec().shape());
    }

    /**
     * Returns {@code to}, whose variable dimensions get the sizes that {@code given} has at the variable dimensions of
     * {@code from}.
     */
    private Shape map(Shape given, Shape from, Shape to) {
        int skip = batched ? 1 : 0;
        long[] dims = new long[to.rank() + skip];
        if (batched) {
            dims[0] = given.dim(0);
        }
        int at = 0;
        for (int i = 0; i < to.rank(); i++) {
            long size = to.dim(i);
            if (size < 0) {
                while (from.dim(at) >= 0) {
                    at++;
                }
                size = given.dim(skip + at++);
            }
            dims[skip + i] = size;
        }
        return Shape.of(dims);
    }
}
