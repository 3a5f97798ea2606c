// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.json.number;

import io.nereid.base.SmallFloats;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;

/**
 * Scans one number token: {@link #scanFast} handles the usual forms, {@link #scan} every form. The number is then
 * ±{@link #digits}·10^{@link #exponent}. A read may go up to eight bytes past the last digit, which is why a document
 * needs slack bytes behind it. Confined to one reader.
 */
public final class NumberScanner {
    /** Result of {@link #scanFast} when the caller must use {@link #scan}. */
    public static final int SLOW = -1;

    /**
     * More significant digits than the exact decimal of any midpoint between two doubles has; of further digits it
     * only matters whether one is not zero.
     */
    private static final int MAX_DIGITS = 800;

    private static final int MAX_EXPONENT = 100_000;

    /** The first 19 significant digits, unsigned. */
    public long digits;

    public int exponent;
    public boolean negative;
    /** Whether {@link #digits} omits non-zero digits after the first 19. */
    boolean truncated;
    /** Whether the token has neither fraction nor exponent. */
    public boolean integral;
    /** Whether the token is NaN, Infinity or -Infinity; then {@link #special} is the value without its sign. */
    public boolean isSpecial;

    double special;
    /** The position of the byte that makes the token invalid, after {@link #scan} has returned {@link #SLOW}. */
    public int errorAt;
    /** What was expected at {@link #errorAt}. */
    public String expected = "";

    private int start;
    private byte[] buffer = {};
    private long integer;

    /**
     * Scans a number of the usual form: up to 19 digits and an exponent of up to two digits. Processes eight digits at
     * a time (SWAR). Sets only digits, exponent and sign. Returns the position after the number, or {@link #SLOW} when
     * the form is unusual or invalid.
     */
    public int scanFast(byte[] b, int from) {
        int p = from;
        int c = b[p];
        boolean minus = c == '-';
        if (minus) {
            c = b[++p];
        }
        int first = c - '0';
        if (first < 0 || first > 9) {
            return SLOW;
        }
        negative = minus;
        long w = first;
        p++;
        int count = first == 0 ? 0 : 1;
        long v = LittleEndian.getLong(b, p) ^ 0x3030303030303030L;
        int k = leadingDigits(v);
        if (k > 0) {
            if (first == 0) {
                return SLOW;
            }
            if (k == 8) {
                w = w * 100_000_000L + eightDigits(v);
                p += 8;
                v = LittleEndian.getLong(b, p) ^ 0x3030303030303030L;
                k = leadingDigits(v);
                count = 9;
                if (k == 8) {
                    return SLOW;
                }
            }
            if (k > 0) {
                w = w * PowersOfTen.asLong(k) + eightDigits(v << (64 - (k << 3)));
                p += k;
                count += k;
            }
        }
        int q = 0;
        c = b[p];
        if (c == '.') {
            p++;
            v = LittleEndian.getLong(b, p) ^ 0x3030303030303030L;
            k = leadingDigits(v);
            if (k == 0) {
                return SLOW;
            }
            if (k == 8) {
                w = w * 100_000_000L + eightDigits(v);
                p += 8;
                v = LittleEndian.getLong(b, p) ^ 0x3030303030303030L;
                k = leadingDigits(v);
                q = -8;
                if (k == 8) {
                    w = w * 100_000_000L + eightDigits(v);
                    p += 8;
                    v = LittleEndian.getLong(b, p) ^ 0x3030303030303030L;
                    k = leadingDigits(v);
                    q = -16;
                }
            }
            if (count - q + k > 19) {
                return SLOW;
            }
            if (k > 0) {
                w = w * PowersOfTen.asLong(k) + eightDigits(v << (64 - (k << 3)));
                p += k;
                q -= k;
            }
            c = b[p];
        }
        if ((c | 0x20) == 'e') {
            c = b[++p];
            boolean down = c == '-';
            if (down || c == '+') {
                c = b[++p];
            }
            int e = c - '0';
            if (e < 0 || e > 9) {
                return SLOW;
            }
            int next = b[++p] - '0';
            if (next >= 0 && next <= 9) {
                e = e * 10 + next;
                next = b[++p] - '0';
                if (next >= 0 && next <= 9) {
                    return SLOW;
                }
            }
            q += down ? -e : e;
        }
        digits = w;
        exponent = q;
        return p;
    }

    /** Scans a number of any form. Returns the position after it, or {@link #SLOW} with {@link #errorAt} set. */
    public int scan(byte[] b, int from) {
        buffer = b;
        start = from;
        digits = 0;
        exponent = 0;
        truncated = false;
        integral = true;
        isSpecial = false;
        int p = from;
        negative = b[p] == '-';
        if (negative) {
            p++;
        }
        if (!isDigit(b[p])) {
            return scanSpecial(b, p);
        }
        long w = 0;
        int count = 0;
        long q = 0;
        if (b[p] == '0') {
            p++;
            if (isDigit(b[p])) {
                return fail(p, "no digit after a leading zero");
            }
        }
        for (; isDigit(b[p]); p++) {
            if (count < 19) {
                w = w * 10 + (b[p] - '0');
                count++;
            } else {
                q++;
                truncated |= b[p] != '0';
            }
        }
        if (b[p] == '.') {
            integral = false;
            p++;
            if (!isDigit(b[p])) {
                return fail(p, "a digit after the decimal point");
            }
            for (; isDigit(b[p]); p++) {
                if (count < 19) {
                    w = w * 10 + (b[p] - '0');
                    count += w == 0 ? 0 : 1;
                    q--;
                } else {
                    truncated |= b[p] != '0';
                }
            }
        }
        if ((b[p] | 0x20) == 'e') {
            integral = false;
            p++;
            boolean down = b[p] == '-';
            if (down || b[p] == '+') {
                p++;
            }
            if (!isDigit(b[p])) {
                return fail(p, "a digit of the exponent");
            }
            long e = 0;
            for (; isDigit(b[p]); p++) {
                e = Math.min(e * 10 + (b[p] - '0'), 1L << 40);
            }
            q += down ? -e : e;
        }
        digits = w;
        exponent = (int) Math.max(-MAX_EXPONENT, Math.min(MAX_EXPONENT, q));
        return p;
    }

    private int scanSpecial(byte[] b, int p) {
        integral = false;
        isSpecial = true;
        if (matches(b, p, "Infinity")) {
            special = Double.POSITIVE_INFINITY;
            return p + 8;
        }
        if (!negative && matches(b, p, "NaN")) {
            special = Double.NaN;
            return p + 3;
        }
        return fail(p, negative ? "a digit or Infinity after '-'" : "a number");
    }

    private int fail(int at, String wanted) {
        errorAt = at;
        expected = wanted;
        return SLOW;
    }

    /** The bits of the float nearest to the scanned number; infinity when a finite number is out of range. */
    public int floatBits() {
        int sign = negative ? 0x80000000 : 0;
        if (isSpecial) {
            return sign | Float.floatToIntBits((float) special);
        }
        // with digits cut off, the number lies between digits and digits + 1; both round alike except next to a tie
        // with digits cut off, the number lies between digits and digits + 1; both round alike except next to a tie
        // with digits cut off, the number lies between digits and digits + 1; both round alike except next to a tie
        int bits = DecimalToBinary.floatBits(digits, exponent);
        if (truncated && bits != DecimalToBinary.floatBits(digits + 1, exponent)) {
            bits = Float.floatToRawIntBits(Float.parseFloat(allDigits().toString()));
        }
        return sign | bits;
    }

    /** The double nearest to the scanned number; infinite when a finite number is out of range. */
    public double doubleValue() {
        double magnitude = magnitude();
        return negative ? -magnitude : magnitude;
    }

    /** Bits of the nearest FP16; infinity when a finite number is out of range. */
    public int fp16Bits() {
        return smallFloatBits(SmallFloats.FP16_FRACTION_BITS, SmallFloats.FP16_BIAS);
    }

    /** Bits of the nearest BF16; infinity when a finite number is out of range. */
    public int bf16Bits() {
        return smallFloatBits(SmallFloats.BF16_FRACTION_BITS, SmallFloats.BF16_BIAS);
    }

    private double magnitude() {
        if (isSpecial) {
            return special;
        }
        long bits = DecimalToBinary.doubleBits(digits, exponent);
        if (truncated && bits != DecimalToBinary.doubleBits(digits + 1, exponent)) {
            return Double.parseDouble(allDigits().toString());
        }
        return Double.longBitsToDouble(bits);
    }

    private int smallFloatBits(int fractionBits, int bias) {
        int sign = negative ? 0x8000 : 0;
        double d = magnitude();
        if (SmallFloats.isTie(d, fractionBits, bias) && (truncated || exponent != 0 || digits >>> 53 != 0)) {
            // The double may be a midpoint of the small type although the decimal is only near it; rounding twice would
            // then be wrong. Move the double to the decimal's side of the midpoint first.
            int side = allDigits().toDecimal().compareTo(new BigDecimal(d));
            d = side < 0 ? Math.nextDown(d) : side > 0 ? Math.nextUp(d) : d;
        }
        return sign | (fractionBits == SmallFloats.FP16_FRACTION_BITS ? SmallFloats.toFp16(d) : SmallFloats.toBf16(d));
    }

    /**
     * Converts the scanned number to an integer. Returns true when it is a whole number whose magnitude fits 64
     * unsigned bits; {@link #integerMagnitude()} then returns it. Otherwise {@link #isWhole()} distinguishes the two
     * reasons.
     */
    public boolean toInteger() {
        if (isSpecial) {
            return false;
        }
        if (exponent == 0 && !truncated) {
            integer = digits;
            return true;
        }
        Digits all = allDigits();
        if (all.scale < 0 || all.text.length() + all.scale > 20) {
            return all.text.length() == 0 && zero();
        }
        long v = 0;
        int n = all.text.length();
        for (int i = 0; i < n + all.scale; i++) {
            int d = i < n ? all.text.charAt(i) - '0' : 0;
            if (Long.compareUnsigned(v, 1844674407370955161L) > 0 || v == 1844674407370955161L && d > 5) {
                return false;
            }
            v = v * 10 + d;
        }
        integer = v;
        return true;
    }

    private boolean zero() {
        integer = 0;
        return true;
    }

    public long integerMagnitude() {
        return integer;
    }

    /** Whether the scanned number is finite and has no fractional part. */
    public boolean isWhole() {
        return !isSpecial && (digits == 0 || allDigits().scale >= 0);
    }

    /**
     * All significant digits of the token, without leading and trailing zeros: text·10^scale. Digits after
     * {@link #MAX_DIGITS} are replaced by a single 1 when one of them is not zero, which keeps the comparison with any
     * midpoint right.
     */
    private Digits allDigits() {
        StringBuilder text = new StringBuilder();
        long scale = 0;
        boolean fraction = false;
        boolean rest = false;
        int p = negative ? start + 1 : start;
        for (; isDigit(buffer[p]) || buffer[p] == '.'; p++) {
            int c = buffer[p];
            if (c == '.') {
                fraction = true;
            } else if (text.length() == MAX_DIGITS) {
                rest |= c != '0';
                scale += fraction ? 0 : 1;
            } else {
                if (c != '0' || text.length() > 0) {
                    text.append((char) c);
                }
                scale -= fraction ? 1 : 0;
            }
        }
        if ((buffer[p] | 0x20) == 'e') {
            p++;
            boolean down = buffer[p] == '-';
            if (down || buffer[p] == '+') {
                p++;
            }
            long e = 0;
            for (; isDigit(buffer[p]); p++) {
                e = Math.min(e * 10 + (buffer[p] - '0'), 1L << 40);
            }
            scale += down ? -e : e;
        }
        if (rest) {
            text.append('1');
            scale--;
        } else {
            int n = text.length();
            while (n > 0 && text.charAt(n - 1) == '0') {
                n--;
            }
            scale += text.length() - n;
            text.setLength(n);
        }
        return new Digits(text, (int) Math.max(-MAX_EXPONENT, Math.min(MAX_EXPONENT, scale)));
    }

    private static boolean matches(byte[] b, int p, String word) {
        for (int i = 0; i < word.length(); i++) {
            if (b[p + i] != word.charAt(i)) {
                return false;
            }
        }
        return true;
    }

    private static boolean isDigit(byte c) {
        return c >= '0' && c <= '9';
    }

    /**
     * How many of the eight bytes, in memory order, are digit values (0 to 9) after the XOR with '0'. Adding 0x76 to a
     * byte's low seven bits sets its top bit exactly when they exceed 9.
     */
    private static int leadingDigits(long v) {
        long m = (((v & 0x7F7F7F7F7F7F7F7FL) + 0x7676767676767676L) | v) & 0x8080808080808080L;
        return Long.numberOfTrailingZeros(m) >>> 3;
    }

    /**
     * Combines eight digit values, the first digit in the lowest byte, to a number: pairs first, then the four pairs
     * by two multiplications.
     */
    private static long eightDigits(long v) {
        long pairs = v * 10 + (v >>> 8);
        return ((pairs & 0x000000FF000000FFL) * 0x000F424000000064L
                        + ((pairs >>> 16) & 0x000000FF000000FFL) * 0x0000271000000001L)
                >>> 32;
    }

    /** Significant digits and the power of ten by which they are multiplied. Confined to the scanner. */
    private record Digits(StringBuilder text, int scale) {
        BigDecimal toDecimal() {
            return new BigDecimal(text.length() == 0 ? "0" : text.toString()).scaleByPowerOfTen(scale);
        }

        @Override
        public String toString() {
            return text.length() == 0 ? "0" : text + "e" + scale;
        }
    }

    /** The token for an error message, cut to 40 characters. */
    public static String excerpt(byte[] b, int from, int to) {
        String text = new String(b, from, Math.min(to - from, 40), StandardCharsets.ISO_8859_1);
        return to - from > 40 ? text + "..." : text;
    }
}
