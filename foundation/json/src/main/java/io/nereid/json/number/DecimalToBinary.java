// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.json.number;

/**
 * Correctly rounded conversion of w·10^q to binary floating point: one exact division where that suffices (Clinger's
 * fast path), else the Eisel-Lemire algorithm (a product of 64 x 128 bits). Stateless.
 */
public final class DecimalToBinary {
    private static final long MAX_EXACT = 1L << 53;
    private static final long INFINITE_BITS = 0x7FF0000000000000L;

    private DecimalToBinary() {}

    /** Bits of the float nearest to w·10^q (w unsigned); infinity when out of range. */
    public static int floatBits(long w, int q) {
        if (w >= 0 && w <= MAX_EXACT && q <= 0 && q >= -22) {
            double d = w / PowersOfTen.exact(-q);
            // Rounding twice (to double, then to float) is wrong only when the double is exactly between two floats.
            // Subnormal floats need no care: no number here is below 2^-126.
            if ((Double.doubleToRawLongBits(d) & 0x1FFFFFFFL) != 0x10000000L) {
                return Float.floatToRawIntBits((float) d);
            }
        }
        if (w == 0 || q < -65) {
            return 0;
        }
        if (q > 38) {
            return 0x7F800000;
        }
        return (int) eiselLemire(w, q, 23, 127, 0xFF, -17, 10);
    }

    /** Bits of the double nearest to w·10^q (w unsigned); infinity when out of range. */
    public static long doubleBits(long w, int q) {
        if (w >= 0 && w <= MAX_EXACT && q <= 22 && q >= -22) {
            double d = q < 0 ? w / PowersOfTen.exact(-q) : w * PowersOfTen.exact(q);
            return Double.doubleToRawLongBits(d);
        }
        if (w == 0 || q < -342) {
            return 0;
        }
        if (q > 308) {
            return INFINITE_BITS;
        }
        return eiselLemire(w, q, 52, 1023, 0x7FF, -4, 23);
    }

    /**
     * The Eisel-Lemire algorithm (Lemire, "Number Parsing at a Gigabyte per Second", 2021): multiplies the normalised
     * significand by a 128-bit approximation of 10^q and rounds the upper bits to even.
     *
     * @param minTie smallest q for which w·10^q can lie exactly between two values of the type
     * @param maxTie largest such q
     */
    private static long eiselLemire(
            long w, int q, int fractionBits, int bias, int infiniteExponent, int minTie, int maxTie) {
        int zeros = Long.numberOfLeadingZeros(w);
        long normal = w << zeros;
        long factor = PowersOfTen.high(q);
        long high = PowersOfTen.multiplyHighUnsigned(normal, factor);
        long low = normal * factor;
        long mask = -1L >>> (fractionBits + 3);
        // the bits below the result are all ones: the carry of the lower half may change the result, so compute it too
        if ((high & mask) == mask) {
            long second = PowersOfTen.multiplyHighUnsigned(normal, PowersOfTen.low(q));
            low += second;
            if (Long.compareUnsigned(low, second) < 0) {
                high++;
            }
        }
        int upper = (int) (high >>> 63);
        int shift = upper + 64 - fractionBits - 3;
        long m = high >>> shift;
        // 217706 / 2^16 approximates log2(10) closely enough for every q in range
        // 217706 / 2^16 approximates log2(10) closely enough for every q in range
        // 217706 / 2^16 approximates log2(10) closely enough for every q in range
        int exponent = ((217706 * q) >> 16) + 63 + upper - zeros + bias;
        if (exponent <= 0) {
            // subnormal result: the significand loses bits before it is rounded
            // subnormal result: the significand loses bits before it is rounded
            // subnormal result: the significand loses bits before it is rounded
            if (exponent <= -63) {
                return 0;
            }
            m >>>= 1 - exponent;
            m += m & 1;
            return m >>> 1;
        }
        // exactly between two values: clear the lowest bit, so that the increment below rounds to even
        // exactly between two values: clear the lowest bit, so that the increment below rounds to even
        // exactly between two values: clear the lowest bit, so that the increment below rounds to even
        if (low >= 0 && low <= 1 && q >= minTie && q <= maxTie && (m & 3) == 1 && (m << shift) == high) {
            m &= ~1L;
        }
        m += m & 1;
        m >>>= 1;
        // rounding up may carry into the next power of two
        // rounding up may carry into the next power of two
        // rounding up may carry into the next power of two
        if (m >= 2L << fractionBits) {
            m = 1L << fractionBits;
            exponent++;
        }
        if (exponent >= infiniteExponent) {
            return (long) infiniteExponent << fractionBits;
        }
        return (long) exponent << fractionBits | m & ~(1L << fractionBits);
    }
}
