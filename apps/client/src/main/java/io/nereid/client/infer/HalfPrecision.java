// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.client.infer;

/** FP16 and BF16 to and from FP32, rounding to the nearest, ties to even. Stateless. */
final class HalfPrecision {
    private HalfPrecision() {}

    static float fromHalf(short bits) {
        int sign = (bits & 0x8000) << 16;
        int exponent = bits >>> 10 & 0x1F;
        int fraction = bits & 0x3FF;
        if (exponent == 0x1F) {
            return Float.intBitsToFloat(sign | 0x7F80_0000 | fraction << 13);
        }
        if (exponent != 0) {
            return Float.intBitsToFloat(sign | exponent + 112 << 23 | fraction << 13);
        }
        float value = fraction * 0x1p-24f;
        return sign == 0 ? value : -value;
    }

    static short toHalf(float value) {
        int bits = Float.floatToIntBits(value);
        int sign = bits >>> 16 & 0x8000;
        float size = Math.abs(value);
        if (Float.isNaN(value)) {
            return (short) (sign | 0x7E00);
        }
        // 65520 is halfway between the largest half and the next one, which does not exist
        if (size >= 65520f) {
            return (short) (sign | 0x7C00);
        }
        if (size < 0x1p-14f) {
            // the product is exact, and rint rounds ties to even, as is asked for
            return (short) (sign | (int) Math.rint(size * 0x1p24f));
        }
        int rounded = (bits & 0x7FFF_FFFF) + 0xFFF + (bits >>> 13 & 1);
        return (short) (sign | (rounded >>> 13) - (112 << 10));
    }

    static float fromBrain(short bits) {
        return Float.intBitsToFloat(bits << 16);
    }

    static short toBrain(float value) {
        int bits = Float.floatToRawIntBits(value);
        if (Float.isNaN(value)) {
            return (short) (bits >>> 16 | 0x40);
        }
        return (short) (bits + 0x7FFF + (bits >>> 16 & 1) >>> 16);
    }
}
