// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.multiclass;

import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.Estimator;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.PredictMethod;
import io.nereid.backends.sklearn.pickle.PyObject;
import io.nereid.backends.sklearn.pickle.UnsupportedModel;
import io.nereid.tensor.DataType;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A binary classifier inside a multiclass one: the confidence that a row belongs to the second of two classes.
 * Immutable.
 */
final class BinaryMember {
    /** Null for {@code _ConstantPredictor}, of a class that all training rows or none have. */
    private final @Nullable Estimator estimator;

    private final double always;

    BinaryMember(EstimatorAttributes f, Object member, Estimator.Factory factory) {
        if (member instanceof PyObject o && o.type().name().equals("_ConstantPredictor")) {
            estimator = null;
            always = new EstimatorAttributes(o).array("y_").doubles()[0];
            return;
        }
        always = 0;
        Estimator built = factory.build(member);
        estimator = built;
        if (built.width(PredictMethod.PREDICT) != 0
                || built.type(PredictMethod.PREDICT) == DataType.BYTES
                || (hasDecision() ? built.width(PredictMethod.DECISION_FUNCTION) != 0 : !hasProba())) {
            throw UnsupportedModel.unsupported(
                    f.path() + " with a " + built.type() + ", which is not a binary classifier");
        }
    }

    boolean hasDecision() {
        return estimator == null || estimator.can(PredictMethod.DECISION_FUNCTION);
    }

    boolean hasProba() {
        return estimator == null
                || (estimator.can(PredictMethod.PREDICT_PROBA) && estimator.width(PredictMethod.PREDICT_PROBA) == 2);
    }

    double threshold() {
        return hasDecision() ? 0 : 0.5;
    }

    private static double[] same(int rows, double value) {
        double[] values = new double[rows];
        Arrays.fill(values, value);
        return values;
    }

    double[] scores(DataTable table) {
        if (estimator == null) {
            return same(table.rows(), always);
        }
        return hasDecision()
                ? estimator.checked(PredictMethod.DECISION_FUNCTION, table).values()
                : proba(table);
    }

    double[] proba(DataTable table) {
        return estimator == null
                ? same(table.rows(), always)
                : estimator
                        .checked(PredictMethod.PREDICT_PROBA, table)
                        .select(new int[] {1})
                        .values();
    }

    /** The predicted class, 0 or 1. */
    double[] predicted(DataTable table) {
        return estimator == null
                ? same(table.rows(), always)
                : estimator.checked(PredictMethod.PREDICT, table).values();
    }

    int features() {
        return estimator == null ? -1 : estimator.features();
    }

    static List<BinaryMember> members(EstimatorAttributes f, Estimator.Factory factory) {
        List<BinaryMember> members = new ArrayList<>();
        for (Object member : f.list("estimators_")) {
            members.add(new BinaryMember(f, member, factory));
        }
        if (members.isEmpty()) {
            throw UnsupportedModel.unsupported(f.path() + " has no estimators");
        }
        return members;
    }

    static int features(EstimatorAttributes f, List<BinaryMember> members) {
        return f.contains("n_features_in_") ? f.features() : members.get(0).features();
    }
}
