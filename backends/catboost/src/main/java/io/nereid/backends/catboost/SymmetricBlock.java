// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.catboost;

import io.nereid.tensor.FloatOrder;
import java.util.Arrays;

/**
 * Scores many rows of an ensemble of symmetric trees at once. A split compares the same feature of all rows with the same border, so that
 * the rows of a block stand feature by feature as ints, and the loop over them is one that the compiler turns into vector instructions.
 * Each row gets the same sums in the same order as from {@link TreeEnsemble#sum}. Confined to one thread.
 */
final class SymmetricBlock {
    /** Fewer rows take less time one by one. */
    static final int LEAST_ROWS = 8;

    private static final int MOST_ROWS = 512;
    /** The most ints of a block, so that it stays in the second cache. */
    private static final int MOST_INTS = 1 << 15;

    private final TreeEnsemble ensemble;
    /** By split, the border as an int of the same order, or the bin. */
    private final int[] borders;

    private final int rows;
    /**
     * By feature and row, the value as an int of the same order, or the bin. An array for each feature: the compiler makes no vector
     * instructions of a loop that begins at an offset.
     */
    private final int[][] values;

    private final int[] leaves;
    private final double[] sums;

    /** @param borders as {@link #borders} returns them */
    SymmetricBlock(TreeEnsemble ensemble, int[] borders) {
        this.ensemble = ensemble;
        this.borders = borders;
        this.rows = Math.max(LEAST_ROWS, Math.min(MOST_ROWS, MOST_INTS / Math.max(1, ensemble.slots())));
        this.values = new int[ensemble.slots()][rows];
        this.leaves = new int[rows];
        this.sums = new double[rows * ensemble.outputs()];
    }

    /** Returns by split what a row's value must exceed to set the bit of the split. */
    static int[] borders(TreeEnsemble ensemble) {
        int[] borders = ensemble.splitBins().clone();
        for (int s = 0; s < borders.length; s++) {
            int slot = ensemble.splitSlots()[s];
            if (slot < ensemble.floats().size()) {
                float[] of = ensemble.floats().get(slot).borders();
                // All values exceed a negative bin, and none a bin without a border.
                borders[s] = borders[s] < 0
                        ? Integer.MIN_VALUE
                        : borders[s] < of.length ? FloatOrder.of(of[borders[s]]) : Integer.MAX_VALUE;
            }
        }
        return borders;
    }

    /** Returns the rows that a block takes. */
    int rows() {
        return rows;
    }

    /** Sets a row. Replaces NaN in {@code numbers} by an infinite value. */
    void set(int row, float[] numbers, int[] hashes) {
        ensemble.replaceMissing(numbers);
        int slot = 0;
        for (float number : numbers) {
            values[slot++][row] = FloatOrder.of(number);
        }
        for (TreeEnsemble.Exact one : ensemble.exact()) {
            values[slot++][row] = one.of(hashes);
        }
        for (Ctr ctr : ensemble.ctrs()) {
            values[slot++][row] = TreeEnsemble.above(ctr.value(numbers, 0, hashes), ctr.borders());
        }
    }

    /** Computes the raw scores of the first {@code count} rows. */
    void sum(int count) {
        int[] starts = ensemble.starts();
        double[] scores = ensemble.leaves();
        int outputs = ensemble.outputs();
        Arrays.fill(sums, 0, count * outputs, 0);
        for (int t = 0; t < starts.length - 1; t++) {
            Arrays.fill(leaves, 0, count, 0);
            // The first split is the lowest bit.
            for (int s = starts[t + 1] - 1; s >= starts[t]; s--) {
                addBit(values[ensemble.splitSlots()[s]], borders[s], leaves, count);
            }
            int first = ensemble.leafStarts()[t];
            if (outputs == 1) {
                for (int row = 0; row < count; row++) {
                    sums[row] += scores[first + leaves[row]];
                }
                continue;
            }
            for (int row = 0; row < count; row++) {
                int at = (first + leaves[row]) * outputs;
                for (int o = 0; o < outputs; o++) {
                    sums[row * outputs + o] += scores[at + o];
                }
            }
        }
    }

    /** Adds a bit to each row's leaf, 1 if its value exceeds the border: the sign of their difference, corrected for its overflow. */
    private static void addBit(int[] values, int border, int[] leaves, int count) {
        for (int row = 0; row < count; row++) {
            int value = values[row];
            int difference = border - value;
            leaves[row] = (leaves[row] << 1) + ((difference ^ (border ^ value) & (difference ^ border)) >>> 31);
        }
    }

    /** Copies the raw scores of a row. */
    void copySums(int row, double[] to) {
        for (int o = 0; o < to.length; o++) {
            to[o] = sums[row * to.length + o] * ensemble.scale() + ensemble.biases()[o];
        }
    }
}
