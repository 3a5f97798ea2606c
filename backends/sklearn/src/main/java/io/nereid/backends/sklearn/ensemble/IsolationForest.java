// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.ensemble;

import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.Estimator;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.MatrixOps;
import io.nereid.backends.sklearn.estimator.PredictMethod;
import io.nereid.backends.sklearn.pickle.NdArray;
import io.nereid.backends.sklearn.pickle.UnsupportedModel;
import io.nereid.backends.sklearn.tree.DecisionTree;
import io.nereid.backends.sklearn.tree.DecisionTrees;
import io.nereid.tensor.DataType;
import java.util.ArrayList;
import java.util.List;

/**
 * {@code IsolationForest}: scores anomalies. Random splits isolate an outlier after few steps, so a short average path
 * from root to leaf means an abnormal row. Immutable.
 */
public final class IsolationForest extends Estimator {
    private static final double EULER = 0.5772156649015329;

    private final DecisionTrees trees;
    /** The path length of each leaf, by tree: its depth, plus the expected depth of a tree over its samples. */
    private final List<double[]> paths = new ArrayList<>();

    private final double scale;
    private final double offset;

    public IsolationForest(EstimatorAttributes f) {
        super(f.type(), f.features());
        List<Object> given = f.list("estimators_features_");
        List<DecisionTree> all = new ArrayList<>();
        for (Object each : f.list("estimators_")) {
            EstimatorAttributes one = new EstimatorAttributes(EstimatorAttributes.asObject(each));
            DecisionTree tree = DecisionTree.of(one);
            int[] chosen = all.size() < given.size() && given.get(all.size()) instanceof NdArray a
                    ? MatrixOps.within(a.ints(), f.features())
                    : new int[0];
            if (chosen.length != tree.features()) {
                throw UnsupportedModel.corrupt(f.path() + " has a tree whose number of columns does not match");
            }
            double[] samples = DecisionTree.samples(one);
            int[] depths = tree.depths();
            double[] lengths = new double[depths.length];
            for (int i = 0; i < lengths.length; i++) {
                lengths[i] = depths[i] + usual(samples[i]);
            }
            all.add(tree.over(chosen, f.features()));
            paths.add(lengths);
        }
        trees = new DecisionTrees(all);
        double max = f.has("_max_samples") ? f.number("_max_samples") : f.number("max_samples_");
        scale = all.size() * usual(max);
        offset = f.number("offset_", -0.5);
    }

    /** c(n) of the paper: the average path length of a search tree over {@code n} samples, which normalises scores. */
    private static double usual(double n) {
        return n <= 1 ? 0 : n == 2 ? 1 : 2 * (Math.log(n - 1) + EULER) - 2 * (n - 1) / n;
    }

    @Override
    public List<PredictMethod> methods() {
        return List.of(PredictMethod.PREDICT, PredictMethod.DECISION_FUNCTION, PredictMethod.SCORE_SAMPLES);
    }

    @Override
    public int width(PredictMethod method) {
        return 0;
    }

    @Override
    public DataType type(PredictMethod method) {
        return method == PredictMethod.PREDICT ? DataType.INT64 : DataType.FP64;
    }

    @Override
    public DataTable apply(PredictMethod method, DataTable table) {
        double[] result = new double[table.rows()];
        float[] x = DecisionTree.floats(type(), table);
        trees.forEachLeaf(x, table.rows(), table.columns(), (index, first, rows, leaves) -> {
            double[] lengths = paths.get(index);
            for (int r = 0; r < rows; r++) {
                result[first + r] += lengths[leaves[r]];
            }
        });
        for (int r = 0; r < result.length; r++) {
            double score = -Math.pow(2, scale == 0 ? -1 : -result[r] / scale);
            double decision = score - offset;
            result[r] = method == PredictMethod.SCORE_SAMPLES
                    ? score
                    : method == PredictMethod.DECISION_FUNCTION ? decision : decision < 0 ? -1 : 1;
        }
        return DataTable.column(result);
    }
}
