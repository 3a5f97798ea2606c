// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.tree;

import org.jspecify.annotations.Nullable;

/**
 * One tree with numeric splits in an array, in breadth-first order, with the left child after the right one. A walk has no data-dependent
 * branch, so that the processor overlaps those of {@link #LANES} rows instead of waiting for each load. Immutable.
 */
final class PackedTree {
    static final int LANES = 8;

    /** By node in breadth-first order: the threshold (32 bits), the offset to the right child (16), the number's index (16). */
    private final long[] nodes;
    /** By node, its index in the tree that was packed. */
    private final int[] origins;

    private PackedTree(long[] nodes, int[] origins) {
        this.nodes = nodes;
        this.origins = origins;
    }

    /**
     * Packs a tree.
     *
     * @param left by node its left child, after the node itself; -1 for a leaf. Node 0 is the root
     * @param right by node its right child, likewise
     * @param numberOf by inner node the index of the number that it compares
     * @param thresholds by inner node: a row goes left if its number is less than this
     * @return null if the tree is too large for the layout
     */
    static @Nullable PackedTree of(int[] left, int[] right, int[] numberOf, int[] thresholds) {
        int[] origins = new int[left.length];
        long[] nodes = new long[left.length];
        int made = 1;
        for (int at = 0; at < made; at++) {
            int node = origins[at];
            if (left[node] < 0) {
                // A leaf is its own child for every row: no number is less than the least.
                nodes[at] = (long) Integer.MIN_VALUE << 32;
                continue;
            }
            int offset = made - at;
            if (offset > Character.MAX_VALUE || numberOf[node] > Character.MAX_VALUE || made + 2 > nodes.length) {
                return null;
            }
            nodes[at] = (long) thresholds[node] << 32 | (long) offset << 16 | numberOf[node];
            origins[made++] = right[node];
            origins[made++] = left[node];
        }
        return new PackedTree(nodes, origins);
    }

    /**
     * Finds the leaves of some rows.
     *
     * @param numbers the rows one after the other, with capacity for a multiple of {@link #LANES} rows; what is behind the last one is
     *     read and does not matter
     * @param rows the number of rows
     * @param stride the numbers of a row
     * @param leaves gets by row the index of its leaf in the tree that was packed; with the same capacity
     */
    void leaves(int[] numbers, int rows, int stride, int[] leaves) {
        for (int row = 0; row < rows; row += LANES) {
            walkEight(numbers, row * stride, stride, leaves, row);
        }
    }

    private void walkEight(int[] numbers, int a, int stride, int[] leaves, int to) {
        long[] n = nodes;
        int b = a + stride;
        int c = b + stride;
        int d = c + stride;
        int e = d + stride;
        int f = e + stride;
        int g = f + stride;
        int h = g + stride;
        int i0 = 0;
        int i1 = 0;
        int i2 = 0;
        int i3 = 0;
        int i4 = 0;
        int i5 = 0;
        int i6 = 0;
        int i7 = 0;
        int moved;
        // A row that has reached its leaf stays there; the loop ends when no row moved.
        do {
            long at0 = n[i0];
            int by0 = step(at0, numbers[a + (char) at0]);
            i0 += by0;
            long at1 = n[i1];
            int by1 = step(at1, numbers[b + (char) at1]);
            i1 += by1;
            long at2 = n[i2];
            int by2 = step(at2, numbers[c + (char) at2]);
            i2 += by2;
            long at3 = n[i3];
            int by3 = step(at3, numbers[d + (char) at3]);
            i3 += by3;
            long at4 = n[i4];
            int by4 = step(at4, numbers[e + (char) at4]);
            i4 += by4;
            long at5 = n[i5];
            int by5 = step(at5, numbers[f + (char) at5]);
            i5 += by5;
            long at6 = n[i6];
            int by6 = step(at6, numbers[g + (char) at6]);
            i6 += by6;
            long at7 = n[i7];
            int by7 = step(at7, numbers[h + (char) at7]);
            i7 += by7;
            moved = by0 | by1 | by2 | by3 | by4 | by5 | by6 | by7;
        } while (moved != 0);
        int[] of = origins;
        leaves[to] = of[i0];
        leaves[to + 1] = of[i1];
        leaves[to + 2] = of[i2];
        leaves[to + 3] = of[i3];
        leaves[to + 4] = of[i4];
        leaves[to + 5] = of[i5];
        leaves[to + 6] = of[i6];
        leaves[to + 7] = of[i7];
    }

    /** The offset from a node to the child that the row goes to: the sign of the difference to the threshold, without a branch. */
    private static int step(long node, int number) {
        return ((int) node >>> 16) + (int) ((number - (node >> 32)) >>> 63);
    }
}
