// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.isotonic;

import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.Estimator;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.PredictMethod;
import io.nereid.backends.sklearn.pickle.UnsupportedModel;
import io.nereid.base.ServingException;
import java.util.Arrays;
import java.util.List;

/** {@code IsotonicRegression}: linear interpolation between points; {@code transform} is {@code predict}. Immutable. */
public final class IsotonicRegression extends Estimator {
    private final double[] x;
    private final double[] y;
    private final boolean clips;
    private final boolean raises;

    private IsotonicRegression(EstimatorAttributes f, double[] x, double[] y) {
        super(f.type(), 1);
        this.x = x;
        this.y = y;
        String outside = f.text("out_of_bounds", "nan");
        clips = outside.equals("clip");
        raises = outside.equals("raise");
        if (!clips && !raises && !outside.equals("nan")) {
            throw f.unsupported("out_of_bounds");
        }
    }

    public static IsotonicRegression of(EstimatorAttributes f) {
        double[] x = f.doubles("X_thresholds_", "_necessary_X_");
        double[] y = f.doubles(x.length, "y_thresholds_", "_necessary_y_");
        if (x.length == 0) {
            throw UnsupportedModel.corrupt(f.path() + " has no points");
        }
        for (int i = 1; i < x.length; i++) {
            if (!(x[i] > x[i - 1])) {
                throw UnsupportedModel.corrupt(f.path() + " has points that do not rise");
            }
        }
        return new IsotonicRegression(f, x, y);
    }

    @Override
    public boolean quick() {
        return true;
    }

    @Override
    public List<PredictMethod> methods() {
        return List.of(PredictMethod.PREDICT, PredictMethod.TRANSFORM);
    }

    @Override
    public int width(PredictMethod method) {
        return 0;
    }

    @Override
    public DataTable apply(PredictMethod method, DataTable table) {
        double[] given = table.finite(type());
        double[] result = new double[table.rows()];
        for (int r = 0; r < result.length; r++) {
            result[r] = at(given[r]);
        }
        return DataTable.column(result);
    }

    private double at(double value) {
        int last = x.length - 1;
        if (last == 0) {
            return y[0];
        }
        if ((value < x[0] || value > x[last]) && !clips) {
            if (raises) {
                throw ServingException.invalidArgument(
                        type() + " was given " + value + " (expected: " + x[0] + " to " + x[last] + ")");
            }
            return Double.NaN;
        }
        double in = Math.min(Math.max(value, x[0]), x[last]);
        int found = Arrays.binarySearch(x, in);
        int above = Math.min(Math.max(found < 0 ? -found - 1 : found, 1), last);
        double slope = (y[above] - y[above - 1]) / (x[above] - x[above - 1]);
        return slope * (in - x[above - 1]) + y[above - 1];
    }
}
