// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.trees.forest;

import io.nereid.backends.trees.forest.ParsedTree.LinearLeaf;
import org.jspecify.annotations.Nullable;

/**
 * Trees packed into arrays for fast scoring. There are three layouts, all in breadth-first order, with the left child
 * after the right one. In the first two, a walk from the root has no data-dependent branch and takes as many steps as
 * the tree is deep, so that the processor can overlap the walks of {@link #LANES} rows instead of waiting for each
 * load.
 *
 * <ul>
 *   <li>EVEN: a shallow tree with numeric splits only is padded to a complete binary tree, whose child indexes are
 *       computed: node n has the children 2n and 2n + 1. One long per node: threshold (32 bits) and feature key.
 *   <li>PACKED: a deeper tree with numeric splits only has one long per node and leaf: threshold (32 bits), offset to
 *       the right child (16) and feature key (16). A leaf is its own child for every row, so that further steps do
 *       nothing.
 *   <li>LOOSE: all others, which have categorical splits, or vectors or linear models at the leaves. Four ints per
 *       node, walked row by row.
 * </ul>
 *
 * Immutable.
 */
public final class Forest {
    /**
     * Ints per node in the LOOSE layout: threshold or category set, feature key, index of the right child, leaf or
     * flags.
     */
    static final int NODE = 4;

    /** Rows that are walked together: a single walk spends most of its time waiting for memory. */
    public static final int LANES = 8;

    /** The maximum depth of the EVEN layout: padding doubles the nodes with each level. */
    static final int MOST_EVEN = 8;

    private final FeatureKeys slots;
    private final Tree[] trees;
    private final Even[] evens;
    private final Packed packed;
    private final Loose loose;

    Forest(FeatureKeys slots, Tree[] trees, Even[] evens, Packed packed, Loose loose) {
        this.slots = slots;
        this.trees = trees;
        this.evens = evens;
        this.packed = packed;
        this.loose = loose;
    }

    /**
     * One tree.
     *
     * @param kind its layout
     * @param root the index of its root node, or of the tree among {@code evens}
     * @param depth steps from the root to the deepest leaf
     * @param group the output that it adds to
     */
    record Tree(Kind kind, int root, int depth, int group) {}

    /** The layout of a tree. */
    enum Kind {
        EVEN,
        PACKED,
        LOOSE
    }

    /**
     * A complete binary tree.
     *
     * @param nodes inner nodes; the root is node 1
     * @param singles values by leaf; null when values are doubles
     * @param doubles values by leaf; empty when values are floats
     */
    record Even(long[] nodes, float @Nullable [] singles, double[] doubles) {}

    /**
     * Deeper trees with numeric splits only.
     *
     * @param nodes nodes and leaves of all trees
     * @param singles by node the value of a leaf; null when values are doubles
     * @param doubles by node the value of a leaf; empty when values are floats
     */
    record Packed(long[] nodes, float @Nullable [] singles, double[] doubles) {}

    /**
     * All other trees. In a node with a category set, the feature key is stored as its complement, and the fourth int
     * holds flags: bit 0 is set when members go left, bit 1 when missing values go left.
     *
     * @param nodes {@link #NODE} ints each
     * @param sets category sets: the number of words, then the words of the bit set
     * @param values by leaf, {@code width} each
     * @param width values per leaf
     * @param linear linear models by leaf; null when the model has none
     */
    record Loose(
            int[] nodes,
            int[] sets,
            double[] values,
            int width,
            @Nullable LinearLeaf @Nullable [] linear) {}

    public FeatureKeys slots() {
        return slots;
    }

    /** The number of steps that one row takes through all trees, which predicts the time of a run. */
    public long steps() {
        long sum = 0;
        for (Tree tree : trees) {
            sum += tree.depth + 1;
        }
        return sum;
    }

    /**
     * Adds the values of all trees to the scores of some rows. Trees are added in order, as floating-point sums depend
     * on it and must equal the library's.
     *
     * @param numbers the encoded rows, {@code slots().size()} each, with capacity for a multiple of {@link #LANES} rows
     * @param rows number of rows
     * @param sums scores by row and output, with capacity likewise
     * @param outputs number of outputs
     * @param raw the rows before encoding, for linear leaves
     * @param first index of the first row in {@code raw}
     */
    public void add(int[] numbers, int rows, ScoreAccumulator sums, int outputs, RowReader raw, int first) {
        int stride = slots.size();
        // Walking eight rows takes about as long as walking two one by one. So a rest of three or more rows
        // is rounded up to
        // eight: the extra rows are stale data of an earlier block, whose results are ignored.
        int joined = rows % LANES > 2 ? rows + LANES - 1 : rows;
        for (Tree tree : trees) {
            int row = 0;
            switch (tree.kind) {
                case EVEN:
                    Even even = evens[tree.root];
                    for (; row + LANES <= joined; row += LANES) {
                        walkEight(
                                even,
                                tree.depth,
                                numbers,
                                row * stride,
                                stride,
                                sums,
                                row * outputs + tree.group,
                                outputs);
                    }
                    for (; row < rows; row++) {
                        walk(even, tree.depth, numbers, row * stride, sums, row * outputs + tree.group);
                    }
                    break;
                case PACKED:
                    for (; row + LANES <= joined; row += LANES) {
                        walkEight(numbers, row * stride, stride, tree, sums, row * outputs + tree.group, outputs);
                    }
                    for (; row < rows; row++) {
                        arrive(walk(numbers, row * stride, tree), sums, row * outputs + tree.group);
                    }
                    break;
                default:
                    for (; row < rows; row++) {
                        int leaf = walkLoose(numbers, row * stride, tree.root);
                        arriveLoose(leaf, sums, row * outputs + tree.group, raw, first + row);
                    }
            }
        }
    }

    private static void walkEight(
            Even tree, int depth, int[] numbers, int a, int stride, ScoreAccumulator sums, int sum, int outputs) {
        long[] nodes = tree.nodes;
        int b = a + stride;
        int c = b + stride;
        int d = c + stride;
        int e = d + stride;
        int f = e + stride;
        int g = f + stride;
        int h = g + stride;
        int i = 1;
        int j = 1;
        int k = 1;
        int l = 1;
        int m = 1;
        int n = 1;
        int o = 1;
        int p = 1;
        for (int step = depth; step > 0; step--) {
            long at0 = nodes[i];
            i = 2 * i + less(numbers[a + (int) at0], at0);
            long at1 = nodes[j];
            j = 2 * j + less(numbers[b + (int) at1], at1);
            long at2 = nodes[k];
            k = 2 * k + less(numbers[c + (int) at2], at2);
            long at3 = nodes[l];
            l = 2 * l + less(numbers[d + (int) at3], at3);
            long at4 = nodes[m];
            m = 2 * m + less(numbers[e + (int) at4], at4);
            long at5 = nodes[n];
            n = 2 * n + less(numbers[f + (int) at5], at5);
            long at6 = nodes[o];
            o = 2 * o + less(numbers[g + (int) at6], at6);
            long at7 = nodes[p];
            p = 2 * p + less(numbers[h + (int) at7], at7);
        }
        int base = 1 << depth;
        float[] singles = tree.singles;
        if (singles != null) {
            float[] to = sums.singles;
            to[sum] += singles[i - base];
            to[sum + outputs] += singles[j - base];
            to[sum + 2 * outputs] += singles[k - base];
            to[sum + 3 * outputs] += singles[l - base];
            to[sum + 4 * outputs] += singles[m - base];
            to[sum + 5 * outputs] += singles[n - base];
            to[sum + 6 * outputs] += singles[o - base];
            to[sum + 7 * outputs] += singles[p - base];
        } else {
            double[] to = sums.doubles;
            double[] values = tree.doubles;
            to[sum] += values[i - base];
            to[sum + outputs] += values[j - base];
            to[sum + 2 * outputs] += values[k - base];
            to[sum + 3 * outputs] += values[l - base];
            to[sum + 4 * outputs] += values[m - base];
            to[sum + 5 * outputs] += values[n - base];
            to[sum + 6 * outputs] += values[o - base];
            to[sum + 7 * outputs] += values[p - base];
        }
    }

    private static void walk(Even tree, int depth, int[] numbers, int at, ScoreAccumulator sums, int sum) {
        long[] nodes = tree.nodes;
        int i = 1;
        for (int step = depth; step > 0; step--) {
            long p = nodes[i];
            i = 2 * i + less(numbers[at + (int) p], p);
        }
        float[] singles = tree.singles;
        if (singles != null) {
            sums.singles[sum] += singles[i - (1 << depth)];
        } else {
            sums.doubles[sum] += tree.doubles[i - (1 << depth)];
        }
    }

    /** 1 when the number is less than the node's threshold, else 0: the sign of their difference, without a branch. */
    private static int less(int number, long node) {
        return (int) ((number - (node >> 32)) >>> 63);
    }

    private void walkEight(int[] numbers, int a, int stride, Tree tree, ScoreAccumulator sums, int sum, int outputs) {
        long[] nodes = packed.nodes;
        int b = a + stride;
        int c = b + stride;
        int d = c + stride;
        int e = d + stride;
        int f = e + stride;
        int g = f + stride;
        int h = g + stride;
        int i = tree.root;
        int j = tree.root;
        int k = tree.root;
        int l = tree.root;
        int m = tree.root;
        int n = tree.root;
        int o = tree.root;
        int p = tree.root;
        int moved;
        // A row that has reached its leaf stays there; the loop ends when no row moved.
        do {
            long at0 = nodes[i];
            int to0 = step(at0, numbers[a + (char) at0]);
            i += to0;
            long at1 = nodes[j];
            int to1 = step(at1, numbers[b + (char) at1]);
            j += to1;
            long at2 = nodes[k];
            int to2 = step(at2, numbers[c + (char) at2]);
            k += to2;
            long at3 = nodes[l];
            int to3 = step(at3, numbers[d + (char) at3]);
            l += to3;
            long at4 = nodes[m];
            int to4 = step(at4, numbers[e + (char) at4]);
            m += to4;
            long at5 = nodes[n];
            int to5 = step(at5, numbers[f + (char) at5]);
            n += to5;
            long at6 = nodes[o];
            int to6 = step(at6, numbers[g + (char) at6]);
            o += to6;
            long at7 = nodes[p];
            int to7 = step(at7, numbers[h + (char) at7]);
            p += to7;
            moved = to0 | to1 | to2 | to3 | to4 | to5 | to6 | to7;
        } while (moved != 0);
        float[] singles = packed.singles;
        if (singles != null) {
            float[] to = sums.singles;
            to[sum] += singles[i];
            to[sum + outputs] += singles[j];
            to[sum + 2 * outputs] += singles[k];
            to[sum + 3 * outputs] += singles[l];
            to[sum + 4 * outputs] += singles[m];
            to[sum + 5 * outputs] += singles[n];
            to[sum + 6 * outputs] += singles[o];
            to[sum + 7 * outputs] += singles[p];
        } else {
            double[] to = sums.doubles;
            double[] values = packed.doubles;
            to[sum] += values[i];
            to[sum + outputs] += values[j];
            to[sum + 2 * outputs] += values[k];
            to[sum + 3 * outputs] += values[l];
            to[sum + 4 * outputs] += values[m];
            to[sum + 5 * outputs] += values[n];
            to[sum + 6 * outputs] += values[o];
            to[sum + 7 * outputs] += values[p];
        }
    }

    /** The offset from a node to the child that the row goes to: the left child stands one after the right one. */
    private static int step(long node, int number) {
        return ((int) node >>> 16) + less(number, node);
    }

    private int walk(int[] numbers, int at, Tree tree) {
        long[] nodes = packed.nodes;
        int i = tree.root;
        int moved;
        do {
            long p = nodes[i];
            moved = step(p, numbers[at + (char) p]);
            i += moved;
        } while (moved != 0);
        return i;
    }

    private void arrive(int node, ScoreAccumulator sums, int sum) {
        float[] singles = packed.singles;
        if (singles != null) {
            sums.singles[sum] += singles[node];
        } else {
            sums.doubles[sum] += packed.doubles[node];
        }
    }

    private int walkLoose(int[] numbers, int at, int root) {
        int[] n = loose.nodes;
        int i = root;
        while (true) {
            int slot = n[i + 1];
            boolean left = slot >= 0 ? numbers[at + slot] < n[i] : goesLeft(numbers[at + ~slot], n[i], n[i + 3]);
            int next = n[i + 2] + (left ? NODE : 0);
            if (next == i) {
                return n[i + 3];
            }
            i = next;
        }
    }

    /** Whether a category goes left at a node with a category set. */
    private boolean goesLeft(int category, int set, int about) {
        if (category == FeatureKeys.MISSING_CATEGORY) {
            return (about & 2) != 0;
        }
        int[] sets = loose.sets;
        int word = category >> 5;
        boolean member = category >= 0 && word < sets[set] && (sets[set + 1 + word] >>> (category & 31) & 1) != 0;
        return member == ((about & 1) != 0);
    }

    private void arriveLoose(int leaf, ScoreAccumulator sums, int sum, RowReader raw, int row) {
        @Nullable LinearLeaf[] models = loose.linear;
        LinearLeaf model = models == null ? null : models[leaf];
        if (model != null) {
            sums.doubles[sum] += value(model, loose.values[leaf], raw, row);
            return;
        }
        int width = loose.width;
        for (int w = 0; w < width; w++) {
            double value = loose.values[leaf * width + w];
            if (sums.single()) {
                sums.singles[sum + w] += (float) value;
            } else {
                sums.doubles[sum + w] += value;
            }
        }
    }

    /** LightGBM's linear leaf: falls back to the constant value when a feature is missing. */
    private static double value(LinearLeaf model, double otherwise, RowReader raw, int row) {
        double sum = model.constant();
        int[] features = model.features();
        double[] coefficients = model.coefficients();
        for (int i = 0; i < features.length; i++) {
            double x = raw.value(row, features[i]);
            if (Double.isNaN(x)) {
                return otherwise;
            }
            sum += coefficients[i] * (Math.abs(x) <= FeatureKeys.ZERO ? 0 : x);
        }
        return sum;
    }
}
