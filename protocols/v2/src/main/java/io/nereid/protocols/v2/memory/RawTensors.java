// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.memory;

import io.nereid.base.ServingException;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;

/** Creates tensors over raw bytes, after a check that the bytes agree with the shape. Holds no state. */
public final class RawTensors {
    private RawTensors() {}

    /** A tensor that is a view of {@code length} bytes of a region; retains the region. */
    public static Tensor view(
            String name, DataType type, Shape shape, MemoryRegion region, int offset, int length, String model) {
        if (type.isFixedSize()) {
            long expected = shape.byteSize(type);
            if (expected != length) {
                throw sizeMismatch(name, model, expected, length);
            }
        } else {
            check(name, shape.elementCount(), region, offset, length, model);
        }
        if (length == 0) {
            return Tensor.over(name, type, shape, MemoryRegion.empty(), 0, 0);
        }
        return Tensor.over(name, type, shape, region.retain(), offset, length);
    }

    /**
     * A tensor over {@code length} bytes of new memory whose content is still to be read. If its type has no fixed size,
     * the content has to be checked then.
     */
    static Tensor unread(String name, DataType type, Shape shape, int length, String model) {
        if (type.isFixedSize() ? shape.byteSize(type) != length : length == 0 && shape.elementCount() > 0) {
            throw type.isFixedSize()
                    ? sizeMismatch(name, model, shape.byteSize(type), length)
                    : countMismatch(name, model, shape.elementCount(), 0);
        }
        return Tensor.over(name, type, shape, MemoryRegion.allocate(length), 0, length);
    }

    public static ServingException sizeMismatch(String name, String model, long expected, long got) {
        return ServingException.invalidArgument("input byte size mismatch for input '" + name + "' for model '" + model
                + "'. Expected " + expected + ", got " + got);
    }

    public static ServingException countMismatch(String name, String model, long expected, long got) {
        return ServingException.invalidArgument("unexpected number of string elements " + got + " for inference input '"
                + name + "' for model '" + model + "', expecting " + expected);
    }

    /** Checks that the bytes are as many BYTES elements as the shape has. */
    static void check(String name, long count, MemoryRegion region, int offset, int length, String model) {
        int at = offset;
        int end = offset + length;
        long seen = 0;
        while (at < end) {
            int left = end - at;
            if (left < 4) {
                throw ServingException.invalidArgument("incomplete string length indicator for inference input '" + name
                        + "' for model '" + model + "', expecting 4 bytes but only " + left + " bytes available.");
            }
            int size = region.getInt(at);
            if (size < 0 || size > left - 4) {
                throw ServingException.invalidArgument("incomplete string data for inference input '" + name
                        + "' for model '" + model + "', expecting string of length " + Integer.toUnsignedString(size)
                        + " but only " + (left - 4) + " bytes available.");
            }
            at += 4 + size;
            seen++;
        }
        if (seen != count) {
            throw countMismatch(name, model, count, seen);
        }
    }
}
