// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.impute;

import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.MatrixOps;
import io.nereid.backends.sklearn.estimator.Transformer;
import io.nereid.backends.sklearn.pickle.UnsupportedModel;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * {@code KNNImputer}: a missing value is the mean of the nearest training rows that have it, by the Euclidean distance
 * over the columns that both rows have, scaled to all columns. Immutable.
 */
public final class KnnImputer extends Transformer {
    private final MissingMask mask;
    private final double[][] points;
    private final boolean[][] holes;
    private final int neighbours;
    private final boolean byDistance;
    private final boolean[] fitted;
    private final int[] kept;
    private final int[] indicated;

    private KnnImputer(
            EstimatorAttributes f,
            double[][] points,
            boolean[][] holes,
            boolean[] fitted,
            int[] kept,
            int[] indicated) {
        super(f.type(), points[0].length, kept.length + indicated.length);
        this.mask = MissingMask.of(f);
        this.points = points;
        this.holes = holes;
        this.fitted = fitted;
        this.kept = kept;
        this.indicated = indicated;
        this.neighbours = f.integer("n_neighbors", 5);
        this.byDistance = f.text("weights", "?").equals("distance");
        if (!byDistance && !f.text("weights", "?").equals("uniform")) {
            throw f.unsupported("weights");
        }
        if (!f.text("metric", "nan_euclidean").equals("nan_euclidean")) {
            throw f.unsupported("metric");
        }
        if (neighbours < 1) {
            throw f.unsupported("n_neighbors");
        }
    }

    /** The imputer of its attributes. */
    public static KnnImputer of(EstimatorAttributes f) {
        double[][] points = MatrixOps.rows(f, -1, -1, "_fit_X");
        if (points.length == 0 || points[0].length == 0) {
            throw UnsupportedModel.corrupt(f.path() + " has no samples");
        }
        int columns = points[0].length;
        MissingMask mask = MissingMask.of(f);
        boolean[][] holes = new boolean[points.length][columns];
        boolean[] fitted = new boolean[columns];
        for (int i = 0; i < points.length; i++) {
            for (int c = 0; c < columns; c++) {
                holes[i][c] = mask.missing(points[i][c], null);
                fitted[c] |= !holes[i][c];
            }
        }
        List<Integer> kept = new ArrayList<>();
        for (int c = 0; c < columns; c++) {
            if (fitted[c] || f.flag("keep_empty_features", false)) {
                kept.add(c);
            }
        }
        int[] indicated = MatrixOps.within(MissingMask.indicated(f), columns);
        return new KnnImputer(f, points, holes, fitted, MatrixOps.ints(kept), indicated);
    }

    @Override
    public DataTable transform(DataTable table) {
        double[] x = table.numbers(type());
        int columns = fitted.length;
        DataTable filled = DataTable.of(table.rows(), columns);
        boolean[] hole = new boolean[columns];
        double[] distances = new double[points.length];
        for (int r = 0; r < table.rows(); r++) {
            boolean any = false;
            for (int c = 0; c < columns; c++) {
                double v = x[r * columns + c];
                hole[c] = mask.missing(v, null);
                any |= hole[c] && fitted[c];
                // A column without any value in training is dropped, or zero.
                filled.values()[r * columns + c] = fitted[c] ? v : 0;
            }
            if (!any) {
                continue;
            }
            for (int i = 0; i < points.length; i++) {
                distances[i] = distance(x, r * columns, hole, i);
            }
            for (int c = 0; c < columns; c++) {
                if (hole[c] && fitted[c]) {
                    filled.values()[r * columns + c] = impute(c, distances);
                }
            }
        }
        DataTable result = filled.select(kept);
        return indicated.length == 0
                ? result
                : DataTable.beside(table.rows(), List.of(result, mask.indicator(table, indicated)));
    }

    /** NaN when no column is present in both rows. */
    private double distance(double[] x, int from, boolean[] hole, int point) {
        double sum = 0;
        int present = 0;
        for (int c = 0; c < hole.length; c++) {
            if (!hole[c] && !holes[point][c]) {
                double d = x[from + c] - points[point][c];
                sum += d * d;
                present++;
            }
        }
        return present == 0 ? Double.NaN : Math.sqrt(sum / present * hole.length);
    }

    private double impute(int column, double[] distances) {
        int[] nearest = new int[neighbours];
        double[] near = new double[neighbours];
        Arrays.fill(near, Double.POSITIVE_INFINITY);
        int found = 0;
        double sum = 0;
        int donors = 0;
        for (int i = 0; i < points.length; i++) {
            if (holes[i][column]) {
                continue;
            }
            sum += points[i][column];
            donors++;
            double d = distances[i];
            if (Double.isNaN(d) || (found == neighbours && d >= near[found - 1])) {
                continue;
            }
            int at = Math.min(found, neighbours - 1);
            while (at > 0 && near[at - 1] > d) {
                near[at] = near[at - 1];
                nearest[at] = nearest[at - 1];
                at--;
            }
            near[at] = d;
            nearest[at] = i;
            found = Math.min(found + 1, neighbours);
        }
        if (found == 0) {
            return sum / donors;
        }
        double weighted = 0;
        double weights = 0;
        for (int i = 0; i < found; i++) {
            // Rows at distance 0 count alone.
            double weight = !byDistance ? 1 : near[0] == 0 ? (near[i] == 0 ? 1 : 0) : 1 / near[i];
            weighted += weight * points[nearest[i]][column];
            weights += weight;
        }
        return weighted / weights;
    }
}
