// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.base;

/** Conversion of the 16-bit floating-point types FP16 and BF16. Stateless. */
public final class SmallFloats {
    public static final int FP16_FRACTION_BITS = 10;
    public static final int FP16_BIAS = 15;
    public static final int BF16_FRACTION_BITS = 7;
    public static final int BF16_BIAS = 127;

    private SmallFloats() {}

    /** Unsigned bits of the FP16 nearest to a double ≥ 0, ties to even; infinity when out of range. */
    public static int toFp16(double d) {
        return round(d, FP16_FRACTION_BITS, FP16_BIAS);
    }

    /** Unsigned bits of the BF16 nearest to a double ≥ 0, ties to even; infinity when out of range. */
    public static int toBf16(double d) {
        return round(d, BF16_FRACTION_BITS, BF16_BIAS);
    }

    /**
     * Whether a double ≥ 0 lies exactly between two neighbours of the type, in which case rounding it a second time
     * may be wrong.
     */
    public static boolean isTie(double d, int fractionBits, int bias) {
        int dropped = droppedBits(d, fractionBits, bias);
        if (dropped > 53) {
            return false;
        }
        long m = significand(d);
        return (m & ((1L << dropped) - 1)) == 1L << (dropped - 1);
    }

    public static float fp16ToFloat(short bits) {
        int exponent = bits >> FP16_FRACTION_BITS & 0x1F;
        int fraction = bits & 0x3FF;
        float magnitude;
        if (exponent == 0) {
            magnitude = fraction * 0x1p-24f;
        } else if (exponent == 0x1F) {
            magnitude = fraction == 0 ? Float.POSITIVE_INFINITY : Float.NaN;
        } else {
            magnitude = Float.intBitsToFloat((exponent + 112) << 23 | fraction << 13);
        }
        return bits < 0 ? -magnitude : magnitude;
    }

    /** The bits of the FP16 nearest to a number, ties to even; infinity when out of range. */
    public static short fp16(double number) {
        return (short) (toFp16(Math.abs(number)) | sign(number));
    }

    /** The bits of the BF16 nearest to a number, ties to even; infinity when out of range. */
    public static short bf16(double number) {
        return (short) (toBf16(Math.abs(number)) | sign(number));
    }

    private static int sign(double number) {
        return (int) (Double.doubleToRawLongBits(number) >>> 48) & 0x8000;
    }

    public static float bf16ToFloat(short bits) {
        return Float.intBitsToFloat(bits << 16);
    }

    private static int round(double d, int fractionBits, int bias) {
        int infinity = (2 * bias + 1) << fractionBits;
        if (Double.isNaN(d)) {
            return infinity | 1 << (fractionBits - 1);
        }
        int exponent = Math.getExponent(d);
        if (exponent > bias) {
            return infinity;
        }
        int dropped = droppedBits(d, fractionBits, bias);
        if (dropped > 54) {
            return 0;
        }
        long m = significand(d);
        long kept = m >>> dropped;
        long rest = m & ((1L << dropped) - 1);
        long half = 1L << (dropped - 1);
        if (rest > half || rest == half && (kept & 1) == 1) {
            kept++;
        }
        int base = Math.max(0, exponent + bias - 1) << fractionBits;
        return (int) Math.min(infinity, base + kept);
    }

    /** How many low bits of the 53-bit significand do not fit the type. */
    private static int droppedBits(double d, int fractionBits, int bias) {
        int exponent = Math.getExponent(d);
        return 52 - fractionBits + Math.max(0, 1 - bias - exponent);
    }

    private static long significand(double d) {
        long bits = Double.doubleToRawLongBits(d);
        long fraction = bits & 0xFFFFFFFFFFFFFL;
        return (bits >>> 52 & 0x7FF) == 0 ? fraction : fraction | 1L << 52;
    }
}
