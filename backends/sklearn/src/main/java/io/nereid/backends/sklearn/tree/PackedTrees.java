// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.tree;

import io.nereid.tensor.FloatOrder;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * Trees with numeric splits, packed so that many rows find their leaves at once. A row is encoded as ints first, which have the order of
 * its values, so that each split compares ints. A column has two of them where missing values go left at some nodes and right at others.
 * Immutable.
 *
 * <pre>{@code
 * PackedTrees packed = PackedTrees.ofFloats(trees);
 * int[] numbers = new int[PackedTrees.ROWS * packed.stride()];
 * int[] leaves = new int[PackedTrees.ROWS];
 * packed.encode(x, first * columns, columns, rows, numbers);
 * for (int t = 0; t < trees.size(); t++) {
 *     packed.leaves(t, numbers, rows, leaves);
 * }
 * }</pre>
 */
public final class PackedTrees {
    /** Rows that are encoded together: they stay in the first cache while all trees pass. */
    public static final int ROWS = 128;

    /**
     * A tree to pack. The arrays are read, and not kept.
     *
     * @param left by node its left child, after the node itself; -1 for a leaf. Node 0 is the root
     * @param right by node its right child, likewise
     * @param feature by inner node the column that it compares
     * @param threshold by inner node: a row goes left if its value is at most this
     * @param missingLeft by inner node whether NaN goes left; else it goes right
     */
    public record TreeNodes(int[] left, int[] right, int[] feature, double[] threshold, boolean[] missingLeft) {
        private int slot(int node) {
            return 2 * feature[node] + (missingLeft[node] ? 1 : 0);
        }

        private boolean isLeaf(int node) {
            return left[node] < 0;
        }
    }

    private final @Nullable PackedTree[] trees;
    /** By number of a row, twice the column, plus 1 where missing values go left. */
    private final int[] slots;
    /** By number of a row, the ascending thresholds of its column, when numbers are ranks among them; else empty. */
    private final double[][] ranks;

    private PackedTrees(List<TreeNodes> given, boolean ranked) {
        slots = given.stream()
                .flatMapToInt(tree -> IntStream.range(0, tree.left.length)
                        .filter(node -> !tree.isLeaf(node))
                        .map(tree::slot))
                .distinct()
                .sorted()
                .toArray();
        ranks = ranked ? ranks(given) : new double[0][];
        trees = new PackedTree[given.size()];
        for (int t = 0; t < trees.length; t++) {
            trees[t] = pack(given.get(t));
        }
    }

    /** Packs trees that compare values as 32-bit floats. A tree that is too large for the layout is left out. */
    public static PackedTrees ofFloats(List<TreeNodes> trees) {
        return new PackedTrees(trees, false);
    }

    /** Packs trees that compare values as 64-bit floats. A tree that is too large for the layout is left out. */
    public static PackedTrees ofDoubles(List<TreeNodes> trees) {
        return new PackedTrees(trees, true);
    }

    private double[][] ranks(List<TreeNodes> given) {
        double[][] by = new double[slots.length][];
        for (int s = 0; s < slots.length; s++) {
            int column = slots[s] / 2;
            by[s] = s > 0 && slots[s - 1] / 2 == column
                    ? by[s - 1]
                    : given.stream()
                            .flatMapToDouble(tree -> IntStream.range(0, tree.left.length)
                                    .filter(node -> !tree.isLeaf(node) && tree.feature[node] == column)
                                    .mapToDouble(node -> tree.threshold[node]))
                            .sorted()
                            .distinct()
                            .toArray();
        }
        return by;
    }

    private @Nullable PackedTree pack(TreeNodes tree) {
        int[] numberOf = new int[tree.left.length];
        int[] thresholds = new int[tree.left.length];
        for (int node = 0; node < numberOf.length; node++) {
            if (!tree.isLeaf(node)) {
                if (Double.isNaN(tree.threshold[node])) {
                    return null;
                }
                numberOf[node] = Arrays.binarySearch(slots, tree.slot(node));
                // At most the threshold is less than the next number.
                thresholds[node] = 1
                        + (ranks.length > 0
                                ? rank(tree.threshold[node], ranks[numberOf[node]])
                                : FloatOrder.of(atMost(tree.threshold[node])));
            }
        }
        return PackedTree.of(tree.left, tree.right, numberOf, thresholds);
    }

    /** Returns the largest float that is at most the value: floats are at most one if they are at most the other. */
    private static float atMost(double value) {
        float nearest = (float) value;
        return nearest > value ? Math.nextDown(nearest) : nearest;
    }

    /** Returns the numbers of an encoded row. */
    public int stride() {
        return slots.length;
    }

    /**
     * Encodes rows of floats.
     *
     * @param from the index of the first row's first value
     * @param columns the values of a row
     * @param rows at most {@link #ROWS}
     * @param to gets {@link #stride} numbers for each row
     */
    public void encode(float[] x, int from, int columns, int rows, int[] to) {
        int at = 0;
        for (int row = 0; row < rows; row++) {
            int base = from + row * columns;
            for (int slot : slots) {
                float value = x[base + (slot >> 1)];
                to[at++] = Float.isNaN(value) ? missing(slot) : FloatOrder.of(value);
            }
        }
    }

    /** Encodes rows of doubles; as {@link #encode(float[], int, int, int, int[])}. */
    public void encode(double[] x, int from, int columns, int rows, int[] to) {
        int at = 0;
        for (int row = 0; row < rows; row++) {
            int base = from + row * columns;
            for (int s = 0; s < slots.length; s++) {
                double value = x[base + (slots[s] >> 1)];
                to[at++] = Double.isNaN(value) ? missing(slots[s]) : rank(value, ranks[s]);
            }
        }
    }

    /** The number of thresholds that are less than the value. */
    private static int rank(double value, double[] thresholds) {
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

    /** The number of a missing value: less than each threshold, or than none. */
    private static int missing(int slot) {
        return (slot & 1) != 0 ? Integer.MIN_VALUE : Integer.MAX_VALUE;
    }

    /**
     * Finds the leaves of encoded rows in a tree.
     *
     * @param numbers the encoded rows, with the capacity of {@link #ROWS} rows
     * @param leaves gets by row the index of its leaf; of the same capacity
     * @return false if the tree was left out
     */
    public boolean leaves(int tree, int[] numbers, int rows, int[] leaves) {
        PackedTree packed = trees[tree];
        if (packed == null) {
            return false;
        }
        if (slots.length == 0) {
            Arrays.fill(leaves, 0, rows, 0);
        } else {
            packed.leaves(numbers, rows, slots.length, leaves);
        }
        return true;
    }
}
