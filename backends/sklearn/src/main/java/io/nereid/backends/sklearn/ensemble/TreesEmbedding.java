// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.ensemble;

import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.PredictMethod;
import io.nereid.backends.sklearn.estimator.Transformer;
import io.nereid.backends.sklearn.pickle.NdArray;
import io.nereid.backends.sklearn.pickle.UnsupportedModel;
import io.nereid.backends.sklearn.tree.DecisionTree;
import java.util.Arrays;
import java.util.List;

/** {@code RandomTreesEmbedding}: a column for each leaf of each tree, 1 where the row reaches it. Immutable. */
public final class TreesEmbedding extends Transformer {
    private final List<DecisionTree> trees;
    /** By tree and node, the column of the leaf; -1 for other nodes. */
    private final int[][] columns;

    private TreesEmbedding(EstimatorAttributes f, List<DecisionTree> trees, int[][] columns, int width) {
        super(f.type(), trees.get(0).features(), width);
        this.trees = trees;
        this.columns = columns;
    }

    public static TreesEmbedding of(EstimatorAttributes f) {
        List<DecisionTree> trees = RandomForest.trees(f);
        EstimatorAttributes encoder = new EstimatorAttributes(f.object("one_hot_encoder_"));
        List<Object> leaves = encoder.list("categories_");
        if (leaves.size() != trees.size()) {
            throw UnsupportedModel.corrupt(
                    f.path() + " has leaves of " + leaves.size() + " trees (expected: " + trees.size() + ")");
        }
        int[][] columns = new int[trees.size()][];
        int width = 0;
        for (int t = 0; t < columns.length; t++) {
            DecisionTree tree = trees.get(t);
            columns[t] = new int[tree.depths().length];
            Arrays.fill(columns[t], -1);
            int[] known = leaves.get(t) instanceof NdArray a ? a.ints() : new int[0];
            for (int leaf : known) {
                if (leaf < 0 || leaf >= columns[t].length) {
                    throw UnsupportedModel.corrupt(
                            f.path() + " has leaf " + leaf + " (expected: 0 to " + (columns[t].length - 1) + ")");
                }
                columns[t][leaf] = width++;
            }
        }
        return new TreesEmbedding(f, trees, columns, width);
    }

    @Override
    public DataTable transform(DataTable table) {
        float[] x = DecisionTree.floats(type(), table);
        int width = width(PredictMethod.TRANSFORM);
        DataTable result = DataTable.of(table.rows(), width);
        for (int r = 0; r < table.rows(); r++) {
            for (int t = 0; t < columns.length; t++) {
                int column = columns[t][trees.get(t).leaf(x, r * table.columns())];
                if (column >= 0) {
                    result.values()[r * width + column] = 1;
                }
            }
        }
        return result;
    }
}
