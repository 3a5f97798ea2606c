// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.huggingface.weights;

import org.jspecify.annotations.Nullable;

/** Element types of weights, with their names in safetensors and their numbers in ONNX. */
public enum WeightType {
    F64(11, 8, true),
    F32(1, 4, true),
    F16(10, 2, true),
    BF16(16, 2, true),
    I64(7, 8, false),
    I32(6, 4, false),
    I16(5, 2, false),
    I8(3, 1, false),
    U8(2, 1, false),
    BOOL(9, 1, false),
    /** The types of quantised checkpoints, which this server does not compute with. */
    F8_E4M3(0, 1, false),
    F8_E5M2(0, 1, false),
    U16(4, 2, false),
    U32(12, 4, false),
    U64(13, 8, false);

    private final int onnx;
    private final int bytes;
    private final boolean real;

    WeightType(int onnx, int bytes, boolean real) {
        this.onnx = onnx;
        this.bytes = bytes;
        this.real = real;
    }

    /** The number in ONNX's {@code TensorProto.DataType}; 0 for types that are not used there. */
    public int onnx() {
        return onnx;
    }

    /** Bytes of an element. */
    public int bytes() {
        return bytes;
    }

    /** Whether its elements are floating-point numbers of 16 bits or more. */
    public boolean real() {
        return real;
    }

    static @Nullable WeightType of(String name) {
        for (WeightType t : values()) {
            if (t.name().equals(name)) {
                return t;
            }
        }
        return null;
    }
}
