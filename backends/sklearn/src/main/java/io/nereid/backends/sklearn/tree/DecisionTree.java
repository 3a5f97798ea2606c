// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.tree;

import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.pickle.NdArray;
import io.nereid.backends.sklearn.pickle.PythonValues;
import io.nereid.backends.sklearn.pickle.UnsupportedModel;
import io.nereid.backends.sklearn.tree.PackedTrees.TreeNodes;

/**
 * A decision tree ({@code sklearn.tree._tree.Tree}) as arrays of nodes. Inputs are converted to 32-bit floats before
 * they are compared with thresholds, as scikit-learn does; otherwise rows near a threshold would take the other branch.
 * Immutable.
 */
public final class DecisionTree {
    private final int[] left;
    private final int[] right;
    private final int[] feature;
    private final double[] threshold;
    private final boolean[] missingLeft;
    private final double[] values;
    private final int width;
    private final int outputs;
    private final int features;

    private DecisionTree(EstimatorAttributes f, int features, NdArray nodes, NdArray given) {
        this.features = features;
        left = nodes.ints("left_child");
        right = nodes.ints("right_child");
        feature = nodes.ints("feature");
        threshold = nodes.doubles("threshold");
        missingLeft = new boolean[left.length];
        if (nodes.hasField("missing_go_to_left")) {
            int[] flags = nodes.ints("missing_go_to_left");
            for (int i = 0; i < flags.length; i++) {
                missingLeft[i] = flags[i] != 0;
            }
        }
        values = given.doubles();
        width = left.length == 0 ? 0 : values.length / left.length;
        outputs = given.rank() == 3 ? given.dim(1) : 1;
        if (left.length == 0 || width == 0 || values.length != width * left.length) {
            throw UnsupportedModel.corrupt(f.path() + " has a tree without nodes or values");
        }
        for (int i = 0; i < left.length; i++) {
            boolean leaf = left[i] == -1;
            // Children stand after their parents, so that a walk from the root always ends.
            if (!leaf
                    && (left[i] <= i
                            || right[i] <= i
                            || left[i] >= left.length
                            || right[i] >= left.length
                            || feature[i] < 0
                            || feature[i] >= features)) {
                throw UnsupportedModel.corrupt(f.path() + " has a tree whose node " + i + " has invalid children");
            }
        }
    }

    private DecisionTree(DecisionTree of, int[] feature, int features) {
        this.left = of.left;
        this.right = of.right;
        this.feature = feature;
        this.threshold = of.threshold;
        this.missingLeft = of.missingLeft;
        this.values = of.values;
        this.width = of.width;
        this.outputs = of.outputs;
        this.features = features;
    }

    /**
     * Returns the tree over the columns of a whole table, of which it was trained on some.
     *
     * @param columns by feature of this tree, its column
     * @param all the columns of the table
     */
    public DecisionTree over(int[] columns, int all) {
        int[] moved = new int[feature.length];
        for (int i = 0; i < moved.length; i++) {
            moved[i] = left[i] == -1 ? 0 : columns[feature[i]];
        }
        return new DecisionTree(this, moved, all);
    }

    /** The tree of a fitted tree estimator, its attribute {@code tree_}. */
    public static DecisionTree of(EstimatorAttributes estimator) {
        return ofTree(new EstimatorAttributes(estimator.object("tree_")));
    }

    private static DecisionTree ofTree(EstimatorAttributes tree) {
        if (!tree.type().equals("Tree") || tree.object().arguments().isEmpty()) {
            throw UnsupportedModel.unsupported(tree.path() + " is not a supported tree");
        }
        int features = (int) PythonValues.number(tree.object().arguments().get(0));
        return new DecisionTree(tree, features, tree.array("nodes"), tree.array("values"));
    }

    public int features() {
        return features;
    }

    /** The number of values at each leaf: classes, or outputs. */
    public int width() {
        return width;
    }

    public int outputs() {
        return outputs;
    }

    int nodes() {
        return left.length;
    }

    /** The leaf that the row at {@code from} reaches. */
    public int leaf(float[] x, int from) {
        int node = 0;
        while (left[node] != -1) {
            float v = x[from + feature[node]];
            boolean goLeft = v <= threshold[node] || (missingLeft[node] && Float.isNaN(v));
            node = goLeft ? left[node] : right[node];
        }
        return node;
    }

    /** The tree's arrays, to be packed. */
    TreeNodes nodesToPack() {
        return new TreeNodes(left, right, feature, threshold, missingLeft);
    }

    public double value(int leaf, int i) {
        return values[leaf * width + i];
    }

    /** The number of training samples at each node; for isolation forests. */
    public static double[] samples(EstimatorAttributes estimator) {
        return new EstimatorAttributes(estimator.object("tree_")).array("nodes").doubles("n_node_samples");
    }

    /** The depth of each node, 0 for the root. */
    public int[] depths() {
        int[] depths = new int[left.length];
        for (int i = 0; i < left.length; i++) {
            if (left[i] != -1) {
                depths[left[i]] = depths[i] + 1;
                depths[right[i]] = depths[i] + 1;
            }
        }
        return depths;
    }

    /** The table's numbers as the 32-bit floats that trees compare; NaN is a missing value. */
    public static float[] floats(String who, DataTable table) {
        double[] x = table.numbers(who);
        float[] floats = new float[x.length];
        for (int i = 0; i < x.length; i++) {
            floats[i] = (float) x[i];
            if (Float.isInfinite(floats[i])) {
                throw io.nereid.base.ServingException.invalidArgument(
                        who + " was given " + x[i] + " (expected: values that fit 32-bit floats)");
            }
        }
        return floats;
    }
}
