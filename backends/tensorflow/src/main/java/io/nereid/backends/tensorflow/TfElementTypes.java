// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tensorflow;

import io.nereid.tensor.DataType;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Maps TensorFlow's {@code DataType} numbers (types.proto) to the types that clients can send. Immutable. */
final class TfElementTypes {
    static final int STRING = 7;

    private static final Map<Integer, DataType> SERVED = Map.ofEntries(
            Map.entry(1, DataType.FP32),
            Map.entry(2, DataType.FP64),
            Map.entry(3, DataType.INT32),
            Map.entry(4, DataType.UINT8),
            Map.entry(5, DataType.INT16),
            Map.entry(6, DataType.INT8),
            Map.entry(STRING, DataType.BYTES),
            Map.entry(9, DataType.INT64),
            Map.entry(10, DataType.BOOL),
            Map.entry(14, DataType.BF16),
            Map.entry(17, DataType.UINT16),
            Map.entry(19, DataType.FP16),
            Map.entry(22, DataType.UINT32),
            Map.entry(23, DataType.UINT64));

    private static final Map<Integer, String> UNSUPPORTED = Map.ofEntries(
            Map.entry(0, "DT_INVALID"),
            Map.entry(8, "DT_COMPLEX64"),
            Map.entry(11, "DT_QINT8"),
            Map.entry(12, "DT_QUINT8"),
            Map.entry(13, "DT_QINT32"),
            Map.entry(15, "DT_QINT16"),
            Map.entry(16, "DT_QUINT16"),
            Map.entry(18, "DT_COMPLEX128"),
            Map.entry(20, "DT_RESOURCE"),
            Map.entry(21, "DT_VARIANT"),
            Map.entry(24, "DT_FLOAT8_E5M2"),
            Map.entry(25, "DT_FLOAT8_E4M3FN"),
            Map.entry(29, "DT_INT4"),
            Map.entry(30, "DT_UINT4"));

    /** A reference type's number is that of its base type plus 100. */
    private static final int REFERENCE = 100;

    private TfElementTypes() {}

    /** The data type for TensorFlow's number, or null when the protocols do not have such a type. */
    static @Nullable DataType served(int number) {
        return SERVED.get(number);
    }

    /** TensorFlow's number for a data type. */
    static int number(DataType type) {
        for (Map.Entry<Integer, DataType> entry : SERVED.entrySet()) {
            if (entry.getValue() == type) {
                return entry.getKey();
            }
        }
        throw new IllegalArgumentException(type.name());
    }

    /** TensorFlow's name for a type that is not served. */
    static String name(int number) {
        if (number > REFERENCE) {
            DataType inner = served(number - REFERENCE);
            return "a reference to " + (inner == null ? name(number - REFERENCE) : inner.name());
        }
        return UNSUPPORTED.getOrDefault(number, "type " + number);
    }
}
