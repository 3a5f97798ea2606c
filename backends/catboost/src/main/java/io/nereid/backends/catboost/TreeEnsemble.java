// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.catboost;

import java.util.List;

/**
 * Trees over binned features. A row is first converted to one int per feature: the number of borders that a numeric
 * value exceeds, or whether a category is a certain one (one-hot). Splits then compare ints. Immutable.
 *
 * @param floats numeric columns
 * @param categories number of categorical columns
 * @param exact one-hot features, which follow the numeric ones
 * @param ctrs CTR features, which follow those
 * @param splitSlots by split, the feature; of symmetric trees level by level, of others by node
 * @param splitBins by split, the bin above which a row goes right
 * @param starts by tree, its first split; then the number of splits
 * @param leafStarts by symmetric tree, its first leaf
 * @param left by node of non-symmetric trees, the left child: a node, or {@code ~leaf}; empty for symmetric trees
 * @param right by node, the right child
 * @param leaves values by leaf and output
 * @param outputs raw scores per row
 */
record TreeEnsemble(
        List<FeatureColumn> floats,
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
    /** A one-hot feature: whether a column has a certain category. */
    record Exact(int column, int value) {
        /** Returns 1 if the row has the category, else 0. */
        int of(int[] hashes) {
            return hashes[column] == value ? 1 : 0;
        }
    }

    int slots() {
        return floats.size() + exact.size() + ctrs.size();
    }

    int trees() {
        return starts.length - 1;
    }

    /** Returns whether all trees have one split for each level. */
    boolean symmetric() {
        return left.length == 0;
    }

    /** Replaces NaN by an infinite value; in the row, because CTR features read the value as well. */
    void replaceMissing(float[] numbers) {
        for (int i = 0; i < numbers.length; i++) {
            if (Float.isNaN(numbers[i])) {
                numbers[i] = floats.get(i).nan() == FeatureColumn.Nan.ABOVE
                        ? Float.POSITIVE_INFINITY
                        : Float.NEGATIVE_INFINITY;
            }
        }
    }

    /** Converts a row to bins. Replaces NaN in {@code numbers} by an infinite value. */
    void bin(float[] numbers, int[] hashes, int[] bins) {
        int slot = 0;
        replaceMissing(numbers);
        for (int i = 0; i < floats.size(); i++) {
            bins[slot++] = above(numbers[i], floats.get(i).borders());
        }
        for (int i = 0; i < exact.size(); i++) {
            bins[slot++] = exact.get(i).of(hashes);
        }
        for (int i = 0; i < ctrs.size(); i++) {
            Ctr ctr = ctrs.get(i);
            bins[slot++] = above(ctr.value(numbers, 0, hashes), ctr.borders());
        }
    }

    /** The number of borders that are less than the value. */
    static int above(float value, float[] borders) {
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

    /** Computes the raw scores of a binned row. */
    void sum(int[] bins, double[] sums) {
        for (int o = 0; o < outputs; o++) {
            sums[o] = 0;
        }
        boolean symmetric = symmetric();
        for (int t = 0; t < starts.length - 1; t++) {
            int leaf;
            if (symmetric) {
                // A symmetric tree has one split per level; their results are the bits of the leaf's index.
                int index = 0;
                int from = starts[t];
                for (int s = from; s < starts[t + 1]; s++) {
                    index |= (splitBins[s] - bins[splitSlots[s]] >>> 31) << (s - from);
                }
                leaf = leafStarts[t] + index;
            } else {
                // A tree of a single leaf has no nodes.
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
