// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.pytorch;

import ai.djl.ndarray.types.DataType;
import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;

/**
 * The types of tensors by their number in libtorch. The binding ends the process when it meets one that it does not know;
 * such ones cross the border in a wider type that it does know.
 */
enum ElementType {
    UINT8(0, DataType.UINT8),
    INT8(1, DataType.INT8),
    INT16(2, DataType.INT32),
    INT32(3, DataType.INT32),
    INT64(4, DataType.INT64),
    FP16(5, DataType.FLOAT16),
    FP32(6, DataType.FLOAT32),
    FP64(7, DataType.FLOAT64),
    BOOL(11, DataType.BOOLEAN),
    BF16(15, DataType.FLOAT32),
    UINT16(27, DataType.INT32),
    UINT32(28, DataType.INT64),
    UINT64(29, DataType.INT64);

    private static final ElementType[] VALUES = values();

    private final int number;
    private final DataType crossing;

    ElementType(int number, DataType crossing) {
        this.number = number;
        this.crossing = crossing;
    }

    /** The one of a number; null for one that clients have no name for. */
    static @Nullable ElementType numbered(long number) {
        for (ElementType type : VALUES) {
            if (type.number == number) {
                return type;
            }
        }
        return null;
    }

    /** The one of a client's type; null for texts. */
    static @Nullable ElementType of(io.nereid.tensor.DataType type) {
        for (ElementType each : VALUES) {
            if (each.name().equals(type.name())) {
                return each;
            }
        }
        return null;
    }

    int number() {
        return number;
    }

    /** The type in which the binding sees it. */
    DataType crossing() {
        return crossing;
    }

    io.nereid.tensor.DataType dataType() {
        return io.nereid.tensor.DataType.valueOf(name());
    }

    /** Whether it crosses in another type than its own. */
    boolean wider() {
        return this == INT16 || this == BF16 || this == UINT16 || this == UINT32 || this == UINT64;
    }

    /** Elements in the crossing type, from its own; both little-endian. */
    void widen(ByteBuffer from, ByteBuffer to) {
        while (from.hasRemaining()) {
            switch (this) {
                case INT16 -> to.putInt(from.getShort());
                case UINT16 -> to.putInt(from.getShort() & 0xffff);
                case UINT32 -> to.putLong(from.getInt() & 0xffffffffL);
                case BF16 -> to.putInt(from.getShort() << 16);
                default -> to.putLong(from.getLong());
            }
        }
    }

    /** Elements in its own type, from the crossing one. */
    void narrow(ByteBuffer from, ByteBuffer to) {
        while (from.hasRemaining()) {
            switch (this) {
                case INT16, UINT16 -> to.putShort((short) from.getInt());
                case UINT32 -> to.putInt((int) from.getLong());
                // Nothing is lost: the wider number was made from one of these.
                case BF16 -> to.putShort((short) (from.getInt() >>> 16));
                default -> to.putLong(from.getLong());
            }
        }
    }
}
