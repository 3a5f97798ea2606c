// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tflite;

import static org.bytedeco.tensorflowlite.global.tensorflowlite.TfLiteTypeGetName;

import io.nereid.tensor.DataType;
import org.jspecify.annotations.Nullable;

/** Maps TensorFlow Lite's {@code TfLiteType} numbers to the types that clients can send. Immutable. */
final class LiteElementTypes {
    private static final @Nullable DataType[] BY_NUMBER = new DataType[20];

    static {
        BY_NUMBER[1] = DataType.FP32;
        BY_NUMBER[2] = DataType.INT32;
        BY_NUMBER[3] = DataType.UINT8;
        BY_NUMBER[4] = DataType.INT64;
        BY_NUMBER[5] = DataType.BYTES;
        BY_NUMBER[6] = DataType.BOOL;
        BY_NUMBER[7] = DataType.INT16;
        BY_NUMBER[9] = DataType.INT8;
        BY_NUMBER[10] = DataType.FP16;
        BY_NUMBER[11] = DataType.FP64;
        BY_NUMBER[13] = DataType.UINT64;
        BY_NUMBER[16] = DataType.UINT32;
        BY_NUMBER[17] = DataType.UINT16;
        BY_NUMBER[19] = DataType.BF16;
    }

    private LiteElementTypes() {}

    /** The data type for TensorFlow Lite's number, or null when the protocols do not have such a type. */
    static @Nullable DataType numbered(int number) {
        return number < 0 || number >= BY_NUMBER.length ? null : BY_NUMBER[number];
    }

    static String name(int number) {
        return TfLiteTypeGetName(number).getString();
    }
}
