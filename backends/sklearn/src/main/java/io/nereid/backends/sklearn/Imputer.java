// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn;

import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * {@code SimpleImputer}: replaces missing values, and optionally adds indicator columns of where they were. Immutable.
 */
final class Imputer extends Transformer {
    private final Object missing;
    private final Object[] fills;
    private final int[] kept;
    private final int[] indicated;

    private Imputer(Fields f, Object missing, Object[] fills, int[] kept, int[] indicated) {
        super(f.type(), fills.length, kept.length + indicated.length);
        this.missing = missing;
        this.fills = fills;
        this.kept = kept;
        this.indicated = indicated;
    }

    static Imputer of(Fields f) {
        Object[] fills = f.array("statistics_").values();
        boolean keeps = f.text("strategy", "mean").equals("constant") || f.flag("keep_empty_features", false);
        List<Integer> kept = new ArrayList<>();
        for (int i = 0; i < fills.length; i++) {
            if (!(fills[i] instanceof String)) {
                fills[i] = Values.number(fills[i]);
            }
            if (keeps || fills[i] instanceof String || !Double.isNaN((Double) fills[i])) {
                kept.add(i);
            }
        }
        int[] indicated = {};
        if (f.flag("add_indicator", false)) {
            indicated = new Fields(f.object("indicator_")).array("features_").ints();
        }
        return new Imputer(f, missing(f), fills, Steps.ints(kept), indicated);
    }

    /** The placeholder of a missing value: a text, or a number, possibly NaN. */
    static Object missing(Fields f) {
        Object missing = f.any("missing_values");
        return missing instanceof String s ? s : missing == null ? (Object) Double.NaN : Values.number(missing);
    }

    private boolean hole(double v, @Nullable String text) {
        if (missing instanceof String s) {
            return s.equals(text);
        }
        double m = (Double) missing;
        return text == null && (Double.isNaN(m) ? Double.isNaN(v) : v == m);
    }

    @Override
    boolean quick() {
        return true;
    }

    @Override
    Table transform(Table table) {
        int width = kept.length + indicated.length;
        Table result = Table.of(table.rows(), width);
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
        return new Table(table.rows(), width, y, texts);
    }
}
