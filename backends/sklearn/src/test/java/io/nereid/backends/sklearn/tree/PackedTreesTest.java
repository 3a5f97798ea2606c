// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.tree;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.backends.sklearn.tree.PackedTrees.TreeNodes;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.function.IntToDoubleFunction;
import org.junit.jupiter.api.Test;

/** Rows reach the leaves that a plain walk reaches: random trees, and values at, beside and far from their thresholds. */
class PackedTreesTest {
    private static final int COLUMNS = 5;
    private static final double[] ODD = {
        0, -0.0, Double.NaN, Double.POSITIVE_INFINITY, Double.NEGATIVE_INFINITY, 1e30, -1e30, 1e-30
    };

    @Test
    void leavesOfFloats() {
        Random random = new Random(1);
        List<TreeNodes> trees = trees(random);
        PackedTrees packed = PackedTrees.ofFloats(trees);
        for (int rows : new int[] {1, 7, PackedTrees.ROWS}) {
            float[] x = new float[(rows + 1) * COLUMNS];
            for (int i = 0; i < x.length; i++) {
                x[i] = (float) value(random, trees);
            }
            int[] numbers = new int[PackedTrees.ROWS * packed.stride()];
            packed.encode(x, COLUMNS, COLUMNS, rows, numbers);
            check(trees, packed, numbers, rows, i -> x[COLUMNS + i]);
        }
    }

    @Test
    void leavesOfDoubles() {
        Random random = new Random(2);
        List<TreeNodes> trees = trees(random);
        PackedTrees packed = PackedTrees.ofDoubles(trees);
        for (int rows : new int[] {1, 7, PackedTrees.ROWS}) {
            double[] x = new double[(rows + 1) * COLUMNS];
            for (int i = 0; i < x.length; i++) {
                x[i] = value(random, trees);
            }
            int[] numbers = new int[PackedTrees.ROWS * packed.stride()];
            packed.encode(x, COLUMNS, COLUMNS, rows, numbers);
            check(trees, packed, numbers, rows, i -> x[COLUMNS + i]);
        }
    }

    @Test
    void treesOfASingleLeaf() {
        PackedTrees packed = PackedTrees.ofFloats(List.of(leaf()));
        int[] leaves = new int[PackedTrees.ROWS];
        Arrays.fill(leaves, 7);
        packed.encode(new float[COLUMNS], 0, COLUMNS, 1, new int[0]);
        assertThat(packed.leaves(0, new int[0], 1, leaves)).isTrue();
        assertThat(leaves[0]).isZero();
    }

    @Test
    void aTreeThatIsTooLargeIsLeftOut() {
        // A complete tree of 17 levels: the last level's children stand more than 65,535 nodes behind their parents.
        int inner = (1 << 17) - 1;
        int[] left = new int[2 * inner + 1];
        int[] right = new int[left.length];
        for (int i = 0; i < left.length; i++) {
            left[i] = i < inner ? 2 * i + 1 : -1;
            right[i] = i < inner ? 2 * i + 2 : -1;
        }
        PackedTrees packed = PackedTrees.ofFloats(List.of(
                new TreeNodes(left, right, new int[left.length], new double[left.length], new boolean[left.length]),
                leaf()));
        int[] leaves = new int[PackedTrees.ROWS];
        int[] numbers = new int[PackedTrees.ROWS * packed.stride()];
        assertThat(packed.leaves(0, numbers, 1, leaves)).isFalse();
        assertThat(packed.leaves(1, numbers, 1, leaves)).isTrue();
    }

    private static TreeNodes leaf() {
        return new TreeNodes(new int[] {-1}, new int[] {-1}, new int[] {-2}, new double[] {-2}, new boolean[1]);
    }

    private static void check(
            List<TreeNodes> trees, PackedTrees packed, int[] numbers, int rows, IntToDoubleFunction values) {
        int[] leaves = new int[PackedTrees.ROWS];
        for (int t = 0; t < trees.size(); t++) {
            assertThat(packed.leaves(t, numbers, rows, leaves)).isTrue();
            for (int row = 0; row < rows; row++) {
                assertThat(leaves[row])
                        .as("tree %s, row %s of %s", t, row, rows)
                        .isEqualTo(walk(trees.get(t), row * COLUMNS, values));
            }
        }
    }

    private static int walk(TreeNodes tree, int from, IntToDoubleFunction values) {
        int node = 0;
        while (tree.left()[node] >= 0) {
            double x = values.applyAsDouble(from + tree.feature()[node]);
            boolean left = Double.isNaN(x) ? tree.missingLeft()[node] : x <= tree.threshold()[node];
            node = left ? tree.left()[node] : tree.right()[node];
        }
        return node;
    }

    private static double value(Random random, List<TreeNodes> trees) {
        TreeNodes tree = trees.get(random.nextInt(trees.size()));
        double threshold = tree.threshold()[random.nextInt(tree.threshold().length)];
        return switch (random.nextInt(6)) {
            case 0 -> threshold;
            case 1 -> Math.nextUp(threshold);
            case 2 -> Math.nextDown(threshold);
            case 3 -> Math.nextUp((float) threshold);
            case 4 -> ODD[random.nextInt(ODD.length)];
            default -> random.nextGaussian();
        };
    }

    private static List<TreeNodes> trees(Random random) {
        List<TreeNodes> trees = new ArrayList<>(List.of(leaf()));
        for (int t = 0; t < 20; t++) {
            int inner = 1 + random.nextInt(60);
            int count = 2 * inner + 1;
            int[] left = new int[count];
            int[] right = new int[count];
            int[] feature = new int[count];
            double[] threshold = new double[count];
            boolean[] missingLeft = new boolean[count];
            Arrays.fill(left, -1);
            Arrays.fill(right, -1);
            // A random leaf among those that exist becomes an inner node with two children behind all others.
            List<Integer> open = new ArrayList<>(List.of(0));
            for (int next = 1; next < count; next += 2) {
                int node = open.remove(random.nextInt(open.size()));
                left[node] = next;
                right[node] = next + 1;
                feature[node] = random.nextInt(COLUMNS);
                threshold[node] = random.nextInt(8) == 0 ? ODD[random.nextInt(2)] : random.nextGaussian();
                missingLeft[node] = random.nextBoolean();
                open.add(next);
                open.add(next + 1);
            }
            trees.add(new TreeNodes(left, right, feature, threshold, missingLeft));
        }
        return trees;
    }
}
