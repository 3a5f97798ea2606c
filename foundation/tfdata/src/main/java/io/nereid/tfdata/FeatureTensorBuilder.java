// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.tfdata;

import io.nereid.base.ServingException;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Tensor;
import java.nio.ByteBuffer;

/** Appends the numbers of features to a tensor. Confined to one thread. */
final class FeatureTensorBuilder {
    private final DataType type;
    private final ByteBuffer out;
    private int at;

    FeatureTensorBuilder(Tensor tensor) {
        this.type = tensor.dataType();
        this.out = tensor.buffer();
    }

    static ServingException wrongKind(Feature feature, int example, String name, DataType type) {
        return ServingException.invalidArgument("feature '" + name + "' of example " + example + " is a list of "
                + switch (feature.kind()) {
                    case BYTES -> "bytes";
                    case FLOAT -> "floats";
                    case INT64 -> "integers";
                    case NONE -> "nothing";
                }
                + ", which an input of " + type + " does not take");
    }

    /** Adds all values of a feature. */
    void add(Feature feature, int example, String name) {
        boolean fits = feature.kind() == Feature.Kind.INT64
                || feature.kind() == Feature.Kind.FLOAT && type.isFloatingPoint()
                || feature.size() == 0;
        if (!fits) {
            throw wrongKind(feature, example, name, type);
        }
        for (int i = 0; i < feature.size(); i++) {
            if (type.isFloatingPoint()) {
                real(feature, i);
            } else {
                integer(feature.longAt(i), example, name);
            }
            at += type.size();
        }
    }

    private void real(Feature feature, int i) {
        double value = feature.numberAt(i);
        switch (type) {
            case FP64 -> out.putDouble(at, value);
            case FP32 -> out.putFloat(at, (float) value);
            case BF16 -> out.putShort(at, bfloat16((float) value));
            case FP16 -> out.putShort(at, half((float) value));
            default -> throw new IllegalStateException(type + " holds no real numbers");
        }
    }

    private void integer(long value, int example, String name) {
        int bits = type.size() * 8;
        boolean fits = switch (type) {
            case BOOL -> value == 0 || value == 1;
            case INT64 -> true;
            case UINT64 -> value >= 0;
            case UINT8, UINT16, UINT32 -> value >>> bits == 0;
            default -> value << 64 - bits >> 64 - bits == value;
        };
        if (!fits) {
            throw ServingException.invalidArgument("value " + value + " of feature '" + name + "' of example " + example
                    + " does not fit an input of " + type);
        }
        switch (type.size()) {
            case 1 -> out.put(at, (byte) value);
            case 2 -> out.putShort(at, (short) value);
            case 4 -> out.putInt(at, (int) value);
            default -> out.putLong(at, value);
        }
    }

    private static short bfloat16(float value) {
        int bits = Float.floatToRawIntBits(value);
        if (Float.isNaN(value)) {
            return (short) (bits >>> 16 | 0x40);
        }
        return (short) (bits + 0x7FFF + (bits >>> 16 & 1) >>> 16);
    }

    /** To the nearest half, ties to even. */
    static short half(float value) {
        int bits = Float.floatToRawIntBits(value);
        int sign = bits >>> 16 & 0x8000;
        float magnitude = Math.abs(value);
        if (Float.isNaN(value)) {
            return (short) (sign | 0x7E00 | bits >>> 13 & 0x1FF);
        }
        if (magnitude >= 65520) {
            return (short) (sign | 0x7C00);
        }
        if (magnitude < 0x1p-14f) {
            // Subnormal: a multiple of 2^-24.
            return (short) (sign | (int) Math.rint(magnitude * 0x1p24));
        }
        int m = Float.floatToRawIntBits(magnitude);
        return (short) (sign | m + 0xFFF + (m >>> 13 & 1) - (112 << 23) >>> 13);
    }
}
