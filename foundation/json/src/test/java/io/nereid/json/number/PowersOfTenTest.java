// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.json.number;

import static org.assertj.core.api.Assertions.assertThat;

import java.math.BigInteger;
import org.junit.jupiter.api.Test;

class PowersOfTenTest {
    @Test
    void holdsEveryPowerToTheLastBit() {
        for (int q = PowersOfTen.MIN; q <= PowersOfTen.MAX; q++) {
            BigInteger five = BigInteger.valueOf(5).pow(Math.abs(q));
            // 5^q as a fraction of integers, scaled to 128 bits before the point
            int shift = q >= 0 ? 128 - five.bitLength() : five.bitLength() + 127;
            BigInteger numerator = (q >= 0 ? five : BigInteger.ONE).shiftLeft(Math.max(0, shift));
            BigInteger denominator = q >= 0 ? BigInteger.ONE.shiftLeft(Math.max(0, -shift)) : five;
            BigInteger[] exact = numerator.divideAndRemainder(denominator);
            BigInteger down = exact[0];
            BigInteger up = exact[1].signum() == 0 ? down : down.add(BigInteger.ONE);
            assertThat(up.bitLength()).isEqualTo(128);
            assertThat(significand(PowersOfTen.high(q), PowersOfTen.lowRoundedUp(q)))
                    .as("10^%d", q)
                    .isEqualTo(up);
            assertThat(significand(PowersOfTen.high(q), PowersOfTen.low(q)))
                    .as("10^%d", q)
                    .isEqualTo(q < 0 && q >= -27 ? up : down);
        }
    }

    private static BigInteger significand(long high, long low) {
        return new BigInteger(Long.toUnsignedString(high))
                .shiftLeft(64)
                .add(new BigInteger(Long.toUnsignedString(low)));
    }
}
