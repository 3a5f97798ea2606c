// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.pytorch;

import io.nereid.tensor.DataType;
import org.jspecify.annotations.Nullable;

/** The types of arguments and returned values of a TorchScript method that can be represented by tensors. */
enum TorchType {
    /** A tensor; the archive does not declare its element type. */
    TENSOR(null, "Tensor"),
    /** An integer. */
    INT(DataType.INT64, "int"),
    /** A floating-point number. */
    FLOAT(DataType.FP64, "float"),
    /** A boolean. */
    BOOL(DataType.BOOL, "bool"),
    /** A string. */
    TEXT(DataType.BYTES, "str"),
    /** A list of integers. */
    INTS(DataType.INT64, "List[int]"),
    /** A list of floating-point numbers. */
    FLOATS(DataType.FP64, "List[float]"),
    /** A list of strings. */
    TEXTS(DataType.BYTES, "List[str]");

    private static final TorchType[] VALUES = values();
    private static final String OPTIONAL = "Optional[";

    private final @Nullable DataType dataType;
    private final String spelled;

    TorchType(@Nullable DataType dataType, String spelled) {
        this.dataType = dataType;
        this.spelled = spelled;
    }

    /** The type of its elements; null for a tensor. */
    @Nullable DataType dataType() {
        return dataType;
    }

    /** Whether it is a single value, not a tensor or list. */
    boolean single() {
        return this == INT || this == FLOAT || this == BOOL || this == TEXT;
    }

    /** The type for TorchScript's spelling, with or without {@code Optional}; null when tensors cannot represent it. */
    static @Nullable TorchType of(String type) {
        String inner = type.startsWith(OPTIONAL) && type.endsWith("]")
                ? type.substring(OPTIONAL.length(), type.length() - 1)
                : type;
        for (TorchType value : VALUES) {
            if (value.spelled.equals(inner)) {
                return value;
            }
        }
        return null;
    }
}
