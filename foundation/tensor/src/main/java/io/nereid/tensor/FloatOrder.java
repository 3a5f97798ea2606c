// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.tensor;

/**
 * 32-bit floats as ints of the same order, for code that compares many values: trees compare ints without branches, and compilers make
 * vector instructions of such comparisons. Stateless.
 */
public final class FloatOrder {
    private FloatOrder() {}

    /**
     * Converts a float to an int: {@code a < b} exactly when {@code of(a) < of(b)}. The bits of positive floats are ordered as ints; those
     * of negative ones in reverse, so that their lower 31 bits are flipped. Adding 0 gives both zeros the same int. Not for NaN.
     */
    public static int of(float value) {
        int bits = Float.floatToRawIntBits(value + 0f);
        return bits ^ (bits >> 31 & Integer.MAX_VALUE);
    }
}
