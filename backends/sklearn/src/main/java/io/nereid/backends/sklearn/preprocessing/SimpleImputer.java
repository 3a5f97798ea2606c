// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.preprocessing;

import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.MatrixOps;
import io.nereid.backends.sklearn.estimator.Transformer;
import io.nereid.backends.sklearn.pickle.PythonValues;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * {@code SimpleImputer}: replaces missing values, and optionally adds indicator columns of where they were. Immutable.
 */
public final class SimpleImputer extends Transformer {
    private final Object missing;
    private final Object[] fills;
    private final int[] kept;
    private final int[] indicated;

    private SimpleImputer(EstimatorAttributes f, Object missing, Object[] fills, int[] kept, int[] indicated) {
        super(f.type(), fills.length, kept.length + indicated.length);
        this.missing = missing;
        this.fills = fills;
        this.kept = kept;
        this.indicated = indicated;
    }

    public static SimpleImputer of(EstimatorAttributes f) {
        Object[] fills = f.array("statistics_").values();
        boolean keeps = f.text("strategy", "mean").equals("constant") || f.flag("keep_empty_features", false);
        List<Integer> kept = new ArrayList<>();
        for (int i = 0; i < fills.length; i++) {
            if (!(fills[i] instanceof String)) {
                fills[i] = PythonValues.number(fills[i]);
            }
            if (keeps || fills[i] instanceof String || !Double.isNaN((Double) fills[i])) {
                kept.add(i);
            }
        }
        int[] indicated = {};
        if (f.flag("add_indicator", false)) {
            indicated = new EstimatorAttributes(f.object("indicator_"))
                    .array("features_")
                    .ints();
        }
        return new SimpleImputer(f, missing(f), fills, MatrixOps.ints(kept), indicated);
    }

    /** The placeholder of a missing value: a text, or a number, possibly NaN. */
    static Object missing(EstimatorAttributes f) {
        Object missing = f.any("missing_values");
        return missing instanceof String s ? s : missing == null ? (Object) Double.NaN : PythonValues.number(missing);
    }

    /** Whether a cell has no value; requests have an empty text where a text is missing. */
    private boolean hole(double v, @Nullable String text) {
        if (missing instanceof String s) {
            return s.equals(text);
        }
        double m = (Double) missing;
        return Double.isNaN(m) ? Double.isNaN(v) && (text == null || text.isEmpty()) : text == null && v == m;
    }

    @Override
    public boolean quick() {
        return true;
    }

    @Override
    public DataTable transform(DataTable table) {
        int width = kept.length + indicated.length;
        DataTable result = DataTable.of(table.rows(), width);
        double[] y = result.values();
        String[] texts = table.texts() == null ? null : new String[y.length];
        int at = 0;
        for (int r = 0; r < table.rows(); r++) {
            for (int c : kept) {
                double v = table.at(r, c);
                String text = table.text(r, c);
                if (hole(v, text)) {
                    text = fills[c] instanceof String s ? s : null;
                    v = fills[c] instanceof Double d ? d : Double.NaN;
                }
                y[at] = v;
                if (text != null) {
                    texts = texts == null ? new String[y.length] : texts;
                    texts[at] = text;
                }
                at++;
            }
            for (int c : indicated) {
                y[at++] = hole(table.at(r, c), table.text(r, c)) ? 1 : 0;
            }
        }
        return new DataTable(table.rows(), width, y, texts);
    }
}
