// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.tfdata;

import io.nereid.base.ServingException;
import io.nereid.tensor.DataType;
import org.jspecify.annotations.Nullable;

/** TensorFlow's element types with their numbers in {@code tensorflow.DataType}. Immutable. */
public enum TfDataType {
    FLOAT(1, DataType.FP32),
    DOUBLE(2, DataType.FP64),
    INT32(3, DataType.INT32),
    UINT8(4, DataType.UINT8),
    INT16(5, DataType.INT16),
    INT8(6, DataType.INT8),
    STRING(7, DataType.BYTES),
    COMPLEX64(8, null),
    INT64(9, DataType.INT64),
    BOOL(10, DataType.BOOL),
    QINT8(11, null),
    QUINT8(12, null),
    QINT32(13, null),
    BFLOAT16(14, DataType.BF16),
    QINT16(15, null),
    QUINT16(16, null),
    UINT16(17, DataType.UINT16),
    COMPLEX128(18, null),
    HALF(19, DataType.FP16),
    RESOURCE(20, null),
    VARIANT(21, null),
    UINT32(22, DataType.UINT32),
    UINT64(23, DataType.UINT64),
    FLOAT8_E5M2(24, null),
    FLOAT8_E4M3FN(25, null),
    INT4(29, null),
    UINT4(30, null);

    private static final TfDataType[] BY_NUMBER = new TfDataType[31];
    private static final TfDataType[] BY_TYPE = new TfDataType[DataType.values().length];

    static {
        for (TfDataType type : values()) {
            BY_NUMBER[type.number] = type;
            if (type.dataType != null) {
                BY_TYPE[type.dataType.ordinal()] = type;
            }
        }
    }

    private final int number;
    private final @Nullable DataType dataType;

    TfDataType(int number, @Nullable DataType dataType) {
        this.number = number;
        this.dataType = dataType;
    }

    /** The number of {@code tensorflow.DataType}. */
    public int number() {
        return number;
    }

    /** The name in JSON and text formats: {@code DT_FLOAT}. */
    public String protoName() {
        return "DT_" + name();
    }

    /** The corresponding type of the Open Inference Protocol; null when it has none. */
    public @Nullable DataType dataType() {
        return dataType;
    }

    /** The TensorFlow type that corresponds to {@code type}; every type has one. */
    public static TfDataType of(DataType type) {
        return BY_TYPE[type.ordinal()];
    }

    /** The type with this number; null for an unknown number. */
    public static @Nullable TfDataType ofNumber(long number) {
        return number > 0 && number < BY_NUMBER.length ? BY_NUMBER[(int) number] : null;
    }

    /** The type with a name such as {@code DT_FLOAT}; null for an unknown name. */
    public static @Nullable TfDataType ofName(String name) {
        for (TfDataType type : values()) {
            if (name.startsWith("DT_")
                    && name.regionMatches(
                            3,
                            type.name(),
                            0,
                            Math.max(name.length() - 3, type.name().length()))) {
                return type;
            }
        }
        return null;
    }

    /**
     * The corresponding type of the Open Inference Protocol for a number of {@code tensorflow.DataType}.
     *
     * @param tensor the tensor's name, for the error message
     * @throws ServingException INVALID_ARGUMENT for an unknown number or an unsupported type
     */
    public static DataType dataType(long number, String tensor) {
        TfDataType type = ofNumber(number);
        if (type != null && type.dataType != null) {
            return type.dataType;
        }
        String name = type != null
                ? type.protoName()
                : number == 0
                        ? "DT_INVALID (no dtype given)"
                        : number > 100 && ofNumber(number - 100) != null
                                ? "DT_" + BY_NUMBER[(int) number - 100] + "_REF"
                                : "number " + number;
        throw ServingException.invalidArgument("tensor '" + tensor + "' has dtype " + name
                + ", which is not served (expected: DT_BOOL, DT_STRING, an integer or a floating-point type of"
                + " 8 to 64 bits)");
    }
}
