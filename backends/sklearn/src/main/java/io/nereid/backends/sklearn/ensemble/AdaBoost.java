// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.ensemble;

import io.nereid.backends.sklearn.estimator.ClassLabels;
import io.nereid.backends.sklearn.estimator.Classifier;
import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.Estimator;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.PredictMethod;
import io.nereid.backends.sklearn.estimator.Regressor;
import io.nereid.backends.sklearn.pickle.UnsupportedModel;
import java.util.ArrayList;
import java.util.List;

/**
 * {@code AdaBoostClassifier} (algorithms SAMME and SAMME.R) and {@code AdaBoostRegressor}: estimators combined by
 * weights from training. Stateless.
 */
public final class AdaBoost {
    /** From this version of scikit-learn on, a vote for one class also counts against the others. */
    private static final int[] SYMMETRIC = {1, 4};

    private AdaBoost() {}

    private static List<Estimator> members(EstimatorAttributes f, Estimator.Factory factory) {
        List<Estimator> members = new ArrayList<>();
        for (Object member : f.list("estimators_")) {
            Estimator one = factory.build(member);
            if (one.width(PredictMethod.PREDICT) != 0) {
                throw UnsupportedModel.unsupported(f.path() + " with a " + one.type());
            }
            members.add(one);
        }
        if (members.isEmpty() || f.doubles("estimator_weights_").length < members.size()) {
            throw UnsupportedModel.corrupt(f.path() + " has estimators without weights");
        }
        return members;
    }

    public static Estimator classifier(EstimatorAttributes f, Estimator.Factory factory) {
        return new Classes(f, members(f, factory));
    }

    public static Estimator regressor(EstimatorAttributes f, Estimator.Factory factory) {
        List<Estimator> members = members(f, factory);
        double[] weights = f.doubles("estimator_weights_");
        return new Regressor(f.type(), members.get(0).features(), 0) {
            @Override
            public DataTable predict(DataTable table) {
                double[][] predicted = new double[members.size()][];
                for (int m = 0; m < predicted.length; m++) {
                    predicted[m] =
                            members.get(m).checked(PredictMethod.PREDICT, table).values();
                }
                double[] result = new double[table.rows()];
                for (int r = 0; r < result.length; r++) {
                    result[r] = median(predicted, r, weights);
                }
                return DataTable.column(result);
            }
        };
    }

    /** The weighted median: the first of the sorted predictions at which half of the total weight is reached. */
    private static double median(double[][] predicted, int row, double[] weights) {
        Integer[] order = new Integer[predicted.length];
        double all = 0;
        for (int m = 0; m < order.length; m++) {
            order[m] = m;
        }
        java.util.Arrays.sort(order, (a, b) -> Double.compare(predicted[a][row], predicted[b][row]));
        for (int m : order) {
            all += weights[m];
        }
        double sum = 0;
        for (int m : order) {
            sum += weights[m];
            if (sum >= 0.5 * all) {
                return predicted[m][row];
            }
        }
        return predicted[order[order.length - 1]][row];
    }

    /** Whether a version is the given one or later; an unparsable part counts as 0. */
    private static boolean since(String version, int[] minimum) {
        String[] parts = version.split("\\.", -1);
        for (int i = 0; i < minimum.length; i++) {
            String digits = i < parts.length ? parts[i].replaceAll("\\D.*", "") : "";
            int part = digits.isEmpty() || digits.length() > 6 ? 0 : Integer.parseInt(digits);
            if (part != minimum[i]) {
                return part > minimum[i];
            }
        }
        return true;
    }

    /** Immutable. */
    private static final class Classes extends Classifier {
        private final List<Classifier> members = new ArrayList<>();
        private final double[] weights;
        private final boolean real;
        private final boolean symmetric;

        Classes(EstimatorAttributes f, List<Estimator> estimators) {
            super(f.type(), estimators.get(0).features(), ClassLabels.of(f.array("classes_")));
            weights = f.doubles("estimator_weights_");
            symmetric = since(f.text("_sklearn_version", ""), SYMMETRIC);
            real = f.text("algorithm", "SAMME").equals("SAMME.R");
            for (Estimator e : estimators) {
                if (!(e instanceof Classifier c) || c.labels().count() != labels().count() || (real && !c.hasProba())) {
                    throw UnsupportedModel.unsupported(
                            f.path() + " with a " + e.type() + ", which has other classes or no probabilities");
                }
                members.add(c);
            }
        }

        @Override
        public boolean hasProba() {
            return true;
        }

        @Override
        public boolean hasDecision() {
            return true;
        }

        /** The weighted votes, one column per class, also for two classes. */
        private DataTable sums(DataTable table) {
            int classes = labels().count();
            DataTable sums = DataTable.of(table.rows(), classes);
            double[] y = sums.values();
            double all = 0;
            for (int m = 0; m < members.size(); m++) {
                all += weights[m];
                if (real) {
                    addLogarithms(members.get(m).checked(PredictMethod.PREDICT_PROBA, table), y, classes);
                    continue;
                }
                int[] predicted = members.get(m).classes(table);
                double against = symmetric && classes > 1 ? -1 / (classes - 1.0) * weights[m] : 0;
                for (int i = 0; i < y.length; i++) {
                    y[i] += predicted[i / classes] == i % classes ? weights[m] : against;
                }
            }
            for (int i = 0; i < y.length; i++) {
                y[i] /= all;
            }
            return sums;
        }

        /** SAMME.R: adds the centred log probabilities of a member. */
        private static void addLogarithms(DataTable proba, double[] y, int classes) {
            double least = Math.ulp(1.0);
            for (int r = 0; r < proba.rows(); r++) {
                double mean = 0;
                for (int c = 0; c < classes; c++) {
                    mean += Math.log(Math.max(least, proba.at(r, c))) / classes;
                }
                for (int c = 0; c < classes; c++) {
                    y[r * classes + c] += (classes - 1) * (Math.log(Math.max(least, proba.at(r, c))) - mean);
                }
            }
        }

        @Override
        public DataTable decision(DataTable table) {
            DataTable sums = sums(table);
            if (labels().count() != 2) {
                return sums;
            }
            double[] one = new double[table.rows()];
            for (int r = 0; r < one.length; r++) {
                one[r] = sums.at(r, 1) - sums.at(r, 0);
            }
            return DataTable.column(one);
        }

        @Override
        public DataTable proba(DataTable table) {
            DataTable scores = decision(table);
            int classes = labels().count();
            DataTable all = scores;
            if (classes == 2) {
                all = DataTable.of(table.rows(), 2);
                for (int r = 0; r < table.rows(); r++) {
                    all.values()[2 * r] = -scores.values()[r] / 2;
                    all.values()[2 * r + 1] = scores.values()[r] / 2;
                }
            } else {
                for (int i = 0; i < all.values().length; i++) {
                    all.values()[i] /= classes - 1;
                }
            }
            softmax(all.values(), classes);
            return all;
        }
    }
}
