// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.catboost;

import java.util.List;

/**
 * A CTR (CatBoost's "counter") feature: a number computed for a combination of categories from statistics of the
 * training data, that is, how often the combination occurred, and with which targets. Immutable.
 *
 * @param table the counts by combination
 * @param kind the formula
 * @param elements the parts of the combination, in the order in which they are hashed
 * @param targetBorder which target classes count as positive
 */
record Ctr(
        Table table,
        Kind kind,
        List<Element> elements,
        float priorNumerator,
        float priorDenominator,
        float shift,
        float scale,
        int targetBorder,
        float[] borders) {
    private static final long MULTIPLIER = 0x4906ba494954cb65L;

    /** CatBoost's CTR types: how a number is computed from the counts. */
    enum Kind {
        BORDERS,
        BUCKETS,
        BINARIZED_TARGET_MEAN_VALUE,
        FLOAT_TARGET_MEAN_VALUE,
        COUNTER,
        FEATURE_FREQ
    }

    /**
     * A part of a combination. Immutable.
     *
     * @param kind the property of the column
     * @param column the index among the numeric, or among the categorical columns
     * @param border the border of a numeric column
     * @param value the hash of a category
     */
    record Element(Part kind, int column, float border, int value) {}

    /** The property of a column that is part of a combination, in the order of hashing. */
    enum Part {
        CATEGORY,
        NUMBER_ABOVE,
        CATEGORY_IS
    }

    /**
     * Counts by the hash of a combination: a hash table with open addressing and linear probing. Immutable.
     *
     * @param hashes the keys; the length is a power of two
     * @param used whether a slot is occupied
     * @param counts {@code width} counts for each slot
     * @param width counts per slot
     * @param denominator the denominator of counters
     */
    record Table(long[] hashes, boolean[] used, double[] counts, int width, float denominator) {
        static int slot(long hash, int mask) {
            return (int) (hash ^ (hash >>> 32)) & mask;
        }

        /** A table of {@code hashes}, with {@code width} counts for each. */
        static Table of(long[] hashes, double[] counts, int width, float denominator) {
            int size = Math.max(4, Integer.highestOneBit(Math.max(1, hashes.length)) * 4);
            long[] placed = new long[size];
            boolean[] used = new boolean[size];
            double[] beside = new double[Math.multiplyExact(size, width)];
            for (int i = 0; i < hashes.length; i++) {
                int at = slot(hashes[i], size - 1);
                while (used[at] && placed[at] != hashes[i]) {
                    at = (at + 1) & (size - 1);
                }
                used[at] = true;
                placed[at] = hashes[i];
                System.arraycopy(counts, i * width, beside, at * width, width);
            }
            return new Table(placed, used, beside, width, denominator);
        }

        /** The slot of a hash, or -1. */
        int find(long hash) {
            int mask = hashes.length - 1;
            int at = slot(hash, mask);
            while (used[at]) {
                if (hashes[at] == hash) {
                    return at;
                }
                at = (at + 1) & mask;
            }
            return -1;
        }
    }

    /** The value of the feature for a row. */
    float value(float[] numbers, int numbersFrom, int[] categories) {
        long hash = 0;
        for (Element e : elements) {
            long part = switch (e.kind()) {
                case CATEGORY -> categories[e.column()];
                case NUMBER_ABOVE -> numbers[numbersFrom + e.column()] > e.border() ? 1 : 0;
                case CATEGORY_IS -> categories[e.column()] == e.value() ? 1 : 0;
            };
            hash = MULTIPLIER * (hash + MULTIPLIER * part);
        }
        int at = table.find(hash);
        double[] counts = table.counts();
        int from = at * table.width();
        switch (kind) {
            case BINARIZED_TARGET_MEAN_VALUE, FLOAT_TARGET_MEAN_VALUE:
                return at < 0 ? calc(0, 0) : calc(counts[from], counts[from + 1]);
            case COUNTER, FEATURE_FREQ:
                return calc(at < 0 ? 0 : counts[from], table.denominator());
            default:
                if (at < 0) {
                    return calc(0, 0);
                }
        }
        double good = 0;
        double all = 0;
        for (int c = 0; c < table.width(); c++) {
            all += counts[from + c];
            good += kind == Kind.BUCKETS
                    ? (c == targetBorder ? counts[from + c] : 0)
                    : c > targetBorder ? counts[from + c] : 0;
        }
        return calc(good, all);
    }

    private float calc(double good, double all) {
        float ratio = ((float) good + priorNumerator) / ((float) all + priorDenominator);
        return (ratio + shift) * scale;
    }
}
