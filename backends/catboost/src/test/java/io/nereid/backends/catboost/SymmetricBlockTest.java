// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.catboost;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Rows get the same sums in a block as one by one, bit by bit: random trees, and values at, beside and far from their borders. */
class SymmetricBlockTest {
    private static final float[] ODD = {
        0f,
        -0f,
        Float.NaN,
        Float.POSITIVE_INFINITY,
        Float.NEGATIVE_INFINITY,
        Float.MAX_VALUE,
        -Float.MAX_VALUE,
        Float.MIN_VALUE
    };

    @ParameterizedTest
    @ValueSource(ints = {1, 3})
    void sumsAreThoseOfTheRowsAlone(int outputs) {
        Random random = new Random(outputs);
        TreeEnsemble ensemble = ensemble(random, outputs);
        SymmetricBlock block = new SymmetricBlock(ensemble, SymmetricBlock.borders(ensemble));
        // The second filling is smaller: what the first has left must not matter.
        for (int rows : new int[] {block.rows(), 11}) {
            float[][] numbers = new float[rows][];
            int[][] hashes = new int[rows][];
            for (int row = 0; row < rows; row++) {
                numbers[row] = numbers(random, ensemble.floats());
                hashes[row] = new int[] {random.nextInt(3)};
                block.set(row, numbers[row].clone(), hashes[row]);
            }
            block.sum(rows);
            double[] own = new double[outputs];
            double[] alone = new double[outputs];
            int[] bins = new int[ensemble.slots()];
            for (int row = 0; row < rows; row++) {
                block.copySums(row, own);
                ensemble.bin(numbers[row], hashes[row], bins);
                ensemble.sum(bins, alone);
                assertThat(own)
                        .as("row %s: %s", row, Arrays.toString(numbers[row]))
                        .isEqualTo(alone);
            }
        }
    }

    private static float[] numbers(Random random, List<FeatureColumn> columns) {
        float[] numbers = new float[columns.size()];
        for (int i = 0; i < numbers.length; i++) {
            float[] borders = columns.get(i).borders();
            float border = borders[random.nextInt(borders.length)];
            numbers[i] = switch (random.nextInt(5)) {
                case 0 -> border;
                case 1 -> Math.nextUp(border);
                case 2 -> Math.nextDown(border);
                case 3 -> ODD[random.nextInt(ODD.length)];
                default -> (float) random.nextGaussian();
            };
        }
        return numbers;
    }

    private static TreeEnsemble ensemble(Random random, int outputs) {
        List<FeatureColumn> floats = new ArrayList<>();
        for (int i = 0; i < 5; i++) {
            float[] borders = new float[1 + random.nextInt(6)];
            for (int b = 0; b < borders.length; b++) {
                borders[b] = (float) random.nextGaussian();
            }
            borders[0] = i == 0 ? 0f : i == 1 ? -Float.MAX_VALUE : i == 2 ? Float.MAX_VALUE : borders[0];
            Arrays.sort(borders);
            floats.add(new FeatureColumn(
                    "f" + i, i, false, borders, i % 2 == 0 ? FeatureColumn.Nan.ABOVE : FeatureColumn.Nan.BELOW));
        }
        List<TreeEnsemble.Exact> exact = List.of(new TreeEnsemble.Exact(0, 1), new TreeEnsemble.Exact(0, 2));
        int trees = 30;
        int[] starts = new int[trees + 1];
        int[] leafStarts = new int[trees];
        List<Integer> slots = new ArrayList<>();
        List<Integer> bins = new ArrayList<>();
        int leaves = 0;
        for (int t = 0; t < trees; t++) {
            starts[t] = slots.size();
            leafStarts[t] = leaves;
            int depth = random.nextInt(7);
            for (int level = 0; level < depth; level++) {
                int slot = random.nextInt(floats.size() + exact.size());
                slots.add(slot);
                // Bins beyond the borders, too: a file may hold them.
                bins.add(slot < floats.size() ? random.nextInt(floats.get(slot).borders().length + 2) - 1 : 0);
            }
            leaves += 1 << depth;
        }
        starts[trees] = slots.size();
        double[] values = random.doubles((long) leaves * outputs).toArray();
        return new TreeEnsemble(
                floats,
                1,
                exact,
                List.of(),
                slots.stream().mapToInt(i -> i).toArray(),
                bins.stream().mapToInt(i -> i).toArray(),
                starts,
                leafStarts,
                new int[0],
                new int[0],
                values,
                outputs,
                0.5,
                random.doubles(outputs).toArray());
    }
}
