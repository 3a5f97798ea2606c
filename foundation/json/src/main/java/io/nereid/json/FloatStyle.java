// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.json;

/** How FP32, FP16 and BF16 numbers are printed as JSON. Immutable. */
public enum FloatStyle {
    /** The fewest digits that read back to the same value of the tensor's type: {@code 6.8}. */
    SHORTEST,
    /** The fewest digits of the value converted to double: {@code 6.800000190734863}. */
    WIDENED
}
