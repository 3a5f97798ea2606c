// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.catboost;

/**
 * A column of a model. Immutable.
 *
 * @param name as it was given when the model was trained; may be empty
 * @param place among all columns
 * @param categorical whether its values are texts
 * @param borders of numbers, ascending
 * @param nan what not a number is
 */
record Feature(String name, int place, boolean categorical, float[] borders, Nan nan) {
    /** What not a number is. */
    enum Nan {
        /** Less than every border. */
        BELOW,
        /** Greater than every border. */
        ABOVE
    }
}
