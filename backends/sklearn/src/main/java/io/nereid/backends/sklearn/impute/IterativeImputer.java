// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.impute;

import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.Estimator;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.MatrixOps;
import io.nereid.backends.sklearn.estimator.PredictMethod;
import io.nereid.backends.sklearn.estimator.Transformer;
import io.nereid.backends.sklearn.pickle.NdArray;
import io.nereid.backends.sklearn.pickle.PyObject;
import io.nereid.backends.sklearn.pickle.PythonValues;
import io.nereid.backends.sklearn.pickle.UnsupportedModel;
import java.util.ArrayList;
import java.util.List;

/**
 * {@code IterativeImputer}: after a first imputation, regressors predict the missing values of each column from the other
 * columns, in the rounds of the training. Immutable.
 */
public final class IterativeImputer extends Transformer {
    private final MissingMask mask;
    private final Estimator initial;
    private final List<Step> steps;
    private final double[] lowest;
    private final double[] highest;
    private final int[] kept;
    private final boolean[] empty;
    private final int[] indicated;

    /**
     * The imputation of one column.
     *
     * @param column its place among the kept columns
     * @param from the columns that it is predicted from
     */
    private record Step(int column, int[] from, Estimator regressor) {}

    private IterativeImputer(
            EstimatorAttributes f,
            Estimator initial,
            List<Step> steps,
            double[] lowest,
            double[] highest,
            int[] kept,
            boolean[] empty,
            int[] indicated) {
        super(f.type(), empty.length, kept.length + indicated.length);
        this.mask = MissingMask.of(f);
        this.initial = initial;
        this.steps = steps;
        this.lowest = lowest;
        this.highest = highest;
        this.kept = kept;
        this.empty = empty;
        this.indicated = indicated;
    }

    /** The imputer of its attributes. */
    public static IterativeImputer of(EstimatorAttributes f, Estimator.Factory factory) {
        if (f.flag("sample_posterior", false)) {
            throw UnsupportedModel.unsupported(
                    f.path() + " with sample_posterior=True is not supported: its results are random");
        }
        EstimatorAttributes first = new EstimatorAttributes(f.object("initial_imputer_"));
        Object[] statistics = first.array("statistics_").values();
        boolean keeps = f.flag("keep_empty_features", false);
        boolean[] empty = f.any("_is_empty_feature") instanceof NdArray given ? flags(given) : null;
        if (empty == null) {
            empty = new boolean[statistics.length];
            for (int c = 0; c < empty.length; c++) {
                empty[c] = Double.isNaN(PythonValues.number(statistics[c]));
            }
        }
        List<Integer> kept = new ArrayList<>();
        for (int c = 0; c < empty.length; c++) {
            if (keeps || !empty[c]) {
                kept.add(c);
            }
        }
        Estimator initial = factory.build(first.object());
        if (empty.length != statistics.length || initial.width(PredictMethod.TRANSFORM) != kept.size()) {
            throw UnsupportedModel.corrupt(f.path() + " has an initial imputer of other columns");
        }
        List<Step> steps = new ArrayList<>();
        if (f.integer("n_iter_", 0) > 0) {
            for (Object one : f.list("imputation_sequence_")) {
                steps.add(step(one, kept.size(), factory));
            }
        }
        return new IterativeImputer(
                f,
                initial,
                List.copyOf(steps),
                limits(f, "_min_value", kept.size(), Double.NEGATIVE_INFINITY),
                limits(f, "_max_value", kept.size(), Double.POSITIVE_INFINITY),
                MatrixOps.ints(kept),
                empty,
                MatrixOps.within(MissingMask.indicated(f), empty.length));
    }

    private static boolean[] flags(NdArray array) {
        int[] values = array.ints();
        boolean[] flags = new boolean[values.length];
        for (int i = 0; i < flags.length; i++) {
            flags[i] = values[i] != 0;
        }
        return flags;
    }

    private static double[] limits(EstimatorAttributes f, String name, int columns, double none) {
        if (f.has(name)) {
            return f.doubles(columns, name);
        }
        double[] limits = new double[columns];
        java.util.Arrays.fill(limits, none);
        return limits;
    }

    /** A step is a named tuple: the column, the columns it is predicted from, the regressor. */
    private static Step step(Object value, int columns, Estimator.Factory factory) {
        List<Object> parts = value instanceof PyObject o && o.arguments().size() == 3
                ? o.arguments()
                : EstimatorAttributes.asList(value);
        if (parts.size() != 3 || !(parts.get(1) instanceof NdArray from)) {
            throw UnsupportedModel.corrupt("an IterativeImputer has a step that is not a column and its regressor");
        }
        int column = (int) PythonValues.number(parts.get(0));
        MatrixOps.within(new int[] {column}, columns);
        Estimator regressor = factory.build(parts.get(2));
        if (!regressor.can(PredictMethod.PREDICT) || regressor.width(PredictMethod.PREDICT) > 1) {
            throw UnsupportedModel.unsupported("an IterativeImputer with a " + regressor.type() + " is not supported");
        }
        return new Step(column, MatrixOps.within(from.ints(), columns), regressor);
    }

    @Override
    public DataTable transform(DataTable table) {
        DataTable first = initial.checked(PredictMethod.TRANSFORM, table);
        int rows = table.rows();
        int width = kept.length;
        double[] filled = first.values().clone();
        boolean[] holes = new boolean[filled.length];
        boolean all = true;
        for (int i = 0; i < holes.length; i++) {
            int column = kept[i % width];
            holes[i] = !empty[column] && mask.missing(table.at(i / width, column), table.text(i / width, column));
            all &= holes[i];
        }
        DataTable result = new DataTable(rows, width, filled, null);
        // Rows without any value at all stay as they are imputed first, as in scikit-learn.
        for (int s = 0; !all && s < steps.size(); s++) {
            impute(steps.get(s), result, holes);
        }
        return indicated.length == 0
                ? result
                : DataTable.beside(rows, List.of(result, mask.indicator(table, indicated)));
    }

    private void impute(Step step, DataTable filled, boolean[] holes) {
        int width = kept.length;
        List<Integer> found = new ArrayList<>();
        for (int r = 0; r < filled.rows(); r++) {
            if (holes[r * width + step.column]) {
                found.add(r);
            }
        }
        if (found.isEmpty()) {
            return;
        }
        DataTable rows = DataTable.of(found.size(), step.from.length);
        for (int i = 0; i < found.size(); i++) {
            for (int c = 0; c < step.from.length; c++) {
                rows.values()[i * step.from.length + c] = filled.at(found.get(i), step.from[c]);
            }
        }
        double[] predicted = step.regressor.checked(PredictMethod.PREDICT, rows).values();
        for (int i = 0; i < predicted.length; i++) {
            double limited = Math.min(Math.max(predicted[i], lowest[step.column]), highest[step.column]);
            filled.values()[found.get(i) * width + step.column] = limited;
        }
    }
}
