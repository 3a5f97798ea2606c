// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.neighbors;

import io.nereid.backends.sklearn.estimator.ClassLabels;
import io.nereid.backends.sklearn.estimator.Classifier;
import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.DenseMatrix;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import org.jspecify.annotations.Nullable;

/**
 * {@code NearestCentroid}: the class whose centroid is nearest. From scikit-learn 1.6 on, and with the Euclidean metric,
 * it has scores and probabilities too, which weigh the classes and scale the columns. Immutable.
 */
public final class NearestCentroid extends Classifier {
    private final DenseMatrix centroids;
    private final boolean manhattan;
    /** By class, twice the logarithm of its probability; null in versions without them. */
    private final double @Nullable [] logPriors;

    private final double[] scale;
    /** Whether {@code predict} is the class of the greatest score. */
    private final boolean weighted;

    private NearestCentroid(EstimatorAttributes f, DenseMatrix centroids) {
        super(f.type(), centroids.columns(), ClassLabels.of(f.array("classes_")));
        this.centroids = centroids;
        String metric = f.text("metric", "?");
        if (!metric.equals("euclidean") && !metric.equals("manhattan")) {
            throw f.unsupported("metric");
        }
        manhattan = metric.equals("manhattan");
        double[] priors = f.optional(centroids.rows(), "class_prior_");
        boolean uneven = false;
        scale = priors == null ? new double[0] : f.doubles(centroids.columns(), "within_class_std_dev_");
        for (int c = 0; priors != null && c < priors.length; c++) {
            double even = 1.0 / priors.length;
            uneven |= !(Math.abs(priors[c] - even) <= 1e-8 + 1e-5 * even);
            priors[c] = 2 * Math.log(priors[c]);
        }
        for (int i = 0; i < scale.length; i++) {
            scale[i] = scale[i] == 0 ? 1 : scale[i];
        }
        logPriors = priors;
        weighted = uneven;
    }

    public static NearestCentroid of(EstimatorAttributes f) {
        ClassLabels labels = ClassLabels.of(f.array("classes_"));
        return new NearestCentroid(f, DenseMatrix.of(f, labels.count(), -1, "centroids_"));
    }

    @Override
    public boolean quick() {
        return centroids.values().length < 4096;
    }

    @Override
    public boolean hasDecision() {
        return logPriors != null && !manhattan;
    }

    @Override
    public boolean hasProba() {
        return hasDecision();
    }

    @Override
    public int[] classes(DataTable table) {
        double[] x = table.finite(type());
        int[] classes = new int[table.rows()];
        if (weighted) {
            return ClassLabels.greatest(discriminants(table));
        }
        for (int r = 0; r < classes.length; r++) {
            int from = r * centroids.columns();
            classes[r] = manhattan ? nearestByBlocks(x, from) : centroids.nearest(x, from);
        }
        return classes;
    }

    private int nearestByBlocks(double[] x, int from) {
        int best = 0;
        double least = Double.POSITIVE_INFINITY;
        for (int c = 0; c < centroids.rows(); c++) {
            double sum = 0;
            for (int i = 0; i < centroids.columns(); i++) {
                sum += Math.abs(x[from + i] - centroids.at(c, i));
            }
            if (sum < least) {
                least = sum;
                best = c;
            }
        }
        return best;
    }

    private DataTable discriminants(DataTable table) {
        double[] x = table.finite(type());
        int columns = centroids.columns();
        DataTable scores = DataTable.of(table.rows(), centroids.rows());
        for (int r = 0; r < table.rows(); r++) {
            for (int c = 0; c < centroids.rows(); c++) {
                double sum = 0;
                for (int i = 0; i < columns; i++) {
                    double d = (x[r * columns + i] - centroids.at(c, i)) / scale[i];
                    sum += manhattan ? Math.abs(d) : d * d;
                }
                double distance = manhattan ? sum * sum : sum;
                scores.values()[r * centroids.rows() + c] = (logPriors == null ? 0 : logPriors[c]) - distance;
            }
        }
        return scores;
    }

    @Override
    public DataTable decision(DataTable table) {
        DataTable scores = discriminants(table);
        if (centroids.rows() != 2) {
            return scores;
        }
        double[] difference = new double[table.rows()];
        for (int r = 0; r < difference.length; r++) {
            difference[r] = scores.at(r, 1) - scores.at(r, 0);
        }
        return DataTable.column(difference);
    }

    @Override
    public DataTable proba(DataTable table) {
        DataTable scores = discriminants(table);
        softmax(scores.values(), scores.columns());
        return scores;
    }
}
