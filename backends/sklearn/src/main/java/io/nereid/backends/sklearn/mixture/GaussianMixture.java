// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.mixture;

import io.nereid.backends.sklearn.estimator.ClassLabels;
import io.nereid.backends.sklearn.estimator.Classifier;
import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.Estimator;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.MatrixOps;
import io.nereid.backends.sklearn.estimator.PredictMethod;
import io.nereid.backends.sklearn.pickle.NdArray;
import io.nereid.backends.sklearn.pickle.UnsupportedModel;
import io.nereid.tensor.DataType;
import java.util.List;

/**
 * {@code GaussianMixture} and {@code BayesianGaussianMixture}: the most probable component, the probability of each, and
 * the log likelihood of a row. The Bayesian one differs in what is added to the logarithm of each component's density:
 * expectations over the distributions of its weights and precisions (Bishop, Pattern Recognition and Machine Learning,
 * 10.2; for the Dirichlet process Blei and Jordan, Variational Inference for Dirichlet Process Mixtures, 2006). Immutable.
 */
public final class GaussianMixture extends Estimator {
    private final double[][] means;
    /** By component, its matrix as columns: the Cholesky factor of its precision. */
    private final double[][][] factors;

    private final double[] added;

    private GaussianMixture(EstimatorAttributes f, double[][] means, double[][][] factors, double[] added) {
        super(f.type(), means[0].length);
        this.means = means;
        this.factors = factors;
        this.added = added;
    }

    /** The mixture of its attributes. */
    public static GaussianMixture of(EstimatorAttributes f) {
        double[][] means = MatrixOps.rows(f, -1, -1, "means_");
        if (means.length == 0 || means[0].length == 0) {
            throw UnsupportedModel.corrupt(f.path() + " has no components");
        }
        int n = means[0].length;
        double[] weights = f.type().equals("BayesianGaussianMixture")
                ? BayesianWeights.of(f, means.length, n)
                : logarithms(f.doubles(means.length, "weights_"));
        String kind = f.text("covariance_type", "full");
        NdArray stored = f.array("precisions_cholesky_");
        double[] values = stored.doubles();
        int each = switch (kind) {
            case "full" -> means.length * n * n;
            case "tied" -> n * n;
            case "diag" -> means.length * n;
            case "spherical" -> means.length;
            default -> throw f.unsupported("covariance_type");
        };
        if (values.length != each) {
            throw UnsupportedModel.corrupt(f.path() + " has " + values.length + " values in 'precisions_cholesky_'"
                    + " (expected: " + each + ")");
        }
        boolean matrix = kind.equals("full") || kind.equals("tied");
        double[][][] factors = new double[means.length][][];
        double[] added = new double[means.length];
        for (int k = 0; k < means.length; k++) {
            int from = kind.equals("full") ? k * n * n : 0;
            // A diagonal is a single row.
            factors[k] = new double[matrix ? n : 1][n];
            double logs = 0;
            for (int i = 0; i < n; i++) {
                for (int j = 0; matrix && j < n; j++) {
                    factors[k][j][i] = values[from + i * n + j];
                }
                if (!matrix) {
                    factors[k][0][i] = values[kind.equals("diag") ? k * n + i : k];
                }
                logs += Math.log(matrix ? factors[k][i][i] : factors[k][0][i]);
            }
            added[k] = logs - 0.5 * n * Math.log(2 * Math.PI) + weights[k];
        }
        return new GaussianMixture(f, means, factors, added);
    }

    private static double[] logarithms(double[] values) {
        for (int i = 0; i < values.length; i++) {
            values[i] = Math.log(values[i]);
        }
        return values;
    }

    @Override
    public List<PredictMethod> methods() {
        return List.of(PredictMethod.PREDICT, PredictMethod.PREDICT_PROBA, PredictMethod.SCORE_SAMPLES);
    }

    @Override
    public int width(PredictMethod method) {
        return method == PredictMethod.PREDICT_PROBA ? means.length : 0;
    }

    @Override
    public DataType type(PredictMethod method) {
        return method == PredictMethod.PREDICT ? DataType.INT64 : DataType.FP64;
    }

    @Override
    public DataTable apply(PredictMethod method, DataTable table) {
        DataTable logs = logs(table);
        switch (method) {
            case PREDICT -> {
                int[] best = ClassLabels.greatest(logs);
                double[] numbers = new double[best.length];
                for (int r = 0; r < best.length; r++) {
                    numbers[r] = best[r];
                }
                return DataTable.column(numbers);
            }
            case PREDICT_PROBA -> {
                Classifier.softmax(logs.values(), logs.columns());
                return logs;
            }
            default -> {
                double[] scores = new double[table.rows()];
                for (int r = 0; r < scores.length; r++) {
                    double max = Double.NEGATIVE_INFINITY;
                    for (int k = 0; k < logs.columns(); k++) {
                        max = Math.max(max, logs.at(r, k));
                    }
                    double sum = 0;
                    for (int k = 0; k < logs.columns(); k++) {
                        sum += Math.exp(logs.at(r, k) - max);
                    }
                    scores[r] = max + Math.log(sum);
                }
                return DataTable.column(scores);
            }
        }
    }

    /** The logarithm of each component's density times its weight. */
    private DataTable logs(DataTable table) {
        double[] x = table.finite(type());
        int n = means[0].length;
        DataTable logs = DataTable.of(table.rows(), means.length);
        double[] centred = new double[n];
        for (int r = 0; r < table.rows(); r++) {
            for (int k = 0; k < means.length; k++) {
                for (int i = 0; i < n; i++) {
                    centred[i] = x[r * n + i] - means[k][i];
                }
                double sum = 0;
                if (factors[k].length == 1 && n > 1) {
                    for (int i = 0; i < n; i++) {
                        double y = centred[i] * factors[k][0][i];
                        sum += y * y;
                    }
                } else {
                    for (double[] column : factors[k]) {
                        double y = MatrixOps.dot(centred, 0, column);
                        sum += y * y;
                    }
                }
                logs.values()[r * means.length + k] = added[k] - 0.5 * sum;
            }
        }
        return logs;
    }
}
