// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn;

import org.jspecify.annotations.Nullable;

/** {@code TfidfTransformer}: term counts weighted by the inverse document frequency, then normalised. Immutable. */
final class TermWeights extends Transformer {
    private final double @Nullable [] rarity;
    private final boolean logarithmic;
    private final String norm;

    private TermWeights(Fields f, double @Nullable [] rarity) {
        super(f.type(), rarity == null ? f.features() : rarity.length, rarity == null ? f.features() : rarity.length);
        this.rarity = rarity;
        logarithmic = f.flag("sublinear_tf", false);
        norm = f.text("norm", "");
        if (f.has("norm") && !norm.equals("l1") && !norm.equals("l2")) {
            throw f.unsupported("norm");
        }
    }

    static TermWeights of(Fields f) {
        if (!f.flag("use_idf", true)) {
            return new TermWeights(f, null);
        }
        if (f.has("idf_")) {
            return new TermWeights(f, f.doubles("idf_"));
        }
        // Older versions store a sparse diagonal matrix, whose data are the weights in order.
        Fields matrix = new Fields(f.object("_idf_diag"));
        return new TermWeights(f, matrix.doubles("data"));
    }

    /** {@code TfidfVectorizer}: counts, then weights. */
    static Estimator vectorizer(Fields f) {
        return Chain.of(f.type(), java.util.List.of(TextCounts.of(f), TermWeights.of(new Fields(f.object("_tfidf")))));
    }

    @Override
    Table transform(Table table) {
        double[] x = table.finite(type());
        Table result = Table.of(table.rows(), table.columns());
        double[] y = result.values();
        for (int i = 0; i < x.length; i++) {
            if (x[i] != 0) {
                double v = logarithmic ? Math.log(x[i]) + 1 : x[i];
                y[i] = rarity == null ? v : v * rarity[i % rarity.length];
            }
        }
        if (!norm.isEmpty()) {
            RowScaling.divide(y, table.columns(), norm, y);
        }
        return result;
    }
}
