// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.calibration;

import io.nereid.backends.sklearn.estimator.ClassLabels;
import io.nereid.backends.sklearn.estimator.Classifier;
import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.Estimator;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.PredictMethod;
import io.nereid.backends.sklearn.pickle.UnsupportedModel;
import java.util.ArrayList;
import java.util.List;

/**
 * {@code CalibratedClassifierCV}: converts the scores of classifiers to probabilities by a sigmoid or isotonic
 * calibrator, and averages over the folds of the cross-validation. Immutable.
 */
public final class CalibratedClassifier extends Classifier {
    /** A calibrator: the probability of a score. */
    private interface Curve {
        double at(double score);
    }

    private record Member(Estimator estimator, PredictMethod method, List<Curve> curves) {}

    private final List<Member> members = new ArrayList<>();

    public CalibratedClassifier(EstimatorAttributes f, Estimator.Factory factory) {
        super(f.type(), f.features(), ClassLabels.of(f.array("classes_")));
        int classes = labels().count();
        for (Object each : f.list("calibrated_classifiers_")) {
            EstimatorAttributes one = new EstimatorAttributes(EstimatorAttributes.asObject(each));
            Estimator estimator = factory.build(one.required("estimator", "base_estimator"));
            PredictMethod method = estimator.can(PredictMethod.DECISION_FUNCTION)
                    ? PredictMethod.DECISION_FUNCTION
                    : PredictMethod.PREDICT_PROBA;
            List<Curve> curves = new ArrayList<>();
            for (Object curve : one.list("calibrators", "calibrators_")) {
                curves.add(curve(new EstimatorAttributes(EstimatorAttributes.asObject(curve))));
            }
            int width = estimator.can(method) ? estimator.width(method) : -2;
            boolean fits = classes == 2 ? width == 0 || width == 2 : width == classes;
            if (!fits || curves.size() != (classes == 2 ? 1 : classes)) {
                throw UnsupportedModel.unsupported(f.path() + " with a " + estimator.type()
                        + " that has only some of the classes is not supported");
            }
            members.add(new Member(estimator, method, curves));
        }
        if (members.isEmpty()) {
            throw UnsupportedModel.unsupported(f.path() + " has no classifiers");
        }
    }

    private static Curve curve(EstimatorAttributes f) {
        if (f.type().equals("_SigmoidCalibration")) {
            double a = f.number("a_");
            double b = f.number("b_");
            return score -> sigmoid(-(a * score + b));
        }
        if (!f.type().equals("IsotonicRegression")) {
            throw UnsupportedModel.unsupported(f.path() + " is not supported");
        }
        double[] x = f.doubles("X_thresholds_", "_necessary_X_");
        double[] y = f.doubles(x.length, "y_thresholds_", "_necessary_y_");
        if (x.length == 0) {
            throw UnsupportedModel.corrupt(f.path() + " has no points");
        }
        return score -> interpolate(x, y, score);
    }

    /** Linear interpolation; outside of the range the value of the nearest end. */
    static double interpolate(double[] x, double[] y, double at) {
        if (at <= x[0]) {
            return y[0];
        }
        for (int i = 1; i < x.length; i++) {
            if (at <= x[i]) {
                double slope = (y[i] - y[i - 1]) / (x[i] - x[i - 1]);
                return slope * (at - x[i - 1]) + y[i - 1];
            }
        }
        return y[y.length - 1];
    }

    @Override
    public boolean hasProba() {
        return true;
    }

    @Override
    public DataTable proba(DataTable table) {
        int classes = labels().count();
        DataTable mean = DataTable.of(table.rows(), classes);
        double[] p = new double[classes];
        for (Member member : members) {
            DataTable scores = member.estimator.checked(member.method, table);
            for (int r = 0; r < table.rows(); r++) {
                if (classes == 2) {
                    p[1] = member.curves.get(0).at(scores.at(r, scores.columns() - 1));
                    p[0] = 1 - p[1];
                } else {
                    double sum = 0;
                    for (int c = 0; c < classes; c++) {
                        p[c] = member.curves.get(c).at(scores.at(r, c));
                        sum += p[c];
                    }
                    for (int c = 0; c < classes; c++) {
                        p[c] = sum == 0 ? 1.0 / classes : p[c] / sum;
                    }
                }
                for (int c = 0; c < classes; c++) {
                    mean.values()[r * classes + c] += p[c] / members.size();
                }
            }
        }
        return mean;
    }
}
