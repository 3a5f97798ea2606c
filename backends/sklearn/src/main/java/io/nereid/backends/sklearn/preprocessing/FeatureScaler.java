// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.preprocessing;

import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.Invertible;
import io.nereid.backends.sklearn.estimator.Transformer;
import io.nereid.backends.sklearn.pickle.PythonValues;
import io.nereid.backends.sklearn.pickle.UnsupportedModel;
import org.jspecify.annotations.Nullable;

/**
 * {@code StandardScaler}, {@code RobustScaler}, {@code MaxAbsScaler} and {@code MinMaxScaler}: a linear function of
 * each column, {@code (x - minus) / divided * times + plus}, then clipped. Steps that a scaler does not have are null.
 * They are not merged into one factor and one offset, so that results are equal to scikit-learn's to the last bit.
 * Immutable.
 */
public final class FeatureScaler extends Transformer implements Invertible {
    private final double @Nullable [] minus;
    private final double @Nullable [] divided;
    private final double @Nullable [] times;
    private final double @Nullable [] plus;
    private final double low;
    private final double high;

    private FeatureScaler(
            EstimatorAttributes f,
            int width,
            double @Nullable [] minus,
            double @Nullable [] divided,
            double @Nullable [] times,
            double @Nullable [] plus,
            double low,
            double high) {
        super(f.type(), width, width);
        this.minus = minus;
        this.divided = divided;
        this.times = times;
        this.plus = plus;
        this.low = low;
        this.high = high;
    }

    private static FeatureScaler centred(
            EstimatorAttributes f, double @Nullable [] minus, double @Nullable [] divided) {
        int width = minus != null ? minus.length : divided != null ? divided.length : f.features();
        if (minus != null && divided != null && minus.length != divided.length) {
            throw UnsupportedModel.corrupt(f.path() + " has different numbers of centres and scales");
        }
        return new FeatureScaler(
                f, width, minus, divided, null, null, Double.NEGATIVE_INFINITY, Double.POSITIVE_INFINITY);
    }

    public static FeatureScaler standard(EstimatorAttributes f) {
        boolean mean = f.flag("with_mean", true);
        boolean std = f.flag("with_std", true);
        return centred(f, mean ? f.doubles("mean_") : null, std ? f.doubles("scale_") : null);
    }

    public static FeatureScaler robust(EstimatorAttributes f) {
        boolean centre = f.flag("with_centering", true);
        boolean scale = f.flag("with_scaling", true);
        return centred(f, centre ? f.doubles("center_") : null, scale ? f.doubles("scale_") : null);
    }

    public static FeatureScaler maxAbs(EstimatorAttributes f) {
        return centred(f, null, f.doubles("scale_"));
    }

    public static FeatureScaler minMax(EstimatorAttributes f) {
        double[] scale = f.doubles("scale_");
        double[] min = f.doubles(scale.length, "min_");
        double low = Double.NEGATIVE_INFINITY;
        double high = Double.POSITIVE_INFINITY;
        if (f.flag("clip", false)) {
            low = PythonValues.number(
                    EstimatorAttributes.asList(f.required("feature_range")).get(0));
            high = PythonValues.number(
                    EstimatorAttributes.asList(f.required("feature_range")).get(1));
        }
        return new FeatureScaler(f, scale.length, null, null, scale, min, low, high);
    }

    @Override
    public boolean quick() {
        return true;
    }

    @Override
    public DataTable transform(DataTable table) {
        double[] x = table.numbers(type());
        DataTable result = DataTable.of(table.rows(), table.columns());
        double[] y = result.values();
        int columns = table.columns();
        for (int from = 0; from < x.length; from += columns) {
            for (int c = 0; c < columns; c++) {
                double v = x[from + c];
                v = minus == null ? v : v - minus[c];
                v = divided == null ? v : v / divided[c];
                v = times == null ? v : v * times[c];
                v = plus == null ? v : v + plus[c];
                y[from + c] = v < low ? low : v > high ? high : v;
            }
        }
        return result;
    }

    @Override
    public DataTable inverse(DataTable table) {
        double[] y = table.numbers(type());
        DataTable result = DataTable.of(table.rows(), table.columns());
        for (int i = 0; i < y.length; i++) {
            int c = i % table.columns();
            double v = plus == null ? y[i] : y[i] - plus[c];
            v = times == null ? v : v / times[c];
            v = divided == null ? v : v * divided[c];
            result.values()[i] = minus == null ? v : v + minus[c];
        }
        return result;
    }
}
