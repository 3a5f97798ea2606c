// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.catboost;

import java.util.List;

/**
 * Trees over binned columns. A row is turned into one whole number for each slot (how many borders a number is above,
 * whether a category is a certain one), so that a split compares whole numbers. Immutable.
 *
 * @param floats columns of numbers
 * @param categories how many columns of categories there are
 * @param exact categories that splits ask for, behind the slots of the numbers
 * @param ctrs numbers of combinations, behind those
 * @param splitSlots by split the slot; of symmetric trees level by level, of others by node
 * @param splitBins by split the number above which the answer is yes
 * @param starts by tree its first split, and one more
 * @param leafStarts by symmetric tree its first leaf
 * @param left by node of other trees what follows a no: a node, or a leaf as {@code ~leaf}; empty for symmetric trees
 * @param right by node what follows a yes
 * @param leaves values by leaf and output
 * @param outputs sums of a row
 */
record Ensemble(
        List<Feature> floats,
        int categories,
        List<Exact> exact,
        List<Ctr> ctrs,
        int[] splitSlots,
        int[] splitBins,
        int[] starts,
        int[] leafStarts,
        int[] left,
        int[] right,
        double[] leaves,
        int outputs,
        double scale,
        double[] biases) {
    /** A category that a split asks for. */
    record Exact(int column, int value) {}

    int slots() {
        return floats.size() + exact.size() + ctrs.size();
    }

    int trees() {
        return starts.length - 1;
    }

    /** Turns a row into whole numbers; what is missing among its numbers is replaced. */
    void bin(float[] numbers, int[] hashes, int[] bins) {
        int slot = 0;
        for (int i = 0; i < floats.size(); i++) {
            Feature f = floats.get(i);
            if (Float.isNaN(numbers[i])) {
                // Combinations of categories ask for the number, too.
                numbers[i] = f.nan() == Feature.Nan.ABOVE ? Float.POSITIVE_INFINITY : Float.NEGATIVE_INFINITY;
            }
            bins[slot++] = above(numbers[i], f.borders());
        }
        for (int i = 0; i < exact.size(); i++) {
            bins[slot++] = hashes[exact.get(i).column()] == exact.get(i).value() ? 1 : 0;
        }
        for (int i = 0; i < ctrs.size(); i++) {
            Ctr ctr = ctrs.get(i);
            bins[slot++] = above(ctr.value(numbers, 0, hashes), ctr.borders());
        }
    }

    /** How many borders are less. */
    private static int above(float value, float[] borders) {
        int low = 0;
        int high = borders.length;
        while (low < high) {
            int middle = (low + high) >>> 1;
            if (borders[middle] < value) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        return low;
    }

    /** Adds up a row's leaves. */
    void sum(int[] bins, double[] sums) {
        for (int o = 0; o < outputs; o++) {
            sums[o] = 0;
        }
        boolean symmetric = left.length == 0;
        for (int t = 0; t < starts.length - 1; t++) {
            int leaf;
            if (symmetric) {
                int index = 0;
                int from = starts[t];
                for (int s = from; s < starts[t + 1]; s++) {
                    index |= (splitBins[s] - bins[splitSlots[s]] >>> 31) << (s - from);
                }
                leaf = leafStarts[t] + index;
            } else {
                // A tree of one leaf has no nodes.
                int node = starts[t] == starts[t + 1] ? ~leafStarts[t] : starts[t];
                while (node >= 0) {
                    node = bins[splitSlots[node]] > splitBins[node] ? right[node] : left[node];
                }
                leaf = ~node;
            }
            int at = leaf * outputs;
            for (int o = 0; o < outputs; o++) {
                sums[o] += leaves[at + o];
            }
        }
        for (int o = 0; o < outputs; o++) {
            sums[o] = sums[o] * scale + biases[o];
        }
    }
}
