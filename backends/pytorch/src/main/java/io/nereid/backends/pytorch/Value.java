// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.pytorch;

import io.nereid.tensor.DataType;
import org.jspecify.annotations.Nullable;

/** What an argument or an answer of a TorchScript method can be, as far as tensors can stand for it. */
enum Value {
    /** A tensor of a type that the archive does not tell. */
    TENSOR(null, "Tensor"),
    /** One whole number. */
    INT(DataType.INT64, "int"),
    /** One number. */
    FLOAT(DataType.FP64, "float"),
    /** Yes or no. */
    BOOL(DataType.BOOL, "bool"),
    /** One text. */
    TEXT(DataType.BYTES, "str"),
    /** Whole numbers in a row. */
    INTS(DataType.INT64, "List[int]"),
    /** Numbers in a row. */
    FLOATS(DataType.FP64, "List[float]"),
    /** Texts in a row. */
    TEXTS(DataType.BYTES, "List[str]");

    private static final Value[] VALUES = values();
    private static final String OPTIONAL = "Optional[";

    private final @Nullable DataType dataType;
    private final String spelled;

    Value(@Nullable DataType dataType, String spelled) {
        this.dataType = dataType;
        this.spelled = spelled;
    }

    /** The type of its elements; null when the archive does not tell. */
    @Nullable DataType dataType() {
        return dataType;
    }

    /** Whether it is one value. */
    boolean single() {
        return this == INT || this == FLOAT || this == BOOL || this == TEXT;
    }

    /** The one that a type stands for, optional or not; null when tensors cannot stand for it. */
    static @Nullable Value of(String type) {
        String inner = type.startsWith(OPTIONAL) && type.endsWith("]")
                ? type.substring(OPTIONAL.length(), type.length() - 1)
                : type;
        for (Value value : VALUES) {
            if (value.spelled.equals(inner)) {
                return value;
            }
        }
        return null;
    }
}
