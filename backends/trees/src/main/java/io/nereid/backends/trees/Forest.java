// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.trees;

import io.nereid.backends.trees.ParsedTree.LinearLeaf;
import org.jspecify.annotations.Nullable;

/**
 * Trees in arrays, in one of three ways, all of them breadth first with the left child behind the right one. A walk takes
 * as many steps as the tree is deep, without a branch in them, so that walks of several rows overlap.
 *
 * <ul>
 *   <li>A flat tree that only compares is filled up to an even one, whose children need not be looked up: node n has 2n and
 *       2n + 1. A long for each node: threshold (32 bits) and slot.
 *   <li>A deeper tree that only compares has a long for each node and leaf: threshold (32 bits), steps to the right child
 *       (16) and slot (16). A leaf is its own child whatever the row.
 *   <li>All others, those with sets of categories, vectors or linear models at the leaves, have four numbers for each node,
 *       and are walked row by row.
 * </ul>
 *
 * Immutable.
 */
final class Forest {
    /** Numbers of a node of a tree that is walked row by row: threshold or set, slot, place of the right child, and a leaf's number. */
    static final int NODE = 4;

    /** Rows that are walked at once: one walk waits for memory most of the time. */
    static final int LANES = 8;

    /** Even trees are at most so deep: a deeper one has many more nodes than it needs. */
    static final int MOST_EVEN = 8;

    private final Slots slots;
    private final Tree[] trees;
    private final Even[] evens;
    private final Packed packed;
    private final Loose loose;

    Forest(Slots slots, Tree[] trees, Even[] evens, Packed packed, Loose loose) {
        this.slots = slots;
        this.trees = trees;
        this.evens = evens;
        this.packed = packed;
        this.loose = loose;
    }

    /**
     * One tree.
     *
     * @param kind how it lies
     * @param root where it begins, or which of the even trees it is
     * @param depth steps from the root to the farthest leaf
     * @param group the output it adds to
     */
    record Tree(Kind kind, int root, int depth, int group) {}

    /** How a tree lies. */
    enum Kind {
        EVEN,
        PACKED,
        LOOSE
    }

    /**
     * A tree of which all leaves are equally deep.
     *
     * @param nodes the root is node 1
     * @param singles by leaf; null when values are doubles
     * @param doubles likewise
     */
    record Even(long[] nodes, float @Nullable [] singles, double[] doubles) {}

    /**
     * Deeper trees that only compare.
     *
     * @param nodes by node
     * @param singles by node the value of a leaf; null when values are doubles
     * @param doubles likewise
     */
    record Packed(long[] nodes, float @Nullable [] singles, double[] doubles) {}

    /**
     * All other trees. Of a node with a set of categories the slot is its complement, and bit 0 of the fourth number says
     * where members go, bit 1 where the missing go.
     *
     * @param nodes {@link #NODE} numbers each
     * @param sets of categories: the number of words, then the words
     * @param values by leaf, {@code width} each
     * @param width values of a leaf
     * @param linear by leaf; null when there is none
     */
    record Loose(
            int[] nodes,
            int[] sets,
            double[] values,
            int width,
            @Nullable LinearLeaf @Nullable [] linear) {}

    Slots slots() {
        return slots;
    }

    /** Steps of one row. */
    long steps() {
        long sum = 0;
        for (Tree tree : trees) {
            sum += tree.depth + 1;
        }
        return sum;
    }

    /**
     * Adds every tree to the sums of some rows, in the order of the trees.
     *
     * @param numbers the encoded rows, {@code slots().size()} each, with room for a multiple of {@link #LANES} rows
     * @param rows how many
     * @param sums by row and output, with room likewise
     * @param outputs how many
     * @param raw the rows themselves
     * @param first the first row in {@code raw}
     */
    void add(int[] numbers, int rows, Sums sums, int outputs, Rows raw, int first) {
        int stride = slots.size();
        // Walking eight rows takes the time of about two, so that a few rows may be joined by what is left of others.
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
            Even tree, int depth, int[] numbers, int a, int stride, Sums sums, int sum, int outputs) {
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

    private static void walk(Even tree, int depth, int[] numbers, int at, Sums sums, int sum) {
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

    /** 1 when the number is less than a node's threshold, else 0. */
    private static int less(int number, long node) {
        return (int) ((number - (node >> 32)) >>> 63);
    }

    private void walkEight(int[] numbers, int a, int stride, Tree tree, Sums sums, int sum, int outputs) {
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

    /** How far it is from a node to the child of a row: one more to the left one, when the number is less. */
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

    private void arrive(int node, Sums sums, int sum) {
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

    private boolean goesLeft(int category, int set, int about) {
        if (category == Slots.MISSING_CATEGORY) {
            return (about & 2) != 0;
        }
        int[] sets = loose.sets;
        int word = category >> 5;
        boolean member = category >= 0 && word < sets[set] && (sets[set + 1 + word] >>> (category & 31) & 1) != 0;
        return member == ((about & 1) != 0);
    }

    private void arriveLoose(int leaf, Sums sums, int sum, Rows raw, int row) {
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
