// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.svm;

import io.nereid.backends.sklearn.estimator.ClassLabels;
import io.nereid.backends.sklearn.estimator.Classifier;
import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.Estimator;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.MatrixOps;
import io.nereid.backends.sklearn.estimator.Regressor;
import io.nereid.backends.sklearn.pickle.UnsupportedModel;

/**
 * Support vector machines with a kernel: {@code SVC}, {@code NuSVC}, {@code SVR}, {@code NuSVR}. Computes as libsvm
 * does, which scikit-learn contains. Linear ones without a kernel are linear models. Stateless.
 */
public final class SupportVectorMachine {
    private SupportVectorMachine() {}

    public static Estimator regressor(EstimatorAttributes f) {
        return new Numbers(f, new SupportVectors(f));
    }

    public static Estimator classifier(EstimatorAttributes f) {
        return new Classes(f, new SupportVectors(f));
    }

    /** Support vector regression. Immutable. */
    private static final class Numbers extends Regressor {
        private final SupportVectors vectors;
        private final double[] coefficients;
        private final double intercept;

        Numbers(EstimatorAttributes f, SupportVectors vectors) {
            super(f.type(), vectors.features(), 0);
            this.vectors = vectors;
            coefficients = f.doubles(vectors.count(), "_dual_coef_", "dual_coef_");
            intercept = f.doubles(1, "_intercept_", "intercept_")[0];
        }

        @Override
        public DataTable predict(DataTable table) {
            double[] x = table.finite(type());
            double[] y = new double[table.rows()];
            double[] k = new double[vectors.count()];
            for (int r = 0; r < y.length; r++) {
                vectors.products(x, r * table.columns(), k);
                y[r] = MatrixOps.dot(k, 0, coefficients) + intercept;
            }
            return DataTable.column(y);
        }
    }

    /**
     * Support vector classification: libsvm trains one binary classifier per pair of classes, over the support vectors
     * of these two. Immutable.
     */
    private static final class Classes extends Classifier {
        private final SupportVectors vectors;
        private final double[][] coefficients;
        private final double[] intercepts;
        /** Where the support vectors of each class start. */
        private final int[] starts;

        private final double[] probA;
        private final double[] probB;
        /** Whether {@code decision_function} returns the scores of pairs (ovo) instead of classes (ovr). */
        private final boolean pairs;

        private final boolean breaksTies;

        Classes(EstimatorAttributes f, SupportVectors vectors) {
            super(f.type(), vectors.features(), ClassLabels.of(f.array("classes_")));
            this.vectors = vectors;
            int classes = labels().count();
            int count = classes * (classes - 1) / 2;
            coefficients = MatrixOps.rows(f, classes - 1, vectors.count(), "_dual_coef_");
            intercepts = f.doubles(count, "_intercept_");
            int[] support = f.array("_n_support", "n_support_").ints();
            starts = new int[classes + 1];
            for (int i = 0; i < classes && i < support.length; i++) {
                starts[i + 1] = starts[i] + support[i];
                if (support[i] < 0) {
                    throw UnsupportedModel.corrupt(f.path() + " has a negative number of support vectors");
                }
            }
            if (support.length != classes || starts[classes] != vectors.count()) {
                throw UnsupportedModel.corrupt(f.path() + " has support vectors that belong to no class");
            }
            probA = f.has("_probA") ? f.doubles("_probA") : f.has("probA_") ? f.doubles("probA_") : new double[0];
            probB = f.has("_probB") ? f.doubles("_probB") : f.has("probB_") ? f.doubles("probB_") : new double[0];
            pairs = f.text("decision_function_shape", "ovr").equals("ovo");
            breaksTies = f.flag("break_ties", false) && !pairs && classes > 2;
        }

        @Override
        public boolean hasDecision() {
            return true;
        }

        @Override
        public boolean hasProba() {
            return probA.length == intercepts.length && probB.length == intercepts.length;
        }

        @Override
        public int decisionWidth() {
            return labels().count() == 2 ? 0 : pairs ? intercepts.length : labels().count();
        }

        /** A score for each pair of classes in the order (0,1), (0,2), …, positive for the first class of the pair. */
        private double[] pairScores(double[] x, int from) {
            double[] k = new double[vectors.count()];
            vectors.products(x, from, k);
            double[] scores = new double[intercepts.length];
            int at = 0;
            for (int i = 0; i < labels().count(); i++) {
                for (int j = i + 1; j < labels().count(); j++) {
                    // Row j - 1 holds the coefficients of class i against j; row i those of class j against i.
                    double sum = 0;
                    for (int s = starts[i]; s < starts[i + 1]; s++) {
                        sum += coefficients[j - 1][s] * k[s];
                    }
                    for (int s = starts[j]; s < starts[j + 1]; s++) {
                        sum += coefficients[i][s] * k[s];
                    }
                    scores[at] = sum + intercepts[at];
                    at++;
                }
            }
            return scores;
        }

        @Override
        public int[] classes(DataTable table) {
            if (breaksTies) {
                return ClassLabels.greatest(decision(table));
            }
            double[] x = table.finite(type());
            int[] result = new int[table.rows()];
            int classes = labels().count();
            for (int r = 0; r < result.length; r++) {
                double[] scores = pairScores(x, r * table.columns());
                int[] votes = new int[classes];
                int at = 0;
                for (int i = 0; i < classes; i++) {
                    for (int j = i + 1; j < classes; j++) {
                        votes[scores[at++] > 0 ? i : j]++;
                    }
                }
                for (int c = 1; c < classes; c++) {
                    result[r] = votes[c] > votes[result[r]] ? c : result[r];
                }
            }
            return result;
        }

        @Override
        public DataTable decision(DataTable table) {
            double[] x = table.finite(type());
            int classes = labels().count();
            DataTable result = DataTable.of(table.rows(), Math.max(1, decisionWidth()));
            for (int r = 0; r < table.rows(); r++) {
                double[] scores = pairScores(x, r * table.columns());
                if (classes == 2) {
                    result.values()[r] = -scores[0];
                } else if (pairs) {
                    System.arraycopy(scores, 0, result.values(), r * scores.length, scores.length);
                } else {
                    against(scores, result.values(), r * classes);
                }
            }
            return result;
        }

        /**
         * Scores of classes from scores of pairs ({@code _ovr_decision_function}): the votes, plus the sum of
         * confidences scaled to less than a third of a vote, so that it only breaks ties.
         */
        private void against(double[] scores, double[] to, int from) {
            int classes = labels().count();
            double[] sure = new double[classes];
            int at = 0;
            for (int i = 0; i < classes; i++) {
                for (int j = i + 1; j < classes; j++) {
                    sure[i] += scores[at];
                    sure[j] -= scores[at];
                    to[from + (scores[at] < 0 ? j : i)]++;
                    at++;
                }
            }
            for (int c = 0; c < classes; c++) {
                to[from + c] += sure[c] / (3 * (Math.abs(sure[c]) + 1));
            }
        }

        @Override
        public DataTable proba(DataTable table) {
            double[] x = table.finite(type());
            int classes = labels().count();
            DataTable result = DataTable.of(table.rows(), classes);
            for (int r = 0; r < table.rows(); r++) {
                double[] scores = pairScores(x, r * table.columns());
                double[][] pair = new double[classes][classes];
                int at = 0;
                for (int i = 0; i < classes; i++) {
                    for (int j = i + 1; j < classes; j++) {
                        double p = sigmoid(-(scores[at] * probA[at] + probB[at]));
                        p = Math.min(Math.max(p, 1e-7), 1 - 1e-7);
                        pair[i][j] = p;
                        pair[j][i] = 1 - p;
                        at++;
                    }
                }
                couple(pair, result.values(), r * classes);
            }
            return result;
        }

        /** Pairwise coupling after Wu, Lin and Weng (2004), method 2, with the tolerance of libsvm. */
        private static void couple(double[][] pair, double[] to, int from) {
            int k = pair.length;
            double[][] q = new double[k][k];
            double[] p = new double[k];
            double[] qp = new double[k];
            for (int t = 0; t < k; t++) {
                p[t] = 1.0 / k;
                for (int j = 0; j < k; j++) {
                    if (j != t) {
                        q[t][t] += pair[j][t] * pair[j][t];
                        q[t][j] = -pair[j][t] * pair[t][j];
                    }
                }
            }
            for (int round = 0; round < Math.max(100, k); round++) {
                double all = 0;
                for (int t = 0; t < k; t++) {
                    qp[t] = MatrixOps.dot(q[t], 0, p);
                    all += p[t] * qp[t];
                }
                double worst = 0;
                for (int t = 0; t < k; t++) {
                    worst = Math.max(worst, Math.abs(qp[t] - all));
                }
                if (worst < 0.005 / k) {
                    break;
                }
                for (int t = 0; t < k; t++) {
                    double diff = (all - qp[t]) / q[t][t];
                    p[t] += diff;
                    all = (all + diff * (diff * q[t][t] + 2 * qp[t])) / (1 + diff) / (1 + diff);
                    for (int j = 0; j < k; j++) {
                        qp[j] = (qp[j] + diff * q[t][j]) / (1 + diff);
                        p[j] /= 1 + diff;
                    }
                }
            }
            System.arraycopy(p, 0, to, from, k);
        }
    }
}
