// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.json.number;

/**
 * Finds the shortest decimal that rounds to a given binary number, and among those the closest one: Giulietti's
 * Schubfach algorithm, for any significand below 2^53 and therefore for every type from BF16 to FP64. Holds its last
 * result; confined to one thread.
 */
final class ShortestDecimal {
    /** The last result is digits·10^exponent; digits may end in zeros. */
    long digits;

    int exponent;

    /**
     * Converts c·2^q. Scales the number and the borders of its rounding interval by a power of ten to integers with
     * two extra bits, then takes the multiple of ten inside the interval if there is exactly one, else the nearest
     * integer inside it. An interval includes its borders only for even c, because readers round ties to even.
     *
     * @param lowerCloser whether the next smaller number of the type is only half as far away as the next larger one
     *     (c is a power of two)
     */
    void convert(long c, int q, boolean lowerCloser) {
        boolean odd = (c & 1) != 0;
        long middle = c << 2;
        long right = middle + 2;
        long left = lowerCloser ? middle - 1 : middle - 2;
        // floor(log10(2^q)), or floor(log10(3/4 * 2^q)) for the narrower interval
        int k = (q * 1262611 - (lowerCloser ? 524031 : 0)) >> 22;
        int h = q + ((-k * 1741647) >> 19) + 1;
        long high = PowersOfTen.high(-k);
        long low = PowersOfTen.lowRoundedUp(-k);
        long vLeft = scaled(high, low, left << h);
        long v = scaled(high, low, middle << h);
        long vRight = scaled(high, low, right << h);
        long lower = odd ? vLeft + 1 : vLeft;
        long upper = odd ? vRight - 1 : vRight;
        long s = v >>> 2;
        if (s >= 10) {
            long tens = s / 10;
            long below = tens * 40;
            boolean belowFits = lower <= below;
            boolean aboveFits = below + 40 <= upper;
            if (belowFits != aboveFits) {
                digits = belowFits ? tens : tens + 1;
                exponent = k + 1;
                return;
            }
        }
        boolean downFits = lower <= s << 2;
        boolean upFits = (s << 2) + 4 <= upper;
        boolean up;
        if (downFits != upFits) {
            up = upFits;
        } else {
            long middleOfTwo = (s << 2) + 2;
            up = v > middleOfTwo || v == middleOfTwo && (s & 1) != 0;
        }
        digits = up ? s + 1 : s;
        exponent = k;
    }

    /**
     * The upper 64 bits of the product with a 128-bit factor; the lowest bit is set when any bit below was set (a
     * sticky bit), so that comparisons with the interval's borders stay exact.
     */
    private static long scaled(long high, long low, long c) {
        long x = PowersOfTen.multiplyHighUnsigned(low, c);
        long y0 = high * c;
        long y1 = PowersOfTen.multiplyHighUnsigned(high, c);
        long sum = y0 + x;
        if (Long.compareUnsigned(sum, y0) < 0) {
            y1++;
        }
        return Long.compareUnsigned(sum, 1) > 0 ? y1 | 1 : y1;
    }
}
