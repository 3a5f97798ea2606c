// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.preprocessing;

import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.Invertible;
import io.nereid.backends.sklearn.estimator.MatrixOps;
import io.nereid.backends.sklearn.estimator.NormalDistribution;
import io.nereid.backends.sklearn.estimator.Transformer;
import io.nereid.backends.sklearn.pickle.UnsupportedModel;

/**
 * {@code QuantileTransformer}: each column's quantiles are mapped to those of a uniform or a normal distribution, with
 * linear interpolation between them. Immutable.
 */
public final class QuantileTransformer extends Transformer implements Invertible {
    /** Probabilities nearer to 0 or 1 are replaced by this distance from them, so that no result is infinite. */
    private static final double BOUND = 1e-7;

    private static final double LOWEST = NormalDistribution.quantile(BOUND - Math.ulp(1.0));
    private static final double HIGHEST = NormalDistribution.quantile(1 - (BOUND - Math.ulp(1.0)));

    /** By column, the quantiles of its values, ascending. */
    private final double[][] quantiles;

    private final double[] references;
    private final boolean normal;

    private QuantileTransformer(EstimatorAttributes f, double[][] quantiles, double[] references, boolean normal) {
        super(f.type(), quantiles.length, quantiles.length);
        this.quantiles = quantiles;
        this.references = references;
        this.normal = normal;
    }

    /** The transformer of its attributes. */
    public static QuantileTransformer of(EstimatorAttributes f) {
        double[] references = f.doubles("references_");
        double[][] rows = MatrixOps.rows(f, references.length, -1, "quantiles_");
        if (rows.length == 0) {
            throw UnsupportedModel.corrupt(f.path() + " has no quantiles");
        }
        double[][] columns = new double[rows[0].length][rows.length];
        for (int q = 0; q < rows.length; q++) {
            for (int c = 0; c < columns.length; c++) {
                columns[c][q] = rows[q][c];
            }
        }
        String distribution = f.text("output_distribution", "uniform");
        if (!distribution.equals("uniform") && !distribution.equals("normal")) {
            throw f.unsupported("output_distribution");
        }
        return new QuantileTransformer(f, columns, references, distribution.equals("normal"));
    }

    @Override
    public DataTable transform(DataTable table) {
        double[] x = table.numbers(type());
        DataTable result = DataTable.of(table.rows(), table.columns());
        for (int i = 0; i < x.length; i++) {
            result.values()[i] = Double.isNaN(x[i]) ? x[i] : forward(x[i], quantiles[i % quantiles.length]);
        }
        return result;
    }

    private double forward(double x, double[] from) {
        double low = from[0];
        double high = from[from.length - 1];
        double p;
        if (normal ? x - BOUND < low : x == low) {
            p = 0;
        } else if (normal ? x + BOUND > high : x == high) {
            p = 1;
        } else {
            // The mean of both directions: of equal quantiles, one direction finds the last and the other the first.
            p = 0.5 * (interpolate(x, from, references, false) - interpolate(-x, from, references, true));
        }
        if (!normal) {
            return p;
        }
        return Math.min(Math.max(NormalDistribution.quantile(p), LOWEST), HIGHEST);
    }

    @Override
    public DataTable inverse(DataTable table) {
        double[] y = table.numbers(type());
        DataTable result = DataTable.of(table.rows(), table.columns());
        for (int i = 0; i < y.length; i++) {
            result.values()[i] = Double.isNaN(y[i]) ? y[i] : backward(y[i], quantiles[i % quantiles.length]);
        }
        return result;
    }

    private double backward(double y, double[] to) {
        double p = normal ? NormalDistribution.cdf(y) : y;
        if (normal ? p - BOUND < 0 : p == 0) {
            return to[0];
        }
        if (normal ? p + BOUND > 1 : p == 1) {
            return to[to.length - 1];
        }
        return interpolate(p, references, to, false);
    }

    /**
     * Linear interpolation as by {@code numpy.interp}; outside of the points, the value of the nearest end.
     *
     * @param mirrored whether points and values are taken with the opposite sign, in the opposite order
     */
    private static double interpolate(double x, double[] points, double[] values, boolean mirrored) {
        int n = points.length;
        // The last point that is not above x.
        int low = -1;
        int high = n;
        while (high - low > 1) {
            int middle = (low + high) >>> 1;
            if (at(points, middle, mirrored) <= x) {
                low = middle;
            } else {
                high = middle;
            }
        }
        if (low < 0) {
            return at(values, 0, mirrored);
        }
        double from = at(points, low, mirrored);
        double value = at(values, low, mirrored);
        if (low == n - 1 || from == x) {
            return value;
        }
        double slope = (at(values, low + 1, mirrored) - value) / (at(points, low + 1, mirrored) - from);
        return slope * (x - from) + value;
    }

    private static double at(double[] array, int i, boolean mirrored) {
        return mirrored ? -array[array.length - 1 - i] : array[i];
    }
}
