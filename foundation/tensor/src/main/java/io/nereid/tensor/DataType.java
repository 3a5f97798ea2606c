// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.tensor;

import org.jspecify.annotations.Nullable;

/** The element types of the Open Inference Protocol; the constants' names are the protocol's names. Immutable. */
public enum DataType {
    BOOL(1),
    UINT8(1),
    UINT16(2),
    UINT32(4),
    UINT64(8),
    INT8(1),
    INT16(2),
    INT32(4),
    INT64(8),
    FP16(2),
    BF16(2),
    FP32(4),
    FP64(8),
    /** Each element is a 4-byte little-endian length and that many bytes. */
    BYTES(-1);

    private static final DataType[] VALUES = values();

    private final int size;

    DataType(int size) {
        this.size = size;
    }

    /** Bytes per element; -1 for {@link #BYTES}. */
    public int size() {
        return size;
    }

    /** Whether every element has the same number of bytes, which is true of all types except {@link #BYTES}. */
    public boolean isFixedSize() {
        return size > 0;
    }

    /** Whether elements are signed or unsigned integers (not {@link #BOOL}). */
    public boolean isInteger() {
        return ordinal() >= UINT8.ordinal() && ordinal() <= INT64.ordinal();
    }

    /** Whether elements are floating-point numbers. */
    public boolean isFloatingPoint() {
        return ordinal() >= FP16.ordinal() && ordinal() <= FP64.ordinal();
    }

    /** Returns the type with this protocol name ({@code FP32}), or null for an unknown name. */
    public static @Nullable DataType ofWireName(String name) {
        for (DataType type : VALUES) {
            if (type.name().equals(name)) {
                return type;
            }
        }
        return null;
    }
}
