// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.execution;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.spi.config.parameters.PaddingPolicy;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The {@link PaddingPolicy} of one model, applied to tensors: the length of a request, the length of a batch, and the part
 * of an output that belongs to one request.
 *
 * <p>An output that should have the padded length and has another size cannot be cut back. Then padding is switched off
 * for good, with a warning, and requests of different lengths have separate batches again: the answers stay right.
 *
 * <p>Thread-safe: the only state is whether padding is switched off.
 */
final class LengthPadding {
    private static final Logger LOG = LoggerFactory.getLogger(LengthPadding.class);

    private static final int[] NO_AXES = {};

    /** In place of a length: the inputs are passed on as they are. */
    static final int NONE = -1;
    /** In place of a length: the requests differ and must not be padded any more, so that each runs alone. */
    static final int APART = -2;

    /** A padded input: the dimension of its length, the batch dimension counted, and the bytes of a padding element. */
    @SuppressWarnings("ArrayRecordComponent") // never compared, and never changed
    record Input(String name, int axis, byte[] element) {
        /** Returns a tensor's shape with another length. */
        Shape shape(Shape given, int length) {
            long[] dims = given.dims();
            dims[axis] = length;
            return Shape.of(dims);
        }
    }

    /** An output that is cut back at these dimensions, the batch dimension counted. */
    @SuppressWarnings("ArrayRecordComponent") // never compared, and never changed
    private record Output(String name, int[] axes) {}

    private final String model;
    private final PaddingPolicy policy;
    private final List<Input> inputs;
    private final List<Output> outputs;
    private volatile boolean off;

    private LengthPadding(String model, PaddingPolicy policy, List<Input> inputs, List<Output> outputs) {
        this.model = model;
        this.policy = policy;
        this.inputs = inputs;
        this.outputs = outputs;
    }

    /** Returns the padding of a model; null if its configuration has none. */
    static @Nullable LengthPadding of(ModelConfig config) {
        PaddingPolicy policy = PaddingPolicy.of(config);
        if (policy == null) {
            return null;
        }
        List<Input> inputs = new ArrayList<>();
        List<Output> outputs = new ArrayList<>();
        for (TensorSpec spec : config.inputs()) {
            String value = policy.values().get(spec.name());
            if (value != null) {
                inputs.add(new Input(
                        spec.name(), variable(spec.shape())[0], PaddingPolicy.element(spec.dataType(), value)));
            }
        }
        for (TensorSpec spec : config.outputs()) {
            if (policy.outputs().contains(spec.name())) {
                outputs.add(new Output(spec.name(), variable(spec.shape())));
            }
        }
        return new LengthPadding(config.name(), policy, List.copyOf(inputs), List.copyOf(outputs));
    }

    private static int[] variable(Shape shape) {
        return IntStream.range(0, shape.rank())
                .filter(i -> shape.dim(i) < 0)
                .map(i -> i + 1)
                .toArray();
    }

    // ---- inputs ----

    /** Returns whether requests of different lengths may share a batch. */
    boolean on() {
        return !off;
    }

    /** Returns the padded input of this name; null for an input that is not padded. */
    @Nullable Input input(String name) {
        for (Input input : inputs) {
            if (input.name.equals(name)) {
                return input;
            }
        }
        return null;
    }

    /** Returns the length of a request, the same for all its padded inputs; {@link #NONE} if they differ. */
    int length(List<Tensor> request) {
        long length = NONE;
        for (int i = 0; i < request.size(); i++) {
            Tensor t = request.get(i);
            Input input = input(t.name());
            if (input != null) {
                long size = t.shape().dim(input.axis);
                if (length != NONE && length != size) {
                    return NONE;
                }
                length = size;
            }
        }
        return length > Integer.MAX_VALUE ? NONE : (int) length;
    }

    /** Returns the length of a batch whose longest request has this length. */
    int padded(int length) {
        return off || length < 0 ? length : policy.padded(length);
    }

    /**
     * Returns the length to which the inputs of a batch are padded; {@link #NONE} if all have it already, {@link #APART}
     * if the requests differ although padding is off.
     */
    int target(List<InferenceJob> jobs) {
        int least = Integer.MAX_VALUE;
        int most = NONE;
        for (int i = 0; i < jobs.size(); i++) {
            int length = length(jobs.get(i).request().inputs());
            least = Math.min(least, length);
            most = Math.max(most, length);
        }
        if (least == NONE) {
            // Such requests share a batch only if their shapes are equal.
            return NONE;
        }
        int target = padded(most);
        if (least == target) {
            return NONE;
        }
        return off && least < most ? APART : target;
    }

    // ---- outputs ----

    /**
     * Verifies outputs, and switches padding off if one that is to be cut back does not have the length.
     *
     * @param length the length of every row of the run, at least 0
     * @return whether all outputs can be cut back
     */
    boolean fits(List<Tensor> tensors, int length) {
        for (int i = 0; i < tensors.size(); i++) {
            Tensor t = tensors.get(i);
            for (int axis : axes(t.name())) {
                if (axis >= t.shape().rank() || t.shape().dim(axis) != length) {
                    switchOff(t, axis, length);
                    return false;
                }
            }
        }
        return true;
    }

    /**
     * Switches padding off if outputs of a request that ran alone show that they could not be cut back.
     *
     * @param length the request's length; {@link #NONE} teaches nothing
     */
    void learn(List<Tensor> tensors, int length) {
        if (!off && length >= 0) {
            fits(tensors, length);
        }
    }

    private void switchOff(Tensor t, int axis, int length) {
        if (off) {
            return;
        }
        off = true;
        LOG.warn(
                "model '{}': output '{}' of shape {} does not have the length {} of its inputs in dimension {}; padding is off until"
                        + " the model is loaded again (give the dimension its size, or name the outputs with that length in parameter {})",
                model,
                t.name(),
                t.shape(),
                length,
                axis,
                PaddingPolicy.OUTPUTS);
    }

    /** The failure of a padded batch whose outputs cannot be cut back; its requests then run alone. */
    ServingException unfit() {
        return ServingException.of(
                ErrorCode.INVALID_ARGUMENT,
                "model '" + model + "' returned an output that cannot be cut back to the lengths of its requests");
    }

    /** Returns whether an output is cut back. */
    boolean cuts(String output) {
        return axes(output).length > 0;
    }

    private int[] axes(String output) {
        for (Output o : outputs) {
            if (o.name.equals(output)) {
                return o.axes;
            }
        }
        return NO_AXES;
    }

    /**
     * Returns the part of an output that belongs to one request. The caller owns it.
     *
     * @param rows the shape of the request's rows in {@code whole}, padded
     * @param at where these begin in {@code whole}, in bytes
     * @param length the request's own length, at most the padded one
     */
    Tensor cut(Tensor whole, Shape rows, int at, int length) {
        int[] axes = axes(whole.name());
        long[] from = rows.dims();
        long[] to = rows.dims();
        for (int axis : axes) {
            to[axis] = length;
        }
        Shape shape = Shape.of(to);
        int bytes = (int) shape.byteSize(whole.dataType());
        if (axes[axes.length - 1] == 1 && from[0] == 1) {
            // The first positions of a single row are one range of its memory.
            return whole.retainSlice(shape, at, bytes);
        }
        MemoryRegion region = MemoryRegion.allocate(bytes);
        new Cut(whole, from, to, region).copy(0, whole.offset() + at, 0);
        return Tensor.over(whole.name(), whole.dataType(), shape, region, 0, bytes);
    }

    /** A copy of the leading part of each dimension. */
    @SuppressWarnings("ArrayRecordComponent") // never compared, and never changed
    private record Cut(Tensor whole, long[] from, long[] to, MemoryRegion region) {
        /** Copies from {@code read} on, dimension by dimension, until the rest is one range; returns where it ended. */
        int copy(int dim, int read, int write) {
            if (same(dim)) {
                int bytes = (int) bytes(to, dim);
                region.setBytes(write, whole.region(), read, bytes);
                return write + bytes;
            }
            int step = (int) bytes(from, dim + 1);
            int end = write;
            for (long i = 0; i < to[dim]; i++) {
                end = copy(dim + 1, read + (int) i * step, end);
            }
            return end;
        }

        /** Whether everything below the first position of a dimension is one range: only that dimension differs. */
        private boolean same(int dim) {
            for (int i = dim + 1; i < to.length; i++) {
                if (from[i] != to[i]) {
                    return false;
                }
            }
            return true;
        }

        private long bytes(long[] dims, int dim) {
            long n = whole.dataType().size();
            for (int i = dim; i < dims.length; i++) {
                n *= dims[i];
            }
            return n;
        }
    }
}
