// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.json.number;

import java.math.BigInteger;

/**
 * Prints floats of everyday size with the digits of the doubles they widen to, as {@link NumberPrinter#printDouble} does
 * and much faster: the 24 bits of a float leave room to scale it by a power of ten exactly in 64 bits, so that no bound
 * of an error and no 128-bit product is needed. No state.
 */
final class WidenedFloats {
    /** What {@link #print} returns, having printed nothing that counts, for a number it leaves to the general way. */
    static final int NOT_PRINTED = -1;

    /** Everyday floats are those with a fraction from 2^-28 up to below 2^23. */
    private static final int MIN_EXPONENT = -28;

    private static final int MAX_EXPONENT = 22;

    /** Scaled numbers are fixed-point with this many bits behind the point: an unsigned long holds them to the last bit. */
    private static final int POINT = 34;

    private static final long BEHIND_POINT = (1L << POINT) - 1;
    private static final long ALMOST_HALF = (1L << POINT - 1) - 1;
    private static final int TEN_TO_8 = 100_000_000;
    private static final long ZEROS = 0x3030303030303030L;

    /**
     * By exponent field of a float: the number k of decimal places that is always enough for its double, as 10^-k is at
     * most the distance of two doubles, and 10^(1-k) is more than that; 0 for the floats not printed here.
     */
    private static final byte[] PLACES = new byte[256];

    /** By exponent field: the last bit of the float times 10^(k-8), in fixed point. */
    private static final long[] LAST_BIT = new long[256];

    /** By exponent field: half the distance of two doubles times 10^k, in fixed point, rounded down. */
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

    /** Prints a float and returns the position after it, or prints rubbish and returns {@link #NOT_PRINTED}. */
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
        // the fraction as so many decimal places: those before the last eight, the last eight, and what is behind
        long scaled = fraction * LAST_BIT[e];
        int high = (int) (scaled >>> POINT);
        long scaledLow = (scaled & BEHIND_POINT) * TEN_TO_8;
        int low = (int) (scaledLow >>> POINT);
        long behind = scaledLow & BEHIND_POINT;
        // the one multiple of ten that may read back as the same double, else the nearest integer, ties to even
        int tens = (low + 5) / 10 * 10;
        long off = ((long) (low - tens) << POINT) + behind;
        int nearest = low + (int) (behind + ALMOST_HALF + (low & 1) >>> POINT);
        low = Math.abs(off) <= HALF_STEP[e] ? tens : nearest;
        // trying every float shows: low never rounds up to 10^8, nor are all of the last sixteen digits zeros
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
            // below a power of two, doubles are closer; the larger powers are printed to their last digit in any case
            return significand == 0x800000
                    ? NOT_PRINTED
                    : printExponent(b, p, first, highDigits, lowDigits, zeros, places);
        }
        if (whole < 10) {
            b[p++] = (byte) ('0' + whole);
        } else {
            p = NumberPrinter.printUnsigned(b, p, whole);
        }
        // the places before the last sixteen begin with zeros; of fewer than sixteen, the missing ones are taken off
        int more = Math.max(0, places - 16);
        int fewer = Math.max(0, 16 - places);
        LittleEndian.putLong(b, p, ZEROS);
        b[p + more] = (byte) ('0' + first);
        b[p] = '.';
        LittleEndian.putLong(b, p + 1 + more, (highDigits | ZEROS) >>> (fewer << 3));
        LittleEndian.putLong(b, p + places - 7, lowDigits | ZEROS);
        return p + 1 + places - zeros;
    }

    /** Prints a number below 1e-5, above 1e-9: its first digit may be missing and is then that of the next eight. */
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
