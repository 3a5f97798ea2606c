// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.client.infer;

import java.util.Locale;

/** The data types of Open Inference V2. Immutable. */
public enum TensorDataType {
    BOOL(1),
    UINT8(1),
    UINT16(2),
    UINT32(4),
    UINT64(8),
    INT8(1),
    INT16(2),
    INT32(4),
    INT64(8),
    /** IEEE 754 half precision. */
    FP16(2),
    /** The upper half of an FP32. */
    BF16(2),
    FP32(4),
    FP64(8),
    /** Strings of bytes of any length. */
    BYTES(0);

    private final int size;

    TensorDataType(int size) {
        this.size = size;
    }

    /** The bytes of an element; 0 for {@link #BYTES}, whose elements have a length each. */
    public int size() {
        return size;
    }

    /** Whether the elements are FP16, BF16, FP32 or FP64. */
    public boolean isFloat() {
        return this == FP16 || this == BF16 || this == FP32 || this == FP64;
    }

    /**
     * Returns the type of a name on the wire, in any case, also as Triton's configurations write it ({@code TYPE_STRING}).
     *
     * @throws IllegalArgumentException for a name that is not a data type
     */
    public static TensorDataType of(String name) {
        String upper = name.toUpperCase(Locale.ROOT);
        String bare = upper.startsWith("TYPE_") ? upper.substring(5) : upper;
        if (bare.equals("STRING")) {
            return BYTES;
        }
        for (TensorDataType type : values()) {
            if (type.name().equals(bare)) {
                return type;
            }
        }
        throw new IllegalArgumentException(
                "data type '" + name + "' is unknown (expected: BOOL, INT8 to INT64, UINT8 to"
                        + " UINT64, FP16, BF16, FP32, FP64 or BYTES)");
    }
}
