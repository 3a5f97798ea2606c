// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.trees.forest;

import io.nereid.tensor.FloatOrder;
import java.util.Arrays;

/**
 * Encodes rows as the keys that tree nodes compare. A key is a feature together with a rule for missing values. Each
 * row is encoded once into one int per key, in an order-preserving way, so that a node compares two ints, and a missing
 * value is the least or the greatest int. Without this, every node of every tree would test for NaN. Immutable.
 */
public final class FeatureKeys {
    /** NaN goes left. */
    public static final byte NAN_LEFT = 0;
    /** NaN goes right. */
    public static final byte NAN_RIGHT = 1;
    /** NaN is taken as zero. */
    public static final byte NAN_IS_ZERO = 2;
    /** Zero and NaN go left. */
    public static final byte ZERO_LEFT = 3;
    /** Zero and NaN go right. */
    public static final byte ZERO_RIGHT = 4;
    /** XGBoost's categories: NaN is missing, and an invalid category is {@link #NO_CATEGORY}. */
    public static final byte CATEGORY = 5;
    /** LightGBM's categories: NaN and negative numbers are {@link #NO_CATEGORY}. */
    public static final byte CATEGORY_OR_NONE = 6;

    /** The code of a value that goes left at every node. */
    static final int LEAST = Integer.MIN_VALUE;
    /** The code of a value that goes right at every node. */
    static final int GREATEST = Integer.MAX_VALUE;
    /** The code of a missing category. */
    static final int MISSING_CATEGORY = -2;
    /** The code of a value that is in no category set. */
    static final int NO_CATEGORY = -1;

    /** LightGBM's {@code kZeroThreshold}, a float there: values nearer to zero count as zero. */
    static final double ZERO = 1e-35f;

    private static final float CATEGORIES = 1 << 24;

    private final int[] features;
    private final byte[] rules;
    private final int[] missing;

    /** By key the ascending thresholds of its feature, when codes are ranks among them; else empty. */
    private final double[][] ranks;

    private final boolean ranked;

    /** Absolute values up to this count as zero; negative to disable. */
    private final double zero;

    /**
     * Creates the encoder.
     *
     * @param features by key, the feature
     * @param rules by key, the rule for missing values
     * @param lightgbm whether values very near zero count as zero
     * @param ranks by key the thresholds of its feature; empty when codes are made of the bits of floats
     */
    FeatureKeys(int[] features, byte[] rules, boolean lightgbm, double[][] ranks) {
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
                    missing[s] = ranked ? rank(0, ranks[s]) : FloatOrder.of(0f);
            }
        }
    }

    public int size() {
        return features.length;
    }

    /** The number of thresholds that are less than the value. */
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

    /** Writes the codes of a row to {@code to} at {@code at}. */
    public void encode(RowReader rows, int row, int[] to, int at) {
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
                number = FloatOrder.of(x);
            } else {
                number = special(s, x);
                number = number == PLAIN ? FloatOrder.of(x) : number;
            }
            to[at + s] = number;
        }
    }

    private void encodeRanks(RowReader rows, int row, int[] to, int at) {
        for (int s = 0; s < features.length; s++) {
            double x = rows.value(row, features[s]);
            x = Math.abs(x) <= zero ? 0 : x;
            int number = Double.isNaN(x) ? missing[s] : rules[s] <= NAN_IS_ZERO ? PLAIN : special(s, x);
            to[at + s] = number == PLAIN ? rank(x, ranks[s]) : number;
        }
    }

    /** Returned by {@link #special} for an ordinary value; not a valid code of a category. */
    private static final int PLAIN = -3;

    /** The code of a category, or of a zero that counts as missing. */
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
        return "keys of features " + Arrays.toString(features);
    }
}
