// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tensorflow;

import static org.tensorflow.internal.c_api.global.tensorflow.TF_TString_Copy;
import static org.tensorflow.internal.c_api.global.tensorflow.TF_TString_Dealloc;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.javacpp.Pointer;
import org.tensorflow.internal.c_api.TF_TString;

/**
 * Converts string tensors between length-prefixed bytes and TensorFlow's {@code TF_TString} elements of 24 bytes each.
 * The bytes of a string are not changed. Immutable.
 *
 * <p>A {@code TF_TString} stores up to 22 bytes in place and longer strings elsewhere. The lowest two bits of the first
 * byte are its kind:
 *
 * <ul>
 *   <li>0, small: the other six bits are the length, the bytes follow.
 *   <li>1, large: length &lt;&lt; 2, capacity and address, 8 bytes each; it owns the memory.
 *   <li>2, offset: length &lt;&lt; 2 and an offset from the element, 4 bytes each.
 *   <li>3, view: length &lt;&lt; 2 and address, 8 bytes each; the memory belongs to something else.
 * </ul>
 */
final class StringTensors {
    static final int ELEMENT = 24;
    private static final int SMALL = 22;

    private StringTensors() {}

    /**
     * Encodes a BYTES tensor as {@code TF_TString} elements. The caller frees them with {@link #free}.
     *
     * @throws ServingException INVALID_ARGUMENT for bytes that do not match the shape
     */
    static MemoryRegion elements(Tensor tensor) {
        ByteBuffer bytes = tensor.buffer();
        long count = tensor.shape().elementCount();
        if (count > bytes.remaining() / 4) {
            throw mismatch(tensor, count);
        }
        if (count * ELEMENT > Integer.MAX_VALUE - 64) {
            throw ServingException.invalidArgument(
                    "input '" + tensor.name() + "' has " + count + " elements (expected: < 89 million)");
        }
        // All zeros is a valid, empty TF_TString, so free() works if this loop fails half-way.
        MemoryRegion region = MemoryRegion.allocate((int) count * ELEMENT).zero();
        boolean done = false;
        try {
            ByteBuffer elements = region.buffer(0, region.size());
            for (int i = 0; i < count; i++) {
                int length = bytes.remaining() < 4 ? -1 : bytes.getInt();
                if (length < 0 || length > bytes.remaining()) {
                    throw mismatch(tensor, count);
                }
                int at = i * ELEMENT;
                if (length <= SMALL) {
                    elements.put(at, (byte) (length << 2));
                    elements.put(at + 1, bytes, bytes.position(), length);
                } else {
                    long from = tensor.address() + bytes.position();
                    TF_TString_Copy(
                            new TF_TString(new NativePointer(region.address() + at)),
                            new BytePointer(new NativePointer(from)),
                            length);
                }
                bytes.position(bytes.position() + length);
            }
            if (bytes.hasRemaining()) {
                throw mismatch(tensor, count);
            }
            done = true;
            return region;
        } finally {
            if (!done) {
                free(region);
            }
        }
    }

    /** Frees the elements and the memory that the large ones own. */
    static void free(MemoryRegion region) {
        for (int at = 0; at < region.size(); at += ELEMENT) {
            if ((region.getByte(at) & 3) == 1) {
                TF_TString_Dealloc(new TF_TString(new NativePointer(region.address() + at)));
            }
        }
        region.release();
    }

    private static ServingException mismatch(Tensor tensor, long count) {
        return ServingException.invalidArgument("input '" + tensor.name() + "' of " + tensor.byteLength()
                + " bytes does not hold the " + count + " length-prefixed elements of shape " + tensor.shape());
    }

    /** Decodes the {@code TF_TString} elements at an address to a BYTES tensor. */
    static Tensor decode(String name, Shape shape, long address) {
        if (shape.elementCount() * ELEMENT > Integer.MAX_VALUE - 64) {
            throw ServingException.of(
                    ErrorCode.RESOURCE_EXHAUSTED,
                    "output '" + name + "' has " + shape.elementCount() + " elements (expected: < 89 million)");
        }
        int count = (int) shape.elementCount();
        if (count == 0) {
            return Tensor.over(name, DataType.BYTES, shape, MemoryRegion.empty(), 0, 0);
        }
        ByteBuffer elements = view(address, (long) count * ELEMENT);
        long size = 0;
        for (int i = 0; i < count; i++) {
            size += 4 + length(elements, i * ELEMENT);
        }
        if (size > Integer.MAX_VALUE - 64) {
            throw ServingException.of(
                    ErrorCode.RESOURCE_EXHAUSTED, "output '" + name + "' takes " + size + " bytes (expected: < 2 GiB)");
        }
        MemoryRegion region = MemoryRegion.allocate((int) size);
        ByteBuffer target = region.buffer(0, (int) size);
        NativePointer to = new NativePointer(0);
        NativePointer from = new NativePointer(0);
        for (int i = 0; i < count; i++) {
            int at = i * ELEMENT;
            int length = (int) length(elements, at);
            target.putInt(length);
            switch (elements.get(at) & 3) {
                case 0 -> target.put(target.position(), elements, at + 1, length);
                case 1 -> copy(to.at(region.address() + target.position()), from.at(elements.getLong(at + 16)), length);
                case 2 -> {
                    long offset = elements.getInt(at + 4) & 0xffffffffL;
                    copy(to.at(region.address() + target.position()), from.at(address + at + offset), length);
                }
                default -> copy(to.at(region.address() + target.position()), from.at(elements.getLong(at + 8)), length);
            }
            target.position(target.position() + length);
        }
        return Tensor.over(name, DataType.BYTES, shape, region, 0, (int) size);
    }

    private static void copy(NativePointer to, NativePointer from, int length) {
        Pointer.memcpy(to, from, length);
    }

    private static long length(ByteBuffer elements, int at) {
        return switch (elements.get(at) & 3) {
            case 0 -> (elements.get(at) & 0xff) >>> 2;
            case 2 -> (elements.getInt(at) & 0xffffffffL) >>> 2;
            default -> elements.getLong(at) >>> 2;
        };
    }

    /** A buffer over TensorFlow's memory; it does not keep the memory alive. */
    static ByteBuffer view(long address, long size) {
        return new BytePointer(new NativePointer(address))
                .capacity(size)
                .asByteBuffer()
                .order(ByteOrder.LITTLE_ENDIAN);
    }
}
