// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn;

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

    BinaryMember(Fields f, Object member, Estimator.Factory factory) {
        if (member instanceof PyObject o && o.type().name().equals("_ConstantPredictor")) {
            estimator = null;
            always = new Fields(o).array("y_").doubles()[0];
            return;
        }
        always = 0;
        Estimator built = factory.build(member);
        estimator = built;
        if (built.width(Method.PREDICT) != 0
                || built.type(Method.PREDICT) == DataType.BYTES
                || (hasDecision() ? built.width(Method.DECISION_FUNCTION) != 0 : !hasProba())) {
            throw Refusal.unsupported(
                    f.path() + " with a " + built.type() + ", which is not a binary classifier");
        }
    }

    boolean hasDecision() {
        return estimator == null || estimator.can(Method.DECISION_FUNCTION);
    }

    boolean hasProba() {
        return estimator == null
                || (estimator.can(Method.PREDICT_PROBA) && estimator.width(Method.PREDICT_PROBA) == 2);
    }

    double threshold() {
        return hasDecision() ? 0 : 0.5;
    }

    private static double[] same(int rows, double value) {
        double[] values = new double[rows];
        Arrays.fill(values, value);
        return values;
    }

    double[] scores(Table table) {
        if (estimator == null) {
            return same(table.rows(), always);
        }
        return hasDecision()
                ? estimator.checked(Method.DECISION_FUNCTION, table).values()
                : proba(table);
    }

    double[] proba(Table table) {
        return estimator == null
                ? same(table.rows(), always)
                : estimator
                        .checked(Method.PREDICT_PROBA, table)
                        .select(new int[] {1})
                        .values();
    }

    /** The predicted class, 0 or 1. */
    double[] predicted(Table table) {
        return estimator == null
                ? same(table.rows(), always)
                : estimator.checked(Method.PREDICT, table).values();
    }

    int features() {
        return estimator == null ? -1 : estimator.features();
    }

    static List<BinaryMember> members(Fields f, Estimator.Factory factory) {
        List<BinaryMember> members = new ArrayList<>();
        for (Object member : f.list("estimators_")) {
            members.add(new BinaryMember(f, member, factory));
        }
        if (members.isEmpty()) {
            throw Refusal.unsupported(f.path() + " has no estimators");
        }
        return members;
    }

    static int features(Fields f, List<BinaryMember> members) {
        return f.contains("n_features_in_") ? f.features() : members.get(0).features();
    }
}
