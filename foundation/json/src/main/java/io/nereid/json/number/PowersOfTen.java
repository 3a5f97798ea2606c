// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.json.number;

import java.math.BigInteger;

/**
 * Powers of ten: exact ones, and 128-bit approximations of the powers of five for the Eisel-Lemire and Schubfach
 * algorithms. Computed with exact arithmetic when the class is loaded. Immutable.
 */
final class PowersOfTen {
    static final int MIN = -342;
    static final int MAX = 324;

    /** 10^0 to 10^22: the powers that a double represents exactly. */
    private static final double[] EXACT = {
        1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19,
        1e20, 1e21, 1e22
    };

    /** 10^0 to 10^18. */
    private static final long[] LONGS = new long[19];

    private static final long[] HIGH = new long[MAX - MIN + 1];
    private static final long[] LOW = new long[MAX - MIN + 1];

    static {
        long power = 1;
        for (int i = 0; i < LONGS.length; i++) {
            LONGS[i] = power;
            power *= 10;
        }
        BigInteger five = BigInteger.ONE;
        for (int q = 0; q <= MAX; q++) {
            int bits = five.bitLength();
            put(q, bits <= 128 ? five.shiftLeft(128 - bits) : five.shiftRight(bits - 128));
            if (q > 0 && -q >= MIN) {
                // 1/5^q, rounded up for q <= 27, where a decimal of 64 bits may be divisible by 5^q, else truncated
                BigInteger quotient = BigInteger.ONE.shiftLeft(bits + 127).divide(five);
                put(-q, q <= 27 ? quotient.add(BigInteger.ONE) : quotient);
            }
            five = five.multiply(BigInteger.valueOf(5));
        }
        for (int q = MAX + 1; -q >= MIN; q++) {
            put(-q, BigInteger.ONE.shiftLeft(five.bitLength() + 127).divide(five));
            five = five.multiply(BigInteger.valueOf(5));
        }
    }

    private PowersOfTen() {}

    private static void put(int q, BigInteger v) {
        HIGH[q - MIN] = v.shiftRight(64).longValue();
        LOW[q - MIN] = v.longValue();
    }

    /** 10^n as a double, exact; n in [0, 22]. */
    static double exact(int n) {
        return EXACT[n];
    }

    /** 10^n; n in [0, 18]. */
    static long asLong(int n) {
        return LONGS[n];
    }

    /** Upper 64 bits of the 128-bit significand of 10^q. */
    static long high(int q) {
        return HIGH[q - MIN];
    }

    /** Lower 64 bits of the 128-bit significand of 10^q, for parsing. */
    static long low(int q) {
        return LOW[q - MIN];
    }

    /** Lower 64 bits of the 128-bit significand of 10^q rounded up, for printing; no carry reaches the upper half. */
    static long lowRoundedUp(int q) {
        return LOW[q - MIN] + (q < -27 || q > 55 ? 1 : 0);
    }

    /** Upper 64 bits of the product of two unsigned numbers. */
    static long multiplyHighUnsigned(long a, long b) {
        return Math.multiplyHigh(a, b) + ((a >> 63) & b) + ((b >> 63) & a);
    }
}
