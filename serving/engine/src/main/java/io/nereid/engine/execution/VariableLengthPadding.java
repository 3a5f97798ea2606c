// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.execution;

import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;

/**
 * Copies a tensor into a larger shape of the same rank and first dimension, padded with the tensor's own first
 * element, as TensorFlow Serving's {@code pad_variable_length_inputs} does; with zeros or empty strings when the
 * tensor has no element. Or with a given element, for types of fixed size. Confined to one thread.
 */
final class VariableLengthPadding {
    private static final int TEXT_HEAD = 4;

    private final Tensor from;
    private final long[] dims;
    private final long[] target;
    private final MemoryRegion to;
    /** The length in bytes of the padding element. */
    private final int filling;

    private final byte @Nullable [] element;
    /** The position of the next element to read, relative to the tensor. */
    private int read;
    /** The position of the next element to write. */
    private int write;

    private VariableLengthPadding(Tensor from, Shape target, byte @Nullable [] element, MemoryRegion to, int at) {
        this.from = from;
        this.dims = from.shape().dims();
        this.target = target.dims();
        this.to = to;
        this.filling = filling(from);
        this.element = element;
        this.write = at;
    }

    /** The number of bytes that the tensor needs in the target shape. */
    static long bytes(Tensor t, Shape target) {
        if (t.shape().sameBeyondFirst(target)) {
            return t.byteLength();
        }
        long elements = target.withFirst(t.shape().dim(0)).elementCount();
        return t.dataType() == DataType.BYTES
                ? t.byteLength() + (elements - t.shape().elementCount()) * filling(t)
                : elements * t.dataType().size();
    }

    /**
     * Writes the tensor in the target shape and returns the position after it.
     *
     * @param element the bytes of the padding element; null for the tensor's own first one
     */
    static int write(Tensor t, Shape target, byte @Nullable [] element, MemoryRegion to, int at) {
        if (t.shape().sameBeyondFirst(target)) {
            to.setBytes(at, t.region(), t.offset(), t.byteLength());
            return at + t.byteLength();
        }
        VariableLengthPadding padding =
                new VariableLengthPadding(t, target.withFirst(t.shape().dim(0)), element, to, at);
        padding.lay(0);
        return padding.write;
    }

    private static int filling(Tensor t) {
        if (t.dataType() != DataType.BYTES) {
            return t.dataType().size();
        }
        return t.byteLength() == 0 ? TEXT_HEAD : TEXT_HEAD + t.region().getInt(t.offset());
    }

    /** Copies dimension by dimension; once no further dimension needs padding, the rest is one contiguous copy. */
    private void lay(int dim) {
        if (sameFrom(dim)) {
            copy(count(dims, dim));
            return;
        }
        for (long i = 0; i < dims[dim]; i++) {
            lay(dim + 1);
        }
        fill((target[dim] - dims[dim]) * count(target, dim + 1));
    }

    private boolean sameFrom(int dim) {
        for (int i = dim; i < dims.length; i++) {
            if (dims[i] != target[i]) {
                return false;
            }
        }
        return true;
    }

    private static long count(long[] sizes, int dim) {
        long n = 1;
        for (int i = dim; i < sizes.length; i++) {
            n *= sizes[i];
        }
        return n;
    }

    private void copy(long elements) {
        int length;
        if (from.dataType() == DataType.BYTES) {
            int end = read;
            for (long i = 0; i < elements; i++) {
                end += TEXT_HEAD + from.region().getInt(from.offset() + end);
            }
            length = end - read;
        } else {
            length = (int) elements * from.dataType().size();
        }
        to.setBytes(write, from.region(), from.offset() + read, length);
        read += length;
        write += length;
    }

    private void fill(long elements) {
        if (elements == 0) {
            return;
        }
        int length = (int) (elements * filling);
        if (element != null) {
            to.setBytes(write, element, 0, filling);
            repeat(to, write, filling, length);
        } else if (from.byteLength() == 0) {
            ByteBuffer zeros = to.buffer(write, length);
            while (zeros.hasRemaining()) {
                zeros.put((byte) 0);
            }
        } else {
            to.setBytes(write, from.region(), from.offset(), filling);
            repeat(to, write, filling, length);
        }
        write += length;
    }

    /**
     * Fills {@code length} bytes at {@code at} with copies of the first {@code unit} of them. Each step doubles the
     * filled part.
     */
    static void repeat(MemoryRegion region, int at, int unit, int length) {
        int done = unit;
        while (done < length) {
            int next = Math.min(done, length - done);
            region.setBytes(at + done, region, at, next);
            done += next;
        }
    }
}
