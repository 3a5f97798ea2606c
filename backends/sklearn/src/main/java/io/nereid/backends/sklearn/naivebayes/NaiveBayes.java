// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.naivebayes;

import io.nereid.backends.sklearn.estimator.ClassLabels;
import io.nereid.backends.sklearn.estimator.Classifier;
import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.MatrixOps;
import io.nereid.backends.sklearn.pickle.UnsupportedModel;
import org.jspecify.annotations.Nullable;

/**
 * Naive Bayes: {@code GaussianNB}, {@code MultinomialNB}, {@code ComplementNB}, {@code BernoulliNB}. All four are a
 * joint log likelihood per class, of which all but the Gaussian are linear in the features:
 * {@code added + x · weights}. Immutable.
 */
public final class NaiveBayes extends Classifier {
    private final double[][] weights;
    private final double[] added;
    private final double @Nullable [][] variances;
    private final double threshold;

    private NaiveBayes(
            EstimatorAttributes f,
            double[][] weights,
            double[] added,
            double @Nullable [][] variances,
            double threshold) {
        super(f.type(), weights[0].length, ClassLabels.of(f.array("classes_")));
        this.weights = weights;
        this.added = added;
        this.variances = variances;
        this.threshold = threshold;
    }

    private static double[][] matrix(EstimatorAttributes f, int columns, String... names) {
        double[][] rows = MatrixOps.rows(f, f.array("classes_").count(), columns, names);
        if (rows.length == 0) {
            throw UnsupportedModel.corrupt(f.path() + " has no classes");
        }
        return rows;
    }

    public static NaiveBayes gaussian(EstimatorAttributes f) {
        double[][] means = matrix(f, -1, "theta_");
        double[][] variances = matrix(f, means[0].length, "var_", "sigma_");
        double[] priors = f.doubles(means.length, "class_prior_");
        double[] added = new double[means.length];
        for (int k = 0; k < added.length; k++) {
            double sum = 0;
            for (double v : variances[k]) {
                sum += Math.log(2 * Math.PI * v);
            }
            added[k] = Math.log(priors[k]) - 0.5 * sum;
        }
        return new NaiveBayes(f, means, added, variances, Double.NaN);
    }

    public static NaiveBayes multinomial(EstimatorAttributes f) {
        double[][] logs = matrix(f, -1, "feature_log_prob_");
        return new NaiveBayes(f, logs, f.doubles(logs.length, "class_log_prior_"), null, Double.NaN);
    }

    public static NaiveBayes complement(EstimatorAttributes f) {
        double[][] logs = matrix(f, -1, "feature_log_prob_");
        double[] added = logs.length == 1 ? f.doubles(1, "class_log_prior_") : new double[logs.length];
        return new NaiveBayes(f, logs, added, null, Double.NaN);
    }

    public static NaiveBayes bernoulli(EstimatorAttributes f) {
        double[][] logs = matrix(f, -1, "feature_log_prob_");
        double[] added = f.doubles(logs.length, "class_log_prior_");
        // x·log(p) + (1 - x)·log(1 - p) as a linear function of x: weight log(p) - log(1 - p), constant log(1 - p).
        for (int k = 0; k < logs.length; k++) {
            for (int i = 0; i < logs[k].length; i++) {
                double negative = Math.log(1 - Math.exp(logs[k][i]));
                logs[k][i] -= negative;
                added[k] += negative;
            }
        }
        return new NaiveBayes(f, logs, added, null, f.has("binarize") ? f.number("binarize") : Double.NaN);
    }

    @Override
    public boolean quick() {
        return weights.length * weights[0].length < 4096;
    }

    @Override
    public boolean hasProba() {
        return true;
    }

    @Override
    public int[] classes(DataTable table) {
        return ClassLabels.greatest(scores(table));
    }

    private DataTable scores(DataTable table) {
        double[] x = table.finite(type());
        if (!Double.isNaN(threshold)) {
            x = x.clone();
            for (int i = 0; i < x.length; i++) {
                x[i] = x[i] > threshold ? 1 : 0;
            }
        }
        DataTable result = DataTable.of(table.rows(), weights.length);
        int at = 0;
        for (int r = 0; r < table.rows(); r++) {
            int from = r * table.columns();
            for (int k = 0; k < weights.length; k++) {
                result.values()[at++] = added[k]
                        + (variances == null
                                ? MatrixOps.dot(x, from, weights[k])
                                : gaussian(x, from, weights[k], variances[k]));
            }
        }
        return result;
    }

    /** The part of the Gaussian log density that depends on the row. */
    private static double gaussian(double[] x, int from, double[] means, double[] variances) {
        double sum = 0;
        for (int i = 0; i < means.length; i++) {
            double d = x[from + i] - means[i];
            sum += d * d / variances[i];
        }
        return -0.5 * sum;
    }

    @Override
    public DataTable proba(DataTable table) {
        DataTable scores = scores(table);
        softmax(scores.values(), scores.columns());
        return scores;
    }
}
