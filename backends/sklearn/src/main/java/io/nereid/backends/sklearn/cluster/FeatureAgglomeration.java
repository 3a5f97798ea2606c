// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.cluster;

import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.Transformer;
import io.nereid.backends.sklearn.pickle.PyGlobal;
import io.nereid.backends.sklearn.pickle.UnsupportedModel;
import java.util.Arrays;

/** {@code FeatureAgglomeration}: columns of one cluster become one, by a function of numpy. Immutable. */
public final class FeatureAgglomeration extends Transformer {
    private enum Pooling {
        MEAN,
        MAX,
        MIN,
        MEDIAN,
        SUM
    }

    /** By cluster, its columns. */
    private final int[][] clusters;

    private final Pooling pooling;

    private FeatureAgglomeration(EstimatorAttributes f, int features, int[][] clusters) {
        super(f.type(), features, clusters.length);
        this.clusters = clusters;
        String function = f.any("pooling_func") instanceof PyGlobal g && g.isOf("numpy") ? g.name() : "?";
        pooling = switch (function) {
            case "mean" -> Pooling.MEAN;
            case "max", "amax" -> Pooling.MAX;
            case "min", "amin" -> Pooling.MIN;
            case "median" -> Pooling.MEDIAN;
            case "sum" -> Pooling.SUM;
            default -> throw f.unsupported("pooling_func");
        };
    }

    public static FeatureAgglomeration of(EstimatorAttributes f) {
        int[] labels = f.array("labels_").ints();
        int count = Arrays.stream(labels).max().orElse(-1) + 1;
        if (count < 1 || count > labels.length) {
            throw UnsupportedModel.corrupt(f.path() + " has " + count + " clusters of " + labels.length + " columns");
        }
        int[] sizes = new int[count];
        for (int label : labels) {
            if (label < 0) {
                throw UnsupportedModel.corrupt(f.path() + " has cluster " + label + " (expected: at least 0)");
            }
            sizes[label]++;
        }
        int[][] clusters = new int[count][];
        for (int c = 0; c < count; c++) {
            clusters[c] = new int[sizes[c]];
            if (sizes[c] == 0) {
                throw UnsupportedModel.corrupt(f.path() + " has no column in cluster " + c);
            }
        }
        int[] next = new int[count];
        for (int i = 0; i < labels.length; i++) {
            clusters[labels[i]][next[labels[i]]++] = i;
        }
        return new FeatureAgglomeration(f, labels.length, clusters);
    }

    @Override
    public boolean quick() {
        return true;
    }

    @Override
    public DataTable transform(DataTable table) {
        double[] x = table.finite(type());
        DataTable result = DataTable.of(table.rows(), clusters.length);
        double[] values = new double[table.columns()];
        for (int r = 0; r < table.rows(); r++) {
            for (int c = 0; c < clusters.length; c++) {
                for (int i = 0; i < clusters[c].length; i++) {
                    values[i] = x[r * table.columns() + clusters[c][i]];
                }
                result.values()[r * clusters.length + c] = pool(values, clusters[c].length);
            }
        }
        return result;
    }

    private double pool(double[] values, int count) {
        if (pooling == Pooling.MEDIAN) {
            Arrays.sort(values, 0, count);
            return (values[(count - 1) / 2] + values[count / 2]) / 2;
        }
        double result = values[0];
        for (int i = 1; i < count; i++) {
            result = pooling == Pooling.MAX
                    ? Math.max(result, values[i])
                    : pooling == Pooling.MIN ? Math.min(result, values[i]) : result + values[i];
        }
        return pooling == Pooling.MEAN ? result / count : result;
    }
}
