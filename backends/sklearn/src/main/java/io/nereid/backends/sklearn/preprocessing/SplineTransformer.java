// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.preprocessing;

import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.MatrixOps;
import io.nereid.backends.sklearn.estimator.Transformer;
import io.nereid.backends.sklearn.pickle.UnsupportedModel;
import io.nereid.base.ServingException;
import java.util.ArrayList;
import java.util.List;

/**
 * {@code SplineTransformer}: the values of the B-splines of each column, by the recursion of de Boor and Cox. Immutable.
 */
public final class SplineTransformer extends Transformer {
    private static final int MOST_DEGREE = 64;

    /** What happens outside of the knots, by the parameter {@code extrapolation}. */
    private enum Outside {
        ERROR,
        CONSTANT,
        LINEAR,
        CONTINUE,
        PERIODIC
    }

    private final List<Spline> splines;
    private final Outside outside;
    private final boolean zeros;
    private final boolean bias;
    private final int degree;
    private final int each;

    private SplineTransformer(
            EstimatorAttributes f, List<Spline> splines, Outside outside, boolean zeros, boolean bias, int degree) {
        super(f.type(), splines.size(), splines.size() * (splines.get(0).width() - (bias ? 0 : 1)));
        this.splines = splines;
        this.outside = outside;
        this.zeros = zeros;
        this.bias = bias;
        this.degree = degree;
        this.each = splines.get(0).width();
    }

    /**
     * The splines of one column, {@code scipy.interpolate.BSpline}: sums of basis splines. Immutable.
     *
     * @param knots ascending
     * @param weights by basis spline, its weight in each result
     * @param degree the degree of the polynomials between knots
     */
    private record Spline(double[] knots, double[][] weights, int degree) {
        int width() {
            return weights[0].length;
        }

        double low() {
            return knots[degree];
        }

        double high() {
            return knots[knots.length - 1 - degree];
        }

        /** Adds the values at {@code x}, or those of the first derivative, to {@code to}. */
        void evaluate(double x, boolean derivative, double[] to) {
            int last = knots.length - degree - 2;
            int interval = degree;
            while (interval < last && x >= knots[interval + 1]) {
                interval++;
            }
            double[] basis = derivative ? slopes(x, interval) : basis(x, interval, degree);
            for (int i = 0; i <= degree; i++) {
                double[] row = weights[interval - degree + i];
                for (int w = 0; w < row.length; w++) {
                    to[w] += row[w] * basis[i];
                }
            }
        }

        /** The values of the {@code of + 1} basis splines of that degree that are not zero in an interval. */
        private double[] basis(double x, int interval, int of) {
            double[] values = new double[of + 1];
            values[0] = 1;
            for (int d = 1; d <= of; d++) {
                double carried = 0;
                for (int i = 0; i < d; i++) {
                    double right = knots[interval + 1 + i];
                    double left = knots[interval + 1 + i - d];
                    double share = right == left ? 0 : values[i] / (right - left);
                    values[i] = carried + share * (right - x);
                    carried = share * (x - left);
                }
                values[d] = carried;
            }
            return values;
        }

        private double[] slopes(double x, int interval) {
            double[] slopes = new double[degree + 1];
            if (degree == 0) {
                return slopes;
            }
            double[] lower = basis(x, interval, degree - 1);
            for (int i = 0; i < degree; i++) {
                double width = knots[interval + 1 + i] - knots[interval + 1 + i - degree];
                double share = width == 0 ? 0 : degree * lower[i] / width;
                slopes[i] -= share;
                slopes[i + 1] += share;
            }
            return slopes;
        }
    }

    /** The transformer of its attributes. */
    public static SplineTransformer of(EstimatorAttributes f) {
        int degree = f.integer("degree", 3);
        if (degree < 0 || degree > MOST_DEGREE) {
            throw f.unsupported("degree");
        }
        List<Spline> splines = new ArrayList<>();
        for (Object one : f.list("bsplines_")) {
            EstimatorAttributes s = new EstimatorAttributes(EstimatorAttributes.asObject(one));
            double[] knots = s.doubles("t", "_t");
            Spline spline = new Spline(knots, MatrixOps.rows(s, knots.length - degree - 1, -1, "c", "_c"), degree);
            if (knots.length < 2 * degree + 2
                    || spline.width() < 1
                    || spline.width() != (splines.isEmpty() ? spline : splines.get(0)).width()) {
                throw UnsupportedModel.corrupt(f.path() + " has a spline without knots, or splines of different sizes");
            }
            splines.add(spline);
        }
        if (splines.isEmpty()) {
            throw UnsupportedModel.corrupt(f.path() + " has no splines");
        }
        Outside outside = switch (f.text("extrapolation", "constant")) {
            case "error" -> Outside.ERROR;
            case "constant" -> Outside.CONSTANT;
            case "linear" -> Outside.LINEAR;
            case "continue" -> Outside.CONTINUE;
            case "periodic" -> Outside.PERIODIC;
            default -> throw f.unsupported("extrapolation");
        };
        return new SplineTransformer(
                f,
                List.copyOf(splines),
                outside,
                f.text("handle_missing", "error").equals("zeros"),
                f.flag("include_bias", true),
                degree);
    }

    @Override
    public DataTable transform(DataTable table) {
        double[] x = zeros ? table.numbers(type()) : table.finite(type());
        DataTable result = DataTable.of(table.rows(), width(methods().get(0)));
        double[] values = new double[each];
        int kept = bias ? each : each - 1;
        int features = splines.size();
        // scikit-learn raises a degree below 2 for its linear continuation, and keeps it for the columns that follow.
        int order = degree;
        for (int c = 0; c < features; c++) {
            int edge = order;
            order = outside == Outside.LINEAR && order <= 1 ? order + 1 : order;
            for (int r = 0; r < table.rows(); r++) {
                java.util.Arrays.fill(values, 0);
                double v = x[r * features + c];
                if (!Double.isNaN(v)) {
                    value(v, splines.get(c), edge, order, values);
                }
                System.arraycopy(values, 0, result.values(), (r * features + c) * kept, kept);
            }
        }
        return result;
    }

    private void value(double x, Spline spline, int edge, int order, double[] to) {
        double low = spline.knots[edge];
        double high = spline.knots[spline.knots.length - 1 - edge];
        boolean within = x >= low && x <= high;
        switch (outside) {
            case ERROR -> {
                if (!(x >= spline.low() && x <= spline.high())) {
                    throw ServingException.invalidArgument("X contains values beyond the limits of the knots: " + x
                            + " (expected by " + type() + ": " + spline.low() + " to " + spline.high() + ")");
                }
                spline.evaluate(x, false, to);
            }
            case CONTINUE -> spline.evaluate(x, false, to);
            case PERIODIC -> {
                double period = spline.high() - spline.low();
                double rest = (x - spline.low()) % period;
                spline.evaluate(period > 0 ? spline.low() + (rest < 0 ? rest + period : rest) : 0, false, to);
            }
            case CONSTANT -> edge(Math.min(Math.max(x, low), high), x, within, spline, edge, to);
            case LINEAR -> {
                if (within) {
                    spline.evaluate(x, false, to);
                } else {
                    linear(x, low, high, spline, order, to);
                }
            }
        }
    }

    /** The values at the nearest end, of the splines that reach it. */
    private void edge(double at, double x, boolean within, Spline spline, int edge, double[] to) {
        spline.evaluate(at, false, to);
        if (within) {
            return;
        }
        for (int w = 0; w < to.length; w++) {
            boolean reaches = x < at ? w < edge : w >= to.length - edge;
            to[w] = reaches ? to[w] : 0;
        }
    }

    /** Continues the first and the last splines along their slope at the ends. */
    private static void linear(double x, double low, double high, Spline spline, int order, double[] to) {
        double[] values = new double[to.length];
        double[] slopes = new double[to.length];
        // With the raised degree the ends may cross, so that a value is beyond both; the upper end then counts last.
        for (double end : new double[] {low, high}) {
            boolean below = end == low && x < low;
            if (!below && !(end == high && x > high)) {
                continue;
            }
            java.util.Arrays.fill(values, 0);
            java.util.Arrays.fill(slopes, 0);
            spline.evaluate(end, false, values);
            spline.evaluate(end, true, slopes);
            for (int j = 0; j < Math.min(order, to.length); j++) {
                int w = below ? j : to.length - 1 - j;
                to[w] = values[w] + (x - end) * slopes[w];
            }
        }
    }
}
