// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.linear;

import io.nereid.backends.sklearn.estimator.ClassLabels;
import io.nereid.backends.sklearn.estimator.Classifier;
import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.Estimator;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.MatrixOps;
import io.nereid.backends.sklearn.estimator.Regressor;
import io.nereid.backends.sklearn.pickle.UnsupportedModel;
import java.util.List;

/**
 * The linear models of {@code sklearn.linear_model}, and those of other modules that predict from {@code coef_} and
 * {@code intercept_} as they do: linear support vector machines and linear discriminant analysis. Stateless.
 */
public final class LinearModels {
    private LinearModels() {}

    /** {@code coef_} and {@code intercept_}, one row per output. Immutable. */
    static final class Weights {
        private final double[][] rows;
        private final double[] intercepts;

        Weights(double[][] rows, double[] intercepts) {
            this.rows = rows;
            this.intercepts = intercepts;
        }

        static Weights of(EstimatorAttributes f) {
            double[][] rows = MatrixOps.rows(f, -1, -1, "coef_");
            double[] given = f.has("intercept_") ? f.doubles("intercept_") : new double[1];
            double[] intercepts = given;
            if (given.length == 1 && rows.length > 1) {
                intercepts = new double[rows.length];
                java.util.Arrays.fill(intercepts, given[0]);
            }
            if (rows.length == 0 || intercepts.length != rows.length) {
                throw UnsupportedModel.corrupt(
                        f.path() + " has " + rows.length + " rows of weights and " + given.length + " intercepts");
            }
            return new Weights(rows, intercepts);
        }

        int count() {
            return rows.length;
        }

        int features() {
            return rows[0].length;
        }

        DataTable scores(String who, DataTable table) {
            double[] x = table.finite(who);
            DataTable result = DataTable.of(table.rows(), rows.length);
            int at = 0;
            for (int r = 0; r < table.rows(); r++) {
                for (int k = 0; k < rows.length; k++) {
                    result.values()[at++] = MatrixOps.dot(x, r * table.columns(), rows[k]) + intercepts[k];
                }
            }
            return result;
        }
    }

    /** The inverse link function, applied to the linear sum. */
    private enum Link {
        NONE,
        EXP,
        LOGIT
    }

    /** A linear or generalised linear regression. Immutable. */
    private static final class Model extends Regressor {
        private final Weights weights;
        private final Link link;

        Model(EstimatorAttributes f, Weights weights, boolean flat, Link link) {
            super(f.type(), weights.features(), flat ? 0 : weights.count());
            this.weights = weights;
            this.link = link;
        }

        @Override
        public boolean quick() {
            return weights.count() * weights.features() < 4096;
        }

        @Override
        public DataTable predict(DataTable table) {
            DataTable scores = weights.scores(type(), table);
            for (int i = 0; link != Link.NONE && i < scores.values().length; i++) {
                double v = scores.values()[i];
                scores.values()[i] = link == Link.EXP ? Math.exp(v) : Classifier.sigmoid(v);
            }
            return scores;
        }
    }

    public static Estimator regressor(EstimatorAttributes f) {
        return new Model(f, Weights.of(f), f.array("coef_").rank() < 2, Link.NONE);
    }

    /** Regressors that return a 1-d array even when {@code coef_} is 2-d. */
    public static Estimator flatRegressor(EstimatorAttributes f) {
        return new Model(f, Weights.of(f), true, Link.NONE);
    }

    /** Poisson, gamma and Tweedie regression: the link is log, but identity for a Tweedie power of 0 or less. */
    public static Estimator logRegressor(EstimatorAttributes f) {
        boolean identity = f.text("link", "auto").equals("identity")
                || (f.text("link", "auto").equals("auto")
                        && f.type().equals("TweedieRegressor")
                        && f.number("power", 0) <= 0);
        return new Model(f, Weights.of(f), true, identity ? Link.NONE : Link.EXP);
    }

    /** How probabilities are computed from decision scores. */
    private enum Proba {
        NONE,
        /** The logistic function of each score, normalised to a sum of 1. */
        ONE_AGAINST_REST,
        SOFTMAX,
        MODIFIED_HUBER
    }

    /** A linear classifier. Immutable. */
    private static final class Discriminant extends Classifier {
        private final Weights weights;
        private final Proba proba;

        Discriminant(EstimatorAttributes f, Weights weights, Proba proba) {
            super(f.type(), weights.features(), labels(f));
            this.weights = weights;
            this.proba = proba;
            int classes = labels().count();
            if (weights.count() != (classes == 2 ? 1 : classes)) {
                throw UnsupportedModel.unsupported(
                        f.path() + " has " + classes + " classes and " + weights.count() + " rows of weights");
            }
        }

        /** Some versions of scikit-learn keep the classes of RidgeClassifier in its label binarizer. */
        private static ClassLabels labels(EstimatorAttributes f) {
            return ClassLabels.of(
                    f.has("classes_")
                            ? f.array("classes_")
                            : new EstimatorAttributes(f.object("_label_binarizer")).array("classes_"));
        }

        @Override
        public boolean quick() {
            return weights.count() * weights.features() < 4096;
        }

        @Override
        public boolean hasDecision() {
            return true;
        }

        @Override
        public boolean hasProba() {
            return proba != Proba.NONE;
        }

        @Override
        public DataTable decision(DataTable table) {
            return weights.scores(type(), table);
        }

        @Override
        public DataTable proba(DataTable table) {
            DataTable scores = decision(table);
            double[] s = scores.values();
            boolean binary = scores.columns() == 1;
            if (proba == Proba.SOFTMAX) {
                DataTable both = scores;
                if (binary) {
                    both = DataTable.of(scores.rows(), 2);
                    for (int r = 0; r < s.length; r++) {
                        both.values()[2 * r] = -s[r];
                        both.values()[2 * r + 1] = s[r];
                    }
                }
                Classifier.softmax(both.values(), both.columns());
                return both;
            }
            for (int i = 0; i < s.length; i++) {
                s[i] = proba == Proba.MODIFIED_HUBER
                        ? (Math.max(-1, Math.min(1, s[i])) + 1) / 2
                        : Classifier.sigmoid(s[i]);
            }
            if (binary) {
                return twoColumns(s);
            }
            for (int r = 0; r < scores.rows(); r++) {
                double sum = 0;
                for (int c = 0; c < scores.columns(); c++) {
                    sum += scores.at(r, c);
                }
                for (int c = 0; c < scores.columns(); c++) {
                    int at = r * scores.columns() + c;
                    // The modified Huber loss can give 0 to every class: then all are equally likely.
                    s[at] = sum == 0 ? 1.0 / scores.columns() : s[at] / sum;
                }
            }
            return scores;
        }
    }

    /**
     * Logistic regression. Which of the two formulas of probabilities holds depends on {@code multi_class} and the
     * solver, and the default of {@code multi_class} changed between versions.
     */
    public static Estimator logistic(EstimatorAttributes f) {
        String multi = f.text("multi_class", "auto");
        boolean rest = multi.equals("ovr")
                || multi.equals("warn")
                || f.text("solver", "lbfgs").equals("liblinear")
                || (multi.equals("auto") && f.text("solver", "").equals("newton-cholesky"))
                || (!multi.equals("multinomial") && f.array("classes_").count() == 2);
        return new Discriminant(f, Weights.of(f), rest ? Proba.ONE_AGAINST_REST : Proba.SOFTMAX);
    }

    /** Stochastic gradient descent: probabilities exist for the losses log and modified Huber only. */
    public static Estimator sgd(EstimatorAttributes f) {
        String loss = f.text("loss", "hinge");
        Proba proba = List.of("log", "log_loss").contains(loss)
                ? Proba.ONE_AGAINST_REST
                : loss.equals("modified_huber") ? Proba.MODIFIED_HUBER : Proba.NONE;
        return new Discriminant(f, Weights.of(f), proba);
    }

    /** Classifiers without {@code predict_proba}. */
    public static Estimator scoresOnly(EstimatorAttributes f) {
        return new Discriminant(f, Weights.of(f), Proba.NONE);
    }

    public static Estimator discriminantAnalysis(EstimatorAttributes f) {
        boolean two = f.array("classes_").count() == 2;
        return new Discriminant(f, Weights.of(f), two ? Proba.ONE_AGAINST_REST : Proba.SOFTMAX);
    }
}
