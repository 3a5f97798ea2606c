// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.tensor;

import io.nereid.base.ServingException;
import java.nio.ByteBuffer;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A named, typed and shaped view of row-major little-endian bytes in a {@link MemoryRegion}. A BYTES tensor holds for
 * each element a 4-byte length and the bytes.
 *
 * <p>The shape of a tensor includes the batch dimension where the model is batched.
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
     * write all of them. In a run, prefer {@link TensorScope#allocate}, which closes the tensor when the run fails.
     *
     * @param shape the concrete shape, with the batch dimension where the model is batched
     * @throws ServingException INVALID_ARGUMENT when the shape is not concrete or needs 2 GiB or more
     */
    public static Tensor allocate(String name, DataType dataType, Shape shape) {
        int bytes = checkedSize(name, shape, shape.byteSize(dataType));
        return new Tensor(name, dataType, shape, MemoryRegion.allocate(bytes), 0, bytes);
    }

    /**
     * Creates a BYTES tensor with copies of its elements in a new pooled region.
     *
     * @param elements as many as the shape has, in row-major order
     * @throws ServingException INVALID_ARGUMENT when the elements take 2 GiB or more
     */
    public static Tensor ofBytes(String name, Shape shape, byte[][] elements) {
        long size = 0;
        for (byte[] element : elements) {
            size += Integer.BYTES + element.length;
        }
        MemoryRegion region = MemoryRegion.allocate(checkedSize(name, shape, size));
        int at = 0;
        for (byte[] element : elements) {
            region.setInt(at, element.length);
            region.setBytes(at + Integer.BYTES, element, 0, element.length);
            at += Integer.BYTES + element.length;
        }
        return new Tensor(name, DataType.BYTES, shape, region, 0, at);
    }

    /**
     * Creates a tensor with numbers that were computed as doubles, converted to its type: integers lose their fraction,
     * and BOOL is true for every number but 0. A number outside the range of an integer type gives an unspecified value.
     *
     * @param dataType any type but FP16, BF16 and BYTES
     * @param values as many as the shape has elements, in row-major order
     * @throws ServingException INVALID_ARGUMENT for another type, and as {@link #allocate}
     */
    public static Tensor ofDoubles(String name, DataType dataType, Shape shape, double[] values) {
        Tensor tensor = allocate(name, dataType, shape);
        ByteBuffer to = tensor.buffer();
        switch (dataType) {
            case FP64 -> to.asDoubleBuffer().put(values);
            case FP32 -> {
                for (double v : values) {
                    to.putFloat((float) v);
                }
            }
            case INT64, UINT64 -> {
                for (double v : values) {
                    to.putLong((long) v);
                }
            }
            case INT32 -> {
                for (double v : values) {
                    to.putInt((int) v);
                }
            }
            case UINT32 -> {
                for (double v : values) {
                    to.putInt((int) (long) v);
                }
            }
            case INT16, UINT16 -> {
                for (double v : values) {
                    to.putShort((short) (long) v);
                }
            }
            case INT8, UINT8 -> {
                for (double v : values) {
                    to.put((byte) (long) v);
                }
            }
            case BOOL -> {
                for (double v : values) {
                    to.put((byte) (v != 0 ? 1 : 0));
                }
            }
            default -> {
                tensor.close();
                throw ServingException.invalidArgument(
                        "tensor '" + name + "' is of type " + dataType + " (expected: BOOL, FP32, FP64 or an integer)");
            }
        }
        return tensor;
    }

    private static int checkedSize(String name, Shape shape, long bytes) {
        if (bytes > Integer.MAX_VALUE - 64) {
            throw ServingException.invalidArgument(
                    "tensor '" + name + "' of shape " + shape + " takes " + bytes + " bytes (expected: < 2 GiB)");
        }
        return (int) bytes;
    }

    /** Returns the tensor of a name; null when the list does not have it, such as an optional input. */
    public static @Nullable Tensor find(List<Tensor> tensors, String name) {
        for (int i = 0; i < tensors.size(); i++) {
            if (tensors.get(i).name().equals(name)) {
                return tensors.get(i);
            }
        }
        return null;
    }

    /** The tensor's name in the model's signature. */
    public String name() {
        return name;
    }

    /** The type of the elements. */
    public DataType dataType() {
        return dataType;
    }

    /**
     * The concrete shape. It includes the batch dimension where the model is batched: a tensor always describes its
     * whole data.
     */
    public Shape shape() {
        return shape;
    }

    /** The memory that holds the bytes. */
    public MemoryRegion region() {
        return region;
    }

    /** The memory of a device that holds the bytes; null when processors can read and write them. */
    public @Nullable DeviceRegion deviceRegion() {
        return region.onDevice() ? (DeviceRegion) region : null;
    }

    /**
     * Returns the same bytes in memory of the host, with a reference of its own. For a tensor on a device it blocks until
     * they have been copied, unless they were before.
     *
     * @throws ServingException UNAVAILABLE when the device is lost, RESOURCE_EXHAUSTED without memory
     */
    public Tensor retainOnHost() {
        DeviceRegion device = deviceRegion();
        if (device == null) {
            return retain();
        }
        return new Tensor(name, dataType, shape, device.copyToHost().retain(), offset, byteLength);
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
