// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.gaussianprocess;

import io.nereid.backends.sklearn.estimator.ClassLabels;
import io.nereid.backends.sklearn.estimator.Classifier;
import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.DenseMatrix;
import io.nereid.backends.sklearn.estimator.Estimator;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.NormalDistribution;
import io.nereid.backends.sklearn.estimator.PredictMethod;
import io.nereid.backends.sklearn.pickle.UnsupportedModel;
import io.nereid.tensor.DataType;
import java.util.List;

/**
 * {@code GaussianProcessClassifier}: binary ones by Laplace's approximation (Rasmussen and Williams, Gaussian Processes for
 * Machine Learning, algorithm 3.2), several classes by one binary process for each class or each pair of classes.
 * Stateless.
 */
public final class GaussianProcessClassifier {
    /**
     * The logistic function as a sum of error functions of these slopes and weights (Williams and Barber, Bayesian
     * Classification with Gaussian Processes, 1998, appendix A), with scikit-learn's values.
     */
    private static final double[] SLOPES = {0.41, 0.4, 0.37, 0.44, 0.39};

    private static final double[] WEIGHTS = {-1854.8214151, 3516.89893646, 221.29346712, 128.12323805, -2010.49422654};

    private GaussianProcessClassifier() {}

    /** The classifier of its attributes. */
    public static Estimator of(EstimatorAttributes f, Estimator.Factory factory) {
        Estimator inner = factory.build(f.required("base_estimator_"));
        boolean pairs = f.text("multi_class", "one_vs_rest").equals("one_vs_one") && !(inner instanceof Binary);
        return pairs ? new Labels(f.type(), inner) : inner;
    }

    /** The member of a {@link #of classifier} that separates two classes. */
    public static Estimator binary(EstimatorAttributes f) {
        return new Binary(f, DenseMatrix.of(f, -1, -1, "X_train_"));
    }

    /** The votes of pairs of classes, of which the class has labels only. Immutable. */
    private static final class Labels extends Estimator {
        private final Estimator inner;

        Labels(String type, Estimator inner) {
            super(type, inner.features());
            this.inner = inner;
        }

        @Override
        public List<PredictMethod> methods() {
            return List.of(PredictMethod.PREDICT);
        }

        @Override
        public int width(PredictMethod method) {
            return inner.width(method);
        }

        @Override
        public DataType type(PredictMethod method) {
            return inner.type(method);
        }

        @Override
        public DataTable apply(PredictMethod method, DataTable table) {
            return inner.apply(method, table);
        }
    }

    private static final class Binary extends Classifier {
        private final DenseMatrix training;
        private final Covariance covariance;
        /** By training row, the gradient of the likelihood, which is its weight in the latent mean. */
        private final double[] gradient;

        private final double[] roots;
        /** The lower Cholesky factor of B. */
        private final DenseMatrix factor;

        Binary(EstimatorAttributes f, DenseMatrix training) {
            super("GaussianProcessClassifier", training.columns(), ClassLabels.of(f.array("classes_")));
            this.training = training;
            int n = training.rows();
            covariance = CovarianceReader.of(f, training);
            double[] y = f.doubles(n, "y_train_");
            double[] pi = f.doubles(n, "pi_");
            gradient = new double[n];
            for (int i = 0; i < n; i++) {
                gradient[i] = y[i] - pi[i];
            }
            roots = f.doubles(n, "W_sr_");
            factor = DenseMatrix.of(f, n, n, "L_");
            if (labels().count() != 2) {
                throw UnsupportedModel.corrupt(f.path() + " has " + labels().count() + " classes (expected: 2)");
            }
        }

        @Override
        public boolean hasProba() {
            return true;
        }

        @Override
        public int[] classes(DataTable table) {
            double[] x = table.finite(type());
            int[] classes = new int[table.rows()];
            double[] k = new double[training.rows()];
            for (int r = 0; r < classes.length; r++) {
                classes[r] = latent(x, r * table.columns(), k) > 0 ? 1 : 0;
            }
            return classes;
        }

        private double latent(double[] x, int from, double[] k) {
            Covariance.all(covariance, x, from, training, k);
            double mean = 0;
            for (int i = 0; i < k.length; i++) {
                mean += k[i] * gradient[i];
            }
            return mean;
        }

        /** Solves the triangular system for the scaled covariances, in place, and returns the sum of squares. */
        private double explained(double[] k) {
            double[] l = factor.values();
            double sum = 0;
            for (int i = 0; i < k.length; i++) {
                double v = roots[i] * k[i];
                for (int j = 0; j < i; j++) {
                    v -= l[i * k.length + j] * k[j];
                }
                k[i] = v / l[i * k.length + i];
                sum += k[i] * k[i];
            }
            return sum;
        }

        @Override
        public DataTable proba(DataTable table) {
            double[] x = table.finite(type());
            double[] positive = new double[table.rows()];
            double[] k = new double[training.rows()];
            for (int r = 0; r < positive.length; r++) {
                int from = r * table.columns();
                double mean = latent(x, from, k);
                double variance = covariance.variance(x, from, training.columns()) - explained(k);
                double alpha = 1 / (2 * variance);
                double p = 0;
                for (int i = 0; i < SLOPES.length; i++) {
                    double s = SLOPES[i];
                    double z = s * mean * Math.sqrt(alpha / (alpha + s * s));
                    double erf = 2 * NormalDistribution.cdf(z * Math.sqrt(2)) - 1;
                    // The factor of scikit-learn, sqrt(pi / alpha) / (2 sqrt(2 pi variance)), is one half.
                    p += WEIGHTS[i] * 0.5 * (erf + 1);
                }
                positive[r] = p;
            }
            return twoColumns(positive);
        }
    }
}
