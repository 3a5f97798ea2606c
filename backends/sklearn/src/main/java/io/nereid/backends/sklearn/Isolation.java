// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn;

import io.nereid.tensor.DataType;
import java.util.ArrayList;
import java.util.List;

/**
 * {@code IsolationForest}: scores anomalies. Random splits isolate an outlier after few steps, so a short average path
 * from root to leaf means an abnormal row. Immutable.
 */
final class Isolation extends Estimator {
    private static final double EULER = 0.5772156649015329;

    private final List<Tree> trees = new ArrayList<>();
    private final List<int[]> columns = new ArrayList<>();
    /** The path length of each leaf, by tree: its depth, plus the expected depth of a tree over its samples. */
    private final List<double[]> paths = new ArrayList<>();

    private final double scale;
    private final double offset;

    Isolation(Fields f) {
        super(f.type(), f.features());
        List<Object> given = f.list("estimators_features_");
        for (Object each : f.list("estimators_")) {
            Fields one = new Fields(Fields.asObject(each));
            Tree tree = Tree.of(one);
            int[] chosen = trees.size() < given.size() && given.get(trees.size()) instanceof NdArray a
                    ? Steps.within(a.ints(), f.features())
                    : new int[0];
            if (chosen.length != tree.features()) {
                throw Refusal.corrupt(f.path() + " has a tree whose number of columns does not match");
            }
            double[] samples = Tree.samples(one);
            int[] depths = tree.depths();
            double[] lengths = new double[depths.length];
            for (int i = 0; i < lengths.length; i++) {
                lengths[i] = depths[i] + usual(samples[i]);
            }
            trees.add(tree);
            columns.add(chosen);
            paths.add(lengths);
        }
        double max = f.has("_max_samples") ? f.number("_max_samples") : f.number("max_samples_");
        scale = trees.size() * usual(max);
        offset = f.number("offset_", -0.5);
    }

    /** c(n) of the paper: the average path length of a search tree over {@code n} samples, which normalises scores. */
    private static double usual(double n) {
        return n <= 1 ? 0 : n == 2 ? 1 : 2 * (Math.log(n - 1) + EULER) - 2 * (n - 1) / n;
    }

    @Override
    List<Method> methods() {
        return List.of(Method.PREDICT, Method.DECISION_FUNCTION, Method.SCORE_SAMPLES);
    }

    @Override
    int width(Method method) {
        return 0;
    }

    @Override
    DataType type(Method method) {
        return method == Method.PREDICT ? DataType.INT64 : DataType.FP64;
    }

    @Override
    Table apply(Method method, Table table) {
        double[] result = new double[table.rows()];
        for (int t = 0; t < trees.size(); t++) {
            Table part = table.select(columns.get(t));
            float[] x = Tree.floats(type(), part);
            for (int r = 0; r < result.length; r++) {
                result[r] += paths.get(t)[trees.get(t).leaf(x, r * part.columns())];
            }
        }
        for (int r = 0; r < result.length; r++) {
            double score = -Math.pow(2, scale == 0 ? -1 : -result[r] / scale);
            double decision = score - offset;
            result[r] = method == Method.SCORE_SAMPLES
                    ? score
                    : method == Method.DECISION_FUNCTION ? decision : decision < 0 ? -1 : 1;
        }
        return Table.column(result);
    }
}
