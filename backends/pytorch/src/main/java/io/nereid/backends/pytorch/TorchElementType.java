// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.pytorch;

import ai.djl.ndarray.types.DataType;
import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;

/**
 * libtorch's scalar types, by their number. DJL's binding terminates the process when it meets a type that it does not
 * know; tensors of such types are passed through the binding in a wider type that it knows, and converted back on the
 * other side (see {@link PtRuntime}).
 */
enum TorchElementType {
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

    private static final TorchElementType[] VALUES = values();

    private final int number;
    private final DataType crossing;

    TorchElementType(int number, DataType crossing) {
        this.number = number;
        this.crossing = crossing;
    }

    /** The type for libtorch's number; null when the protocols do not have such a type. */
    static @Nullable TorchElementType numbered(long number) {
        for (TorchElementType type : VALUES) {
            if (type.number == number) {
                return type;
            }
        }
        return null;
    }

    /** The type for a client's type; null for strings, which are not tensors in libtorch. */
    static @Nullable TorchElementType of(io.nereid.tensor.DataType type) {
        for (TorchElementType each : VALUES) {
            if (each.name().equals(type.name())) {
                return each;
            }
        }
        return null;
    }

    int number() {
        return number;
    }

    /** The type in which tensors pass through the binding. */
    DataType crossing() {
        return crossing;
    }

    io.nereid.tensor.DataType dataType() {
        return io.nereid.tensor.DataType.valueOf(name());
    }

    /** Whether it passes through the binding in a wider type. */
    boolean wider() {
        return this == INT16 || this == BF16 || this == UINT16 || this == UINT32 || this == UINT64;
    }

    /** Converts elements to the wider type; both little-endian. BF16 is the upper half of an FP32. */
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

    /** Converts elements back from the wider type. */
    void narrow(ByteBuffer from, ByteBuffer to) {
        while (from.hasRemaining()) {
            switch (this) {
                case INT16, UINT16 -> to.putShort((short) from.getInt());
                case UINT32 -> to.putInt((int) from.getLong());
                // Exact: the FP32 number was widened from a BF16 one.
                case BF16 -> to.putShort((short) (from.getInt() >>> 16));
                default -> to.putLong(from.getLong());
            }
        }
    }
}
