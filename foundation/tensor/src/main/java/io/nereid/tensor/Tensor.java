// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.tensor;

import io.nereid.base.ServingException;
import java.nio.ByteBuffer;

/**
 * A named, typed, shaped view of row-major little-endian bytes in a {@link MemoryRegion}. It owns one count of its region
 * until {@link #close()}; {@link #retain()} makes a second owner. Immutable but for that count; closing twice is an error.
 */
public final class Tensor implements AutoCloseable {
    private final String name;
    private final DataType dataType;
    private final Shape shape;
    private final MemoryRegion region;
    private final int offset;
    private final int byteLength;

    private Tensor(String name, DataType dataType, Shape shape, MemoryRegion region, int offset, int byteLength) {
        this.name = name;
        this.dataType = dataType;
        this.shape = shape;
        this.region = region;
        this.offset = offset;
        this.byteLength = byteLength;
    }

    /**
     * A tensor over {@code byteLength} bytes of {@code region} at {@code offset}; takes over one count of the region.
     * For a fixed-size type the caller has checked that the bytes match the shape.
     */
    public static Tensor over(
            String name, DataType dataType, Shape shape, MemoryRegion region, int offset, int byteLength) {
        return new Tensor(name, dataType, shape, region, offset, byteLength);
    }

    /**
     * A tensor of a fixed-size type in a new pooled region whose bytes the caller must write.
     *
     * @throws ServingException INVALID_ARGUMENT when the shape is not concrete or takes 2 GiB or more
     */
    public static Tensor allocate(String name, DataType dataType, Shape shape) {
        long bytes = shape.byteSize(dataType);
        if (bytes > Integer.MAX_VALUE - 64) {
            throw ServingException.invalidArgument(
                    "tensor '" + name + "' of shape " + shape + " takes " + bytes + " bytes (expected: < 2 GiB)");
        }
        return new Tensor(name, dataType, shape, MemoryRegion.allocate((int) bytes), 0, (int) bytes);
    }

    /** The tensor's name in the model's signature. */
    public String name() {
        return name;
    }

    /** Type of the elements. */
    public DataType dataType() {
        return dataType;
    }

    /** The concrete shape. */
    public Shape shape() {
        return shape;
    }

    /** The memory that holds the bytes. */
    public MemoryRegion region() {
        return region;
    }

    /** Where the bytes start in the region. */
    public int offset() {
        return offset;
    }

    /** Number of bytes. */
    public int byteLength() {
        return byteLength;
    }

    /** Address of the first byte; valid while the caller keeps this tensor open. */
    public long address() {
        return region.address() + offset;
    }

    /** A fresh little-endian view of the bytes, position 0; it holds no count. */
    public ByteBuffer buffer() {
        return region.nio(offset, byteLength);
    }

    /** The same bytes under another owner, with a count of its own. */
    public Tensor retain() {
        region.retain();
        return new Tensor(name, dataType, shape, region, offset, byteLength);
    }

    /** The same bytes under another name and shape, with a count of its own. Element counts must be equal. */
    public Tensor retainAs(String newName, Shape newShape) {
        region.retain();
        return new Tensor(newName, dataType, newShape, region, offset, byteLength);
    }

    /** Part of the bytes under another shape, with a count of its own; {@code from} is relative to this tensor. */
    public Tensor retainSlice(Shape newShape, int from, int length) {
        region.retain();
        return new Tensor(name, dataType, newShape, region, offset + from, length);
    }

    /** Gives up this owner's count. */
    @Override
    public void close() {
        region.release();
    }

    /** Closes every tensor of a list. */
    public static void closeAll(Iterable<Tensor> tensors) {
        for (Tensor t : tensors) {
            t.close();
        }
    }

    @Override
    public String toString() {
        return dataType + shape.toString() + (name.isEmpty() ? "" : " '" + name + "'");
    }
}
