// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.catboost;

/**
 * A column of a model. Immutable.
 *
 * @param name the name at training; may be empty
 * @param place the index among all columns
 * @param categorical whether the column is categorical
 * @param borders the ascending borders of a numeric column
 * @param nan how NaN is handled
 */
record FeatureColumn(String name, int place, boolean categorical, float[] borders, Nan nan) {
    /** How NaN is handled. */
    enum Nan {
        /** As less than every border. */
        BELOW,
        /** As greater than every border. */
        ABOVE
    }
}
