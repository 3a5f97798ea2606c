// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.execution;

import io.nereid.spi.ModelConfig;
import io.nereid.spi.ModelConfig.BatchOutput;
import io.nereid.spi.ModelConfig.Fit;
import io.nereid.spi.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/**
 * How a model's tensors differ between clients and the model: reshaping, ragged inputs, scattered outputs. Worked out
 * once per model, so that a run only looks things up. Immutable.
 *
 * <p>Requests whose tensors differ beyond the first dimension share a batch only where these may be padded; otherwise each
 * shape has batches of its own, where TensorFlow Serving would fail the whole batch.
 */
public final class IoMapping {
    /**
     * An input that clients give.
     *
     * @param spec as clients see it
     * @param ragged whether the batch is fed as one flat tensor
     * @param compared whether requests must agree on its shape to share a batch
     */
    record Input(TensorSpec spec, boolean ragged, boolean compared) {}

    /**
     * An output that a run may be asked for.
     *
     * @param spec as clients see it
     * @param accepted its shape as the model gives it, the batch dimension (-1) included
     * @param source the input by whose shape it is cut, or null
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
    /** Beyond it tensors are not padded, but must agree. */
    private static final int MOST_PADDED = 6;

    private final boolean batched;
    /** Sizes that a run may have, ascending; {@link #ANY} for any. */
    private final int[] allowed;

    private final boolean pads;
    private final boolean plainInputs;
    private final boolean plainOutputs;
    private final boolean alwaysJoinable;
    private final Input[] inputs;
    private final Output[] outputs;
    private final List<String> allOutputs;

    public IoMapping(ModelConfig config) {
        this(config, config.fit());
    }

    /** With another way in which batches are made to fit. */
    IoMapping(ModelConfig config, Fit fit) {
        this.batched = config.batched();
        this.allowed = fit == Fit.NONE || !batched || fit.allowedSizes().isEmpty()
                ? ANY
                : fit.allowedSizes().stream()
                        .mapToInt(Integer::intValue)
                        .sorted()
                        .toArray();
        this.pads = fit != Fit.NONE && batched && fit.padVariableLength();
        this.inputs = config.inputs().stream()
                .map(s -> new Input(s, s.ragged() && batched, (s.shape().isDynamic() || s.unchecked()) && !s.ragged()))
                .toArray(Input[]::new);
        List<Output> all = new ArrayList<>();
        for (TensorSpec s : config.outputs()) {
            all.add(new Output(s, onWire(s.modelShape()), source(config, s.name())));
        }
        this.allOutputs = config.outputs().stream().map(TensorSpec::name).toList();
        for (TensorSpec s : config.fetches()) {
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

    /** Whether inputs of one batch are padded to one shape. */
    boolean pads() {
        return pads;
    }

    /** How many rows must be added to a batch of so many; 0 when it may run as it is, or none is large enough. */
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

    /** Whether the model sees the very tensors that clients give. */
    boolean plainInputs() {
        return plainInputs;
    }

    /** Whether clients see the very tensors that the model gives. */
    boolean plainOutputs() {
        return plainOutputs;
    }

    /** The outputs that clients get when they name none, in the model's order. */
    List<String> allOutputs() {
        return allOutputs;
    }

    /** The outputs of either list, in the model's order. */
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

    /** Whether requests with these inputs, in the model's order, may share a batch. An equivalence. */
    boolean joinable(List<Tensor> left, List<Tensor> right) {
        if (left.size() != right.size()) {
            return false;
        }
        if (alwaysJoinable) {
            return true;
        }
        for (int i = 0; i < left.size(); i++) {
            Tensor l = left.get(i);
            Tensor r = right.get(i);
            if (!l.name().equals(r.name())) {
                return false;
            }
            Input input = input(l.name(), i);
            // What the server has added (states) is laid side by side too.
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

    /** The client's input of that name, probably at {@code guess}; null for what the server has added. */
    @Nullable
    Input input(String name, int guess) {
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

    /** The output of that name, probably at {@code guess}; null when the model has none. */
    @Nullable
    Output output(String name, int guess) {
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

    /** The shape in which the model sees a tensor that clients give as {@code given}. */
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

    /** The shape in which clients see a tensor that the model gives as {@code given}. */
    Shape clientShape(Output output, Shape given) {
        Shape reshape = output.spec().reshape();
        return reshape == null ? given : map(given, reshape, output.spec().shape());
    }

    /** {@code to} with the sizes that {@code given} has where {@code from} leaves them open. */
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
