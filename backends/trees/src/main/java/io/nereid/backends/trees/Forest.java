// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.trees;

import io.nereid.backends.trees.ParsedTree.LinearLeaf;
import org.jspecify.annotations.Nullable;

/**
 * Trees in one array, four numbers a node: threshold, slot, place of the right child, and what the node is about. The
 * left child lies behind the right one. A leaf is its own child whatever the row, so that a walk takes as many steps as
 * the tree is deep, all of them without a branch, and walks of several rows overlap. Immutable.
 */
final class Forest {
    /** Numbers of a node. */
    static final int NODE = 4;
    /** Trees that are deeper are left as soon as all rows have arrived. */
    private static final int EVEN = 8;

    private final Slots slots;
    private final int[] nodes;
    private final int[] roots;
    private final int[] depths;
    private final int[] groups;
    private final boolean[] categorical;
    /** Sets of categories: at a node's threshold the number of words, then the words. */
    private final int[] sets;
    private final float @Nullable [] singles;
    private final double[] doubles;
    private final int width;
    private final @Nullable LinearLeaf @Nullable [] linear;

    /** What a builder has put together. */
    Forest(
            Slots slots,
            int[] nodes,
            int[] roots,
            int[] depths,
            int[] groups,
            boolean[] categorical,
            int[] sets,
            float @Nullable [] singles,
            double[] doubles,
            int width,
            @Nullable LinearLeaf @Nullable [] linear) {
        this.slots = slots;
        this.nodes = nodes;
        this.roots = roots;
        this.depths = depths;
        this.groups = groups;
        this.categorical = categorical;
        this.sets = sets;
        this.singles = singles;
        this.doubles = doubles;
        this.width = width;
        this.linear = linear;
    }

    Slots slots() {
        return slots;
    }

    int trees() {
        return roots.length;
    }

    /** Steps of one row. */
    long steps() {
        long sum = 0;
        for (int depth : depths) {
            sum += depth + 1;
        }
        return sum;
    }

    /** Bytes of memory. */
    long bytes() {
        return 4L * (nodes.length + sets.length + 3L * roots.length)
                + 8L * doubles.length
                + (singles == null ? 0 : 4L * singles.length);
    }

    /**
     * Adds every tree to the sums of some rows, in the order of the trees.
     *
     * @param numbers the encoded rows, {@code slots().size()} each
     * @param rows how many
     * @param sums by row and output
     * @param outputs how many
     * @param raw the rows themselves
     * @param first the first row in {@code raw}
     */
    void add(int[] numbers, int rows, Sums sums, int outputs, Rows raw, int first) {
        int stride = slots.size();
        for (int t = 0; t < roots.length; t++) {
            int root = roots[t];
            int depth = depths[t];
            int group = groups[t];
            int row = 0;
            if (!categorical[t]) {
                for (; row + 3 < rows; row += 4) {
                    walkFour(numbers, row * stride, stride, root, depth, sums, row * outputs + group, outputs, raw, first + row);
                }
            }
            for (; row < rows; row++) {
                int leaf = categorical[t]
                        ? walkSets(numbers, row * stride, root)
                        : walk(numbers, row * stride, root, depth);
                arrive(leaf, sums, row * outputs + group, raw, first + row);
            }
        }
    }

    private void walkFour(
            int[] numbers,
            int at,
            int stride,
            int root,
            int depth,
            Sums sums,
            int sum,
            int outputs,
            Rows raw,
            int row) {
        int[] n = nodes;
        int b = at + stride;
        int c = b + stride;
        int d = c + stride;
        int i = root;
        int j = root;
        int k = root;
        int l = root;
        if (depth <= EVEN) {
            for (int step = depth; step > 0; step--) {
                i = n[i + 2] + less(numbers[at + n[i + 1]], n[i]);
                j = n[j + 2] + less(numbers[b + n[j + 1]], n[j]);
                k = n[k + 2] + less(numbers[c + n[k + 1]], n[k]);
                l = n[l + 2] + less(numbers[d + n[l + 1]], n[l]);
            }
        } else {
            int moved;
            do {
                int i0 = i;
                int j0 = j;
                int k0 = k;
                int l0 = l;
                i = n[i + 2] + less(numbers[at + n[i + 1]], n[i]);
                j = n[j + 2] + less(numbers[b + n[j + 1]], n[j]);
                k = n[k + 2] + less(numbers[c + n[k + 1]], n[k]);
                l = n[l + 2] + less(numbers[d + n[l + 1]], n[l]);
                moved = (i ^ i0) | (j ^ j0) | (k ^ k0) | (l ^ l0);
            } while (moved != 0);
        }
        arrive(i, sums, sum, raw, row);
        arrive(j, sums, sum + outputs, raw, row + 1);
        arrive(k, sums, sum + 2 * outputs, raw, row + 2);
        arrive(l, sums, sum + 3 * outputs, raw, row + 3);
    }

    /** The way to a node's left child when a number is less than its threshold, else to its right one. */
    private static int less(int number, int threshold) {
        return (int) (((long) number - threshold) >>> 61) & NODE;
    }

    private int walk(int[] numbers, int at, int root, int depth) {
        int[] n = nodes;
        int i = root;
        if (depth <= EVEN) {
            for (int step = depth; step > 0; step--) {
                i = n[i + 2] + less(numbers[at + n[i + 1]], n[i]);
            }
            return i;
        }
        int from;
        do {
            from = i;
            i = n[i + 2] + less(numbers[at + n[i + 1]], n[i]);
        } while (i != from);
        return i;
    }

    private int walkSets(int[] numbers, int at, int root) {
        int[] n = nodes;
        int i = root;
        while (true) {
            int slot = n[i + 1];
            int next;
            if (slot >= 0) {
                next = n[i + 2] + less(numbers[at + slot], n[i]);
            } else {
                next = n[i + 2] + (goesLeft(numbers[at + ~slot], n[i], n[i + 3]) ? NODE : 0);
            }
            if (next == i) {
                return i;
            }
            i = next;
        }
    }

    /** Of a node with a set: bit 0 of its fourth number says where members go, bit 1 where the missing go. */
    private boolean goesLeft(int category, int set, int about) {
        if (category == Slots.MISSING_CATEGORY) {
            return (about & 2) != 0;
        }
        int word = category >> 5;
        boolean member = category >= 0 && word < sets[set] && (sets[set + 1 + word] >>> (category & 31) & 1) != 0;
        return member == ((about & 1) != 0);
    }

    private void arrive(int node, Sums sums, int sum, Rows raw, int row) {
        int leaf = nodes[node + 3];
        if (singles != null) {
            for (int w = 0; w < width; w++) {
                sums.singles[sum + w] += singles[leaf * width + w];
            }
        } else {
            LinearLeaf model = linear == null ? null : linear[leaf];
            if (model == null) {
                for (int w = 0; w < width; w++) {
                    sums.doubles[sum + w] += doubles[leaf * width + w];
                }
            } else {
                sums.doubles[sum] += value(model, doubles[leaf], raw, row);
            }
        }
    }

    private static double value(LinearLeaf model, double otherwise, Rows raw, int row) {
        double sum = model.constant();
        int[] features = model.features();
        double[] coefficients = model.coefficients();
        for (int i = 0; i < features.length; i++) {
            double x = raw.value(row, features[i]);
            if (Double.isNaN(x)) {
                return otherwise;
            }
            sum += coefficients[i] * (Math.abs(x) <= Slots.ZERO ? 0 : x);
        }
        return sum;
    }
}
