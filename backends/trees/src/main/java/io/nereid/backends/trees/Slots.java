// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.trees;

import java.util.Arrays;

/**
 * What nodes look at: a feature under a rule for what is missing. A row is turned into one whole number for each slot,
 * such that a node has only to compare numbers, and what is missing is the least or the greatest of all. Immutable.
 */
final class Slots {
    /** Not a number goes left. */
    static final byte NAN_LEFT = 0;
    /** Not a number goes right. */
    static final byte NAN_RIGHT = 1;
    /** Not a number is zero. */
    static final byte NAN_IS_ZERO = 2;
    /** Zero and not a number go left. */
    static final byte ZERO_LEFT = 3;
    /** Zero and not a number go right. */
    static final byte ZERO_RIGHT = 4;
    /** A category; not a number is missing, what is no category is {@link #NO_CATEGORY}. */
    static final byte CATEGORY = 5;
    /** A category; not a number and numbers below zero are {@link #NO_CATEGORY}. */
    static final byte CATEGORY_OR_NONE = 6;

    /** The number of what goes left everywhere. */
    static final int LEAST = Integer.MIN_VALUE;
    /** The number of what goes right everywhere. */
    static final int GREATEST = Integer.MAX_VALUE;
    /** The number of a missing category. */
    static final int MISSING_CATEGORY = -2;
    /** The number of what is in no set of categories. */
    static final int NO_CATEGORY = -1;

    /** What LightGBM takes for zero: as a float there, and so here. */
    static final double ZERO = 1e-35f;

    private static final float CATEGORIES = 1 << 24;

    private final int[] features;
    private final byte[] rules;
    private final int[] missing;

    /** By slot the thresholds of its feature, ascending, when numbers are ranks among them; else empty. */
    private final double[][] ranks;

    private final boolean ranked;

    /** What is so near zero counts as zero; below zero for nothing. */
    private final double zero;

    /**
     * For slots.
     *
     * @param lightgbm whether what is very near zero is zero
     * @param ranks by slot the thresholds of its feature; empty when numbers are made of the bits of floats
     */
    Slots(int[] features, byte[] rules, boolean lightgbm, double[][] ranks) {
        this.zero = lightgbm ? ZERO : -1;
        this.features = features;
        this.rules = rules;
        this.ranks = ranks;
        this.ranked = ranks.length > 0;
        this.missing = new int[features.length];
        for (int s = 0; s < features.length; s++) {
            switch (rules[s]) {
                case NAN_LEFT:
                case ZERO_LEFT:
                    missing[s] = LEAST;
                    break;
                case NAN_RIGHT:
                case ZERO_RIGHT:
                    missing[s] = GREATEST;
                    break;
                case CATEGORY:
                    missing[s] = MISSING_CATEGORY;
                    break;
                case CATEGORY_OR_NONE:
                    missing[s] = NO_CATEGORY;
                    break;
                default:
                    missing[s] = ranked ? rank(0, ranks[s]) : number(0f);
            }
        }
    }

    int size() {
        return features.length;
    }

    /** A number that is ordered as floats are; both zeros have one. */
    static int number(float value) {
        int bits = Float.floatToRawIntBits(value + 0f);
        return bits ^ ((bits >> 31) & Integer.MAX_VALUE);
    }

    /** How many thresholds are less. */
    static int rank(double value, double[] thresholds) {
        int low = 0;
        int high = thresholds.length;
        while (low < high) {
            int middle = (low + high) >>> 1;
            if (thresholds[middle] < value) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        return low;
    }

    /** Puts the numbers of a row into {@code to} from {@code at} on. */
    void encode(Rows rows, int row, int[] to, int at) {
        if (ranked) {
            encodeRanks(rows, row, to, at);
            return;
        }
        boolean single = rows.single();
        for (int s = 0; s < features.length; s++) {
            float x = single ? rows.single(row, features[s]) : (float) rows.value(row, features[s]);
            int number;
            x = Math.abs(x) <= zero ? 0 : x;
            if (Float.isNaN(x)) {
                number = missing[s];
            } else if (rules[s] <= NAN_IS_ZERO) {
                number = number(x);
            } else {
                number = special(s, x);
                number = number == PLAIN ? number(x) : number;
            }
            to[at + s] = number;
        }
    }

    private void encodeRanks(Rows rows, int row, int[] to, int at) {
        for (int s = 0; s < features.length; s++) {
            double x = rows.value(row, features[s]);
            x = Math.abs(x) <= zero ? 0 : x;
            int number = Double.isNaN(x) ? missing[s] : rules[s] <= NAN_IS_ZERO ? PLAIN : special(s, x);
            to[at + s] = number == PLAIN ? rank(x, ranks[s]) : number;
        }
    }

    /** No number of anything. */
    private static final int PLAIN = -3;

    private int special(int s, double x) {
        switch (rules[s]) {
            case CATEGORY:
                return x < 0 || x >= CATEGORIES ? NO_CATEGORY : (int) x;
            case CATEGORY_OR_NONE:
                return (int) x < 0 ? NO_CATEGORY : (int) x;
            default:
                return x == 0 ? missing[s] : PLAIN;
        }
    }

    @Override
    public String toString() {
        return "slots of features " + Arrays.toString(features);
    }
}
