// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.json.number;

import io.nereid.base.SmallFloats;
import java.nio.charset.StandardCharsets;

/**
 * Prints numbers into byte arrays in which the caller has reserved {@link #MAX_LENGTH} bytes; every method returns the
 * position after the number. Floating-point numbers are printed with the fewest digits that read back to the same
 * value and always with a point or an exponent: plain notation from 1e-5 to below 1e16, otherwise {@code 1.5e-7} or
 * {@code 1e20}. Confined to one thread.
 */
public final class NumberPrinter {
    /** The number of bytes that every method may use. */
    public static final int MAX_LENGTH = 48;

    /**
     * Safety margin of the fast path of {@link #printFloat} against the rounding error of one multiplication of
     * numbers below 2^28.
     */
    private static final double DOUBT = 1e-6;

    private static final byte[] NAN = "NaN".getBytes(StandardCharsets.US_ASCII);
    private static final byte[] INFINITY = "Infinity".getBytes(StandardCharsets.US_ASCII);
    private static final long ZEROS = 0x3030303030303030L;

    /**
     * By exponent field of a float: the power of ten that scales half the distance between two floats to [0.5, 5), and
     * that half distance.
     */
    private static final byte[] SCALE = new byte[256];

    private static final double[] HALF_STEP = new double[256];

    static {
        for (int e = 1; e < 255; e++) {
            double half = Math.scalb(1.0, e - 151);
            int k = (int) Math.ceil(Math.log10(0.5 / half));
            SCALE[e] = (byte) k;
            if (Math.abs(k) <= 22) {
                HALF_STEP[e] = k >= 0 ? half * PowersOfTen.exact(k) : half / PowersOfTen.exact(-k);
            }
        }
    }

    private final ShortestDecimal shortest = new ShortestDecimal();

    public static int printInt(byte[] b, int at, long v) {
        int p = at;
        if (v < 0) {
            b[p++] = '-';
        }
        // the negated smallest long overflows, but is right as an unsigned number
        return printUnsigned(b, p, v < 0 ? -v : v);
    }

    public static int printUnsigned(byte[] b, int at, long v) {
        if (v >= 0 && v < 100_000_000L) {
            return printUpTo8(b, at, (int) v);
        }
        long high = Long.divideUnsigned(v, 100_000_000L);
        int low = (int) (v - high * 100_000_000L);
        int p = printUnsigned(b, at, high);
        LittleEndian.putLong(b, p, eightDigits(low) | ZEROS);
        return p + 8;
    }

    private static int printUpTo8(byte[] b, int at, int v) {
        if (v < 10) {
            b[at] = (byte) ('0' + v);
            return at + 1;
        }
        long d = eightDigits(v);
        int zeros = Long.numberOfTrailingZeros(d) & ~7;
        LittleEndian.putLong(b, at, (d | ZEROS) >>> zeros);
        return at + 8 - (zeros >>> 3);
    }

    public int printDouble(byte[] b, int at, double d) {
        int p = at;
        long bits = Double.doubleToRawLongBits(d);
        long fraction = bits & 0xFFFFFFFFFFFFFL;
        int e = (int) (bits >>> 52) & 0x7FF;
        if (e == 0x7FF) {
            return printSpecial(b, p, fraction != 0, bits < 0);
        }
        if (bits < 0) {
            b[p++] = '-';
        }
        double magnitude = Math.abs(d);
        if (magnitude < 1e15 && (long) magnitude == magnitude) {
            return printWhole(b, p, (long) magnitude);
        }
        if (e == 0) {
            shortest.convert(fraction, -1074, false);
        } else {
            shortest.convert(fraction | 1L << 52, e - 1075, fraction == 0 && e > 1);
        }
        return printShortest(b, p);
    }

    /**
     * Prints the shortest decimal of a float. The fast path scales the float with one double multiplication so that
     * the rounding interval holds at most one multiple of ten; when the comparison is too close to the interval's
     * border ({@link #DOUBT}), it falls back to {@link ShortestDecimal}.
     */
    public int printFloat(byte[] b, int at, float f) {
        int p = at;
        int bits = Float.floatToRawIntBits(f);
        int e = bits >>> 23 & 0xFF;
        int fraction = bits & 0x7FFFFF;
        if (e == 0xFF) {
            return printSpecial(b, p, fraction != 0, bits < 0);
        }
        if (bits < 0) {
            b[p++] = '-';
        }
        double d = Math.abs(f);
        int whole = (int) d;
        if (whole == d && whole < 1 << 24) {
            return printWhole(b, p, whole);
        }
        int k = SCALE[e];
        double half = HALF_STEP[e];
        if (half != 0) {
            double y = k >= 0 ? d * PowersOfTen.exact(k) : d / PowersOfTen.exact(-k);
            if (fraction == 0) {
                half *= 0.5;
            }
            // at most one multiple of ten lies within the rounding interval; every integer near y does
            int tens = (int) (y * 0.1 + 0.5);
            double off = Math.abs(y - tens * 10.0);
            if (off < half - DOUBT) {
                return printScaled(b, p, tens * 10, k);
            }
            int unit = (int) (y + 0.5);
            if (off > half + DOUBT && Math.abs(y - unit) < 0.5 - DOUBT && fraction != 0) {
                return printScaled(b, p, unit, k);
            }
        }
        if (e == 0) {
            shortest.convert(fraction, -149, false);
        } else {
            shortest.convert(fraction | 1 << 23, e - 150, fraction == 0 && e > 1);
        }
        return printShortest(b, p);
    }

    /** Prints a float with the digits of the double to which it widens. */
    public int printWidened(byte[] b, int at, float f) {
        int p = WidenedFloats.print(b, at, f);
        return p == WidenedFloats.NOT_PRINTED ? printDouble(b, at, f) : p;
    }

    public int printFp16(byte[] b, int at, short v) {
        return printSmall(b, at, v, SmallFloats.fp16ToFloat(v), SmallFloats.FP16_FRACTION_BITS, SmallFloats.FP16_BIAS);
    }

    public int printBf16(byte[] b, int at, short v) {
        return printSmall(b, at, v, SmallFloats.bf16ToFloat(v), SmallFloats.BF16_FRACTION_BITS, SmallFloats.BF16_BIAS);
    }

    private int printSmall(byte[] b, int at, short v, float value, int fractionBits, int bias) {
        int p = at;
        if (!(Math.abs(value) <= Float.MAX_VALUE)) {
            return printSpecial(b, p, Float.isNaN(value), v < 0);
        }
        if (v < 0) {
            b[p++] = '-';
        }
        int e = (v & 0x7FFF) >>> fractionBits;
        int fraction = v & (1 << fractionBits) - 1;
        if (e == 0 && fraction == 0) {
            return printWhole(b, p, 0);
        }
        if (e == 0) {
            shortest.convert(fraction, 1 - bias - fractionBits, false);
        } else {
            shortest.convert(fraction | 1 << fractionBits, e - bias - fractionBits, fraction == 0 && e > 1);
        }
        return printShortest(b, p);
    }

    private static int printSpecial(byte[] b, int at, boolean nan, boolean minus) {
        int p = at;
        if (minus && !nan) {
            b[p++] = '-';
        }
        byte[] word = nan ? NAN : INFINITY;
        System.arraycopy(word, 0, b, p, word.length);
        return p + word.length;
    }

    private static int printWhole(byte[] b, int at, long v) {
        int p = printUnsigned(b, at, v);
        b[p] = '.';
        b[p + 1] = '0';
        return p + 2;
    }

    /** Prints digits·10^-k, where digits is below 2^31. */
    private static int printScaled(byte[] b, int at, int digits, int k) {
        if (k < 0 || k > 13) {
            return printDecimal(b, at, digits, -k);
        }
        int p = at;
        if (k <= 8) {
            int scale = (int) PowersOfTen.asLong(k);
            // a double quotient of integers below 2^53 never rounds up to the next integer, so the cast is exact;
            // numbers below one all have k = 8
            int whole = k == 8 ? digits / 100_000_000 : (int) ((double) digits / scale);
            p = printUnsigned(b, p, whole);
            b[p] = '.';
            long d = eightDigits((int) ((digits - whole * scale) * PowersOfTen.asLong(8 - k)));
            LittleEndian.putLong(b, p + 1, d | ZEROS);
            return p + 1 + Math.max(1, 8 - (Long.numberOfLeadingZeros(d) >>> 3));
        }
        if (digits < PowersOfTen.asLong(k - 5)) {
            return printDecimal(b, at, digits, -k);
        }
        long padded = digits * PowersOfTen.asLong(16 - k);
        long high = padded / 100_000_000L;
        long first = eightDigits((int) high);
        long second = eightDigits((int) (padded - high * 100_000_000L));
        b[p] = '0';
        b[p + 1] = '.';
        LittleEndian.putLong(b, p + 2, first | ZEROS);
        LittleEndian.putLong(b, p + 10, second | ZEROS);
        int zeros = Long.numberOfLeadingZeros(second) >>> 3;
        if (zeros == 8) {
            zeros += Long.numberOfLeadingZeros(first) >>> 3;
        }
        return p + 18 - zeros;
    }

    private int printShortest(byte[] b, int at) {
        return printDecimal(b, at, shortest.digits, shortest.exponent);
    }

    /** Prints digits·10^exponent; digits > 0, below 10^18. */
    private static int printDecimal(byte[] b, int at, long digits, int exponent) {
        long v = digits;
        int e = exponent;
        while (v % 10 == 0) {
            v /= 10;
            e++;
        }
        int length = decimalLength(v);
        int point = length + e;
        int p = at;
        if (point > 16 || point < -4) {
            return printExponent(b, p, v, length, point - 1);
        }
        if (point <= 0) {
            b[p++] = '0';
            b[p++] = '.';
            for (int i = point; i < 0; i++) {
                b[p++] = '0';
            }
            return printUnsigned(b, p, v);
        }
        if (e >= 0) {
            return printWhole(b, p, v * PowersOfTen.asLong(e));
        }
        p = printUnsigned(b, p, v) + 1;
        int dot = at + point;
        System.arraycopy(b, dot, b, dot + 1, p - 1 - dot);
        b[dot] = '.';
        return p;
    }

    private static int printExponent(byte[] b, int at, long v, int length, int exponent) {
        int p = printUnsigned(b, at, v);
        if (length > 1) {
            System.arraycopy(b, at + 1, b, at + 2, length - 1);
            b[at + 1] = '.';
            p++;
        }
        b[p++] = 'e';
        return printInt(b, p, exponent);
    }

    private static int decimalLength(long v) {
        int n = 1;
        while (n < 19 && v >= PowersOfTen.asLong(n - 1) * 10) {
            n++;
        }
        return n;
    }

    /** The eight decimal digits of {@code v < 10^8}, one a byte, the first digit in the lowest byte. */
    static long eightDigits(int v) {
        int high = v / 10_000;
        long quads = high | (long) (v - high * 10_000) << 32;
        long hundreds = ((quads * 10486) >>> 20) & 0x0000007F0000007FL;
        long pairs = hundreds | (quads - hundreds * 100) << 16;
        long tens = ((pairs * 103) >>> 10) & 0x000F000F000F000FL;
        return tens | (pairs - tens * 10) << 8;
    }
}
