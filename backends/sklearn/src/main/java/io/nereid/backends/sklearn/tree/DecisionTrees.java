// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.tree;

import java.util.List;

/** The trees of an ensemble, which rows pass in blocks. Immutable. */
public final class DecisionTrees {
    /** Fewer rows find their leaves one by one: that takes less than to encode them. */
    private static final int FEW_ROWS = 3;

    private final List<DecisionTree> trees;
    private final PackedTrees packed;

    public DecisionTrees(List<DecisionTree> trees) {
        this.trees = List.copyOf(trees);
        this.packed = PackedTrees.ofFloats(
                trees.stream().map(DecisionTree::nodesToPack).toList());
    }

    /** Gets the leaves of some rows in one tree. */
    @FunctionalInterface
    public interface LeafConsumer {
        /**
         * Gets the leaves of rows {@code first} to {@code first + rows - 1}.
         *
         * @param index of the tree
         * @param leaves by row after the first, the leaf; valid during the call
         */
        void accept(int index, int first, int rows, int[] leaves);
    }

    public List<DecisionTree> trees() {
        return trees;
    }

    /**
     * Passes all rows through all trees. Each row passes the trees in their order, so that sums are those of scikit-learn.
     *
     * @param x the rows, one after the other
     * @param columns the values of a row
     */
    public void forEachLeaf(float[] x, int rows, int columns, LeafConsumer consumer) {
        boolean few = rows < FEW_ROWS;
        int capacity = few ? rows : PackedTrees.ROWS;
        int[] numbers = new int[few ? 0 : capacity * packed.stride()];
        int[] leaves = new int[capacity];
        for (int first = 0; first < rows; first += capacity) {
            int count = Math.min(capacity, rows - first);
            if (!few) {
                packed.encode(x, first * columns, columns, count, numbers);
            }
            for (int t = 0; t < trees.size(); t++) {
                if (few || !packed.leaves(t, numbers, count, leaves)) {
                    for (int row = 0; row < count; row++) {
                        leaves[row] = trees.get(t).leaf(x, (first + row) * columns);
                    }
                }
                consumer.accept(t, first, count, leaves);
            }
        }
    }
}
