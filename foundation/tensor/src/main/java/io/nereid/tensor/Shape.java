// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.tensor;

import io.nereid.base.ServingException;
import java.util.Arrays;

/**
 * The dimensions of a tensor, outermost first. In a specification -1 stands for any size; the shape of a tensor is
 * concrete. Whether the outermost one is the batch dimension depends on the holder: a {@link Tensor} includes it, the
 * configuration of a batched model excludes it. Immutable.
 */
public final class Shape {
    /** The shape of a single value. */
    public static final Shape SCALAR = new Shape(new long[0]);

    private final long[] dims;

    private Shape(long[] dims) {
        this.dims = dims;
    }

    /**
     * Creates a shape from its dimensions, each ≥ 0, or -1 for any size.
     *
     * @throws ServingException INVALID_ARGUMENT for a dimension below -1
     */
    public static Shape of(long... dims) {
        for (long d : dims) {
            if (d < -1) {
                throw ServingException.invalidArgument(
                        "shape " + Arrays.toString(dims) + " has dimension " + d + " (expected: >= 0)");
            }
        }
        return dims.length == 0 ? SCALAR : new Shape(dims.clone());
    }

    /** Number of dimensions. */
    public int rank() {
        return dims.length;
    }

    /** Size of dimension {@code i}. */
    public long dim(int i) {
        return dims[i];
    }

    /** A copy of the dimensions. */
    public long[] dims() {
        return dims.clone();
    }

    /** Whether at least one dimension is -1. */
    public boolean isDynamic() {
        for (long d : dims) {
            if (d < 0) {
                return true;
            }
        }
        return false;
    }

    /**
     * The number of elements of a concrete shape; 1 for a scalar.
     *
     * @throws ServingException INVALID_ARGUMENT when a dimension is -1 or the product exceeds 63 bits
     */
    public long elementCount() {
        long n = 1;
        for (long d : dims) {
            if (d < 0) {
                throw ServingException.invalidArgument(
                        "shape " + this + " has a dimension of unknown size (expected: >= 0)");
            }
            long high = Math.multiplyHigh(n, d);
            n *= d;
            if (high != 0 || n < 0) {
                throw ServingException.invalidArgument("shape " + this + " has more elements than fit in 63 bits");
            }
        }
        return n;
    }

    /**
     * The size in bytes of a tensor of this shape and a fixed-size type.
     *
     * @throws ServingException INVALID_ARGUMENT as {@link #elementCount()}, or when the size exceeds 63 bits
     */
    public long byteSize(DataType type) {
        long n = elementCount();
        long bytes = n * type.size();
        if (Math.multiplyHigh(n, type.size()) != 0 || bytes < 0) {
            throw ServingException.invalidArgument(
                    "shape " + this + " of " + type + " has more bytes than fit in 63 bits");
        }
        return bytes;
    }

    /**
     * Whether a concrete shape matches this specification: the ranks are equal, and so are all dimensions that are not
     * -1.
     */
    public boolean accepts(Shape concrete) {
        if (concrete.dims.length != dims.length) {
            return false;
        }
        for (int i = 0; i < dims.length; i++) {
            if (dims[i] >= 0 && dims[i] != concrete.dims[i]) {
                return false;
            }
        }
        return true;
    }

    /** Returns this shape with another outermost dimension. The rank must be ≥ 1. */
    public Shape withFirst(long size) {
        if (dims[0] == size) {
            return this;
        }
        long[] copy = dims.clone();
        copy[0] = size;
        return new Shape(copy);
    }

    /** Returns this shape with {@code size} inserted before the outermost dimension. */
    public Shape prepend(long size) {
        long[] copy = new long[dims.length + 1];
        copy[0] = size;
        System.arraycopy(dims, 0, copy, 1, dims.length);
        return new Shape(copy);
    }

    /** Returns this shape without its outermost dimension. The rank must be ≥ 1. */
    public Shape withoutFirst() {
        return dims.length == 1 ? SCALAR : new Shape(Arrays.copyOfRange(dims, 1, dims.length));
    }

    /** Whether all dimensions except the outermost are equal. Both ranks must be ≥ 1. */
    public boolean sameBeyondFirst(Shape other) {
        return Arrays.equals(dims, 1, dims.length, other.dims, 1, other.dims.length);
    }

    @Override
    public boolean equals(Object o) {
        return o instanceof Shape s && Arrays.equals(dims, s.dims);
    }

    @Override
    public int hashCode() {
        return Arrays.hashCode(dims);
    }

    /** The notation of clients: {@code [1,16]}. */
    @Override
    public String toString() {
        StringBuilder b = new StringBuilder("[");
        for (int i = 0; i < dims.length; i++) {
            b.append(i == 0 ? "" : ",").append(dims[i]);
        }
        return b.append(']').toString();
    }
}
