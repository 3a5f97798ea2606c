// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn;

import org.jspecify.annotations.Nullable;

/**
 * {@code StandardScaler}, {@code RobustScaler}, {@code MaxAbsScaler} and {@code MinMaxScaler}: a linear function of
 * each column, {@code (x - minus) / divided * times + plus}, then clipped. Steps that a scaler does not have are null.
 * They are not merged into one factor and one offset, so that results are equal to scikit-learn's to the last bit.
 * Immutable.
 */
final class Scaling extends Transformer {
    private final double @Nullable [] minus;
    private final double @Nullable [] divided;
    private final double @Nullable [] times;
    private final double @Nullable [] plus;
    private final double low;
    private final double high;

    private Scaling(
            Fields f,
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

    private static Scaling centred(Fields f, double @Nullable [] minus, double @Nullable [] divided) {
        int width = minus != null ? minus.length : divided != null ? divided.length : f.features();
        if (minus != null && divided != null && minus.length != divided.length) {
            throw Refusal.corrupt(f.path() + " has different numbers of centres and scales");
        }
        return new Scaling(f, width, minus, divided, null, null, Double.NEGATIVE_INFINITY, Double.POSITIVE_INFINITY);
    }

    static Scaling standard(Fields f) {
        boolean mean = f.flag("with_mean", true);
        boolean std = f.flag("with_std", true);
        return centred(f, mean ? f.doubles("mean_") : null, std ? f.doubles("scale_") : null);
    }

    static Scaling robust(Fields f) {
        boolean centre = f.flag("with_centering", true);
        boolean scale = f.flag("with_scaling", true);
        return centred(f, centre ? f.doubles("center_") : null, scale ? f.doubles("scale_") : null);
    }

    static Scaling maxAbs(Fields f) {
        return centred(f, null, f.doubles("scale_"));
    }

    static Scaling minMax(Fields f) {
        double[] scale = f.doubles("scale_");
        double[] min = f.doubles(scale.length, "min_");
        double low = Double.NEGATIVE_INFINITY;
        double high = Double.POSITIVE_INFINITY;
        if (f.flag("clip", false)) {
            low = Values.number(Fields.asList(f.required("feature_range")).get(0));
            high = Values.number(Fields.asList(f.required("feature_range")).get(1));
        }
        return new Scaling(f, scale.length, null, null, scale, min, low, high);
    }

    @Override
    boolean quick() {
        return true;
    }

    @Override
    Table transform(Table table) {
        double[] x = table.numbers(type());
        Table result = Table.of(table.rows(), table.columns());
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
}
