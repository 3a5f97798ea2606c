// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.samples.model;

/** Conversions of FP16 and BF16 from and to FP32. Has no state. */
final class HalfFloats {
    private HalfFloats() {}

    static float fromHalf(short bits) {
        int sign = (bits & 0x8000) << 16;
        int exponent = (bits >> 10) & 0x1f;
        int mantissa = bits & 0x3ff;
        if (exponent == 0) {
            float value = mantissa * 0x1p-24f;
            return sign == 0 ? value : -value;
        }
        int wide = exponent == 0x1f ? 0xff : exponent + 112;
        return Float.intBitsToFloat(sign | wide << 23 | mantissa << 13);
    }

    /** Rounds to nearest, ties to even; beyond 65504 to infinity. */
    static short toHalf(float value) {
        int bits = Float.floatToRawIntBits(value);
        int sign = (bits >>> 16) & 0x8000;
        int abs = bits & 0x7fffffff;
        if (abs > 0x7f800000) {
            return (short) (sign | 0x7e00);
        }
        if (abs >= 0x477ff000) {
            return (short) (sign | 0x7c00);
        }
        if (abs < 0x38800000) {
            // Below the smallest normal number: whole multiples of 2^-24, rounded by the addition.
            int rounded = Float.floatToRawIntBits(Float.intBitsToFloat(abs) + 0.5f) - Float.floatToRawIntBits(0.5f);
            return (short) (sign | rounded);
        }
        int even = (abs >>> 13) & 1;
        return (short) (sign | (abs - (112 << 23) + 0xfff + even) >>> 13);
    }

    static float fromBrain(short bits) {
        return Float.intBitsToFloat(bits << 16);
    }

    /** Rounds to nearest, ties to even. */
    static short toBrain(float value) {
        int bits = Float.floatToRawIntBits(value);
        if ((bits & 0x7fffffff) > 0x7f800000) {
            return (short) (bits >>> 16 | 0x40);
        }
        return (short) ((bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16);
    }
}
