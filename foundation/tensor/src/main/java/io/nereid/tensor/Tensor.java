// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.tensor;

import io.nereid.base.ServingException;
import java.nio.ByteBuffer;

/**
 * A named, typed and shaped view of row-major little-endian bytes in a {@link MemoryRegion}. A BYTES tensor holds for
 * each element a 4-byte length and the bytes.
 *
 * <p>Ownership: a tensor owns one reference on its region until {@link #close}; {@link #retain} creates a second owner
 * that must be closed as well. Closing a tensor twice is an error. Immutable except for that reference; access to the
 * bytes is not synchronised.
 *
 * <pre>{@code
 * try (Tensor t = Tensor.allocate("INPUT0", DataType.FP32, Shape.of(1, 2))) {
 *     t.buffer().putFloat(1.5f).putFloat(2.5f);
 * }
 * }</pre>
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
     * Creates a tensor over {@code byteLength} bytes of {@code region} at {@code offset}. Takes over one reference on
     * the region. The caller has checked that the bytes match the shape of a fixed-size type.
     */
    public static Tensor over(
            String name, DataType dataType, Shape shape, MemoryRegion region, int offset, int byteLength) {
        return new Tensor(name, dataType, shape, region, offset, byteLength);
    }

    /**
     * Allocates a tensor of a fixed-size type in a new pooled region. The bytes are uninitialised: the caller must
     * write all of them.
     *
     * @throws ServingException INVALID_ARGUMENT when the shape is not concrete or needs 2 GiB or more
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

    /** The type of the elements. */
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

    /** The position of the first byte in the region. */
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

    /**
     * Returns a new little-endian view of the bytes at position 0. It holds no reference, so it is valid only while
     * the tensor is open.
     */
    public ByteBuffer buffer() {
        return region.buffer(offset, byteLength);
    }

    /** Returns a second tensor over the same bytes, with a reference of its own. */
    public Tensor retain() {
        region.retain();
        return new Tensor(name, dataType, shape, region, offset, byteLength);
    }

    /**
     * Returns the same bytes under another name and shape, with a reference of its own. The element counts must be
     * equal.
     */
    public Tensor retainAs(String newName, Shape newShape) {
        region.retain();
        return new Tensor(newName, dataType, newShape, region, offset, byteLength);
    }

    /**
     * Returns a part of the bytes under another shape, with a reference of its own.
     *
     * @param from the first byte, relative to this tensor
     * @param length number of bytes
     */
    public Tensor retainSlice(Shape newShape, int from, int length) {
        region.retain();
        return new Tensor(name, dataType, newShape, region, offset + from, length);
    }

    /** Releases this tensor's reference. */
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
