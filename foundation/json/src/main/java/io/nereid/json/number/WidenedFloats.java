// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.json.number;

import java.math.BigInteger;

/**
 * Fast path for printing a float of common magnitude with the digits of the double to which it widens, as
 * {@link NumberPrinter#printDouble} does. The 24 bits of a float leave enough bits to scale it exactly by a power of
 * ten in 64-bit arithmetic, so neither an error bound nor a 128-bit product is needed. Stateless.
 */
final class WidenedFloats {
    /**
     * Result of {@link #print} for a number that the general algorithm must print. The array may then contain garbage.
     */
    static final int NOT_PRINTED = -1;

    /** Common floats are those with a fractional part, from 2^-28 to below 2^23. */
    private static final int MIN_EXPONENT = -28;

    private static final int MAX_EXPONENT = 22;

    /** Scaled numbers are fixed-point numbers with this many fraction bits: an unsigned long holds them exactly. */
    private static final int POINT = 34;

    private static final long BEHIND_POINT = (1L << POINT) - 1;
    private static final long ALMOST_HALF = (1L << POINT - 1) - 1;
    private static final int TEN_TO_8 = 100_000_000;
    private static final long ZEROS = 0x3030303030303030L;

    /**
     * By exponent field of a float: the number k of decimal places that always suffices for its double, because 10^-k
     * is at most the distance between two doubles while 10^(1-k) is larger; 0 for floats that are not printed here.
     */
    private static final byte[] PLACES = new byte[256];

    /** By exponent field: the value of the float's lowest bit times 10^(k-8), in fixed point. */
    private static final long[] LAST_BIT = new long[256];

    /** By exponent field: half the distance between two doubles times 10^k, in fixed point, rounded down. */
    private static final long[] HALF_STEP = new long[256];

    static {
        for (int exponent = MIN_EXPONENT; exponent <= MAX_EXPONENT; exponent++) {
            int k = 0;
            BigInteger power = BigInteger.ONE;
            while (power.bitLength() <= 52 - exponent) {
                power = power.multiply(BigInteger.TEN);
                k++;
            }
            int e = exponent + 127;
            PLACES[e] = (byte) k;
            LAST_BIT[e] = power.shiftLeft(POINT)
                    .divide(BigInteger.valueOf(TEN_TO_8))
                    .shiftRight(23 - exponent)
                    .longValueExact();
            HALF_STEP[e] = power.shiftLeft(POINT).shiftRight(53 - exponent).longValueExact();
        }
    }

    private WidenedFloats() {}

    /** Prints a float and returns the position after it, or returns {@link #NOT_PRINTED}. */
    static int print(byte[] b, int at, float f) {
        int bits = Float.floatToRawIntBits(f);
        int e = bits >>> 23 & 0xFF;
        int places = PLACES[e];
        int pointOfFloat = 150 - e;
        long significand = bits & 0x7FFFFF | 0x800000;
        long whole = significand >>> pointOfFloat;
        long fraction = significand & ~(-1L << pointOfFloat);
        if (places == 0 || fraction == 0) {
            return NOT_PRINTED;
        }
        // the fraction in decimal places: those before the last eight, the last eight, and the remainder
        long scaled = fraction * LAST_BIT[e];
        int high = (int) (scaled >>> POINT);
        long scaledLow = (scaled & BEHIND_POINT) * TEN_TO_8;
        int low = (int) (scaledLow >>> POINT);
        long behind = scaledLow & BEHIND_POINT;
        // the only multiple of ten that may read back as the same double, else the nearest integer, ties to even
        int tens = (low + 5) / 10 * 10;
        long off = ((long) (low - tens) << POINT) + behind;
        int nearest = low + (int) (behind + ALMOST_HALF + (low & 1) >>> POINT);
        low = Math.abs(off) <= HALF_STEP[e] ? tens : nearest;
        // verified by trying every float: low never rounds up to 10^8, and the last sixteen digits are never all zeros
        int first = high / TEN_TO_8;
        long highDigits = NumberPrinter.eightDigits(high - first * TEN_TO_8);
        long lowDigits = NumberPrinter.eightDigits(low);
        int zeros = Long.numberOfLeadingZeros(lowDigits) >>> 3;
        if (zeros == 8) {
            zeros += Long.numberOfLeadingZeros(highDigits) >>> 3;
        }
        b[at] = '-';
        int p = at + (bits >>> 31);
        if (places > 20 && (places > 21 || first == 0)) {
            // below a power of two the doubles are closer together, so the interval is narrower: use the general
            // algorithm. Larger powers of two need no care, because they are printed to their last digit anyway
            return significand == 0x800000
                    ? NOT_PRINTED
                    : printExponent(b, p, first, highDigits, lowDigits, zeros, places);
        }
        if (whole < 10) {
            b[p++] = (byte) ('0' + whole);
        } else {
            p = NumberPrinter.printUnsigned(b, p, whole);
        }
        // places before the last sixteen are zeros and first; with fewer than sixteen places, shift the rest out
        int more = Math.max(0, places - 16);
        int fewer = Math.max(0, 16 - places);
        LittleEndian.putLong(b, p, ZEROS);
        b[p + more] = (byte) ('0' + first);
        b[p] = '.';
        LittleEndian.putLong(b, p + 1 + more, (highDigits | ZEROS) >>> (fewer << 3));
        LittleEndian.putLong(b, p + places - 7, lowDigits | ZEROS);
        return p + 1 + places - zeros;
    }

    /**
     * Prints a number in (1e-9, 1e-5) in exponent notation. When its first digit is zero, the first of the next eight
     * digits takes its place.
     */
    private static int printExponent(
            byte[] b, int at, int first, long highDigits, long lowDigits, int zeros, int places) {
        int missing = first == 0 ? 1 : 0;
        int p = at + 2 - missing;
        b[at] = (byte) ('0' + first);
        LittleEndian.putLong(b, p, highDigits | ZEROS);
        LittleEndian.putLong(b, p + 8, lowDigits | ZEROS);
        if (missing == 1) {
            b[at] = b[p];
        }
        b[at + 1] = '.';
        p += 16 - zeros;
        b[p] = 'e';
        b[p + 1] = '-';
        b[p + 2] = (byte) ('0' + places - 16 + missing);
        return p + 3;
    }
}
