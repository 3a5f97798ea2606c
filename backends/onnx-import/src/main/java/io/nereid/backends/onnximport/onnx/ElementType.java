// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnximport.onnx;

import io.nereid.tensor.DataType;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/** Element types, with their numbers in Caffe2, PaddlePaddle and ONNX. */
public enum ElementType {
    FLOAT(1, 1, 4, DataType.FP32),
    INT32(2, 6, 4, DataType.INT32),
    STRING(4, 8, 0, DataType.BYTES),
    BOOL(5, 9, 1, DataType.BOOL),
    UINT8(6, 2, 1, DataType.UINT8),
    INT8(7, 3, 1, DataType.INT8),
    UINT16(8, 4, 2, DataType.UINT16),
    INT16(9, 5, 2, DataType.INT16),
    INT64(10, 7, 8, DataType.INT64),
    FLOAT16(12, 10, 2, DataType.FP16),
    DOUBLE(13, 11, 8, DataType.FP64);

    private static final int CAFFE2_BYTE = 3;

    private final int caffe2;
    private final int onnx;
    private final int bytes;
    private final DataType dataType;

    ElementType(int caffe2, int onnx, int bytes, DataType dataType) {
        this.caffe2 = caffe2;
        this.onnx = onnx;
        this.bytes = bytes;
        this.dataType = dataType;
    }

    public int onnx() {
        return onnx;
    }

    /** Bytes of an element; 0 for strings. */
    public int bytes() {
        return bytes;
    }

    public static @Nullable ElementType of(DataType type) {
        for (ElementType t : values()) {
            if (t.dataType == type) {
                return t;
            }
        }
        return null;
    }

    public static @Nullable ElementType ofCaffe2(long number) {
        for (ElementType t : values()) {
            if (t.caffe2 == number) {
                return t;
            }
        }
        return number == CAFFE2_BYTE ? UINT8 : null;
    }

    /** The type for PaddlePaddle's number; null for numbers of other things, and for types that ONNX does not have. */
    public static @Nullable ElementType ofPaddle(long number) {
        return switch ((int) number) {
            case 0 -> BOOL;
            case 1 -> INT16;
            case 2 -> INT32;
            case 3 -> INT64;
            case 4 -> FLOAT16;
            case 5 -> FLOAT;
            case 6 -> DOUBLE;
            case 20 -> UINT8;
            case 21 -> INT8;
            default -> null;
        };
    }

    public static @Nullable ElementType ofName(String name) {
        String upper = name.toUpperCase(Locale.ROOT);
        for (ElementType t : values()) {
            if (t.name().equals(upper)) {
                return t;
            }
        }
        return upper.equals("BYTE") ? UINT8 : null;
    }
}
