// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.featureextraction;

import io.nereid.backends.sklearn.compose.Pipeline;
import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.Estimator;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.Transformer;
import io.nereid.backends.sklearn.preprocessing.Normalizer;
import org.jspecify.annotations.Nullable;

/** {@code TfidfTransformer}: term counts weighted by the inverse document frequency, then normalised. Immutable. */
public final class TfidfTransformer extends Transformer {
    private final double @Nullable [] rarity;
    private final boolean logarithmic;
    private final String norm;

    private TfidfTransformer(EstimatorAttributes f, double @Nullable [] rarity) {
        super(f.type(), rarity == null ? f.features() : rarity.length, rarity == null ? f.features() : rarity.length);
        this.rarity = rarity;
        logarithmic = f.flag("sublinear_tf", false);
        norm = f.text("norm", "");
        if (f.has("norm") && !norm.equals("l1") && !norm.equals("l2")) {
            throw f.unsupported("norm");
        }
    }

    public static TfidfTransformer of(EstimatorAttributes f) {
        if (!f.flag("use_idf", true)) {
            return new TfidfTransformer(f, null);
        }
        if (f.has("idf_")) {
            return new TfidfTransformer(f, f.doubles("idf_"));
        }
        // Older versions store a sparse diagonal matrix, whose data are the weights in order.
        EstimatorAttributes matrix = new EstimatorAttributes(f.object("_idf_diag"));
        return new TfidfTransformer(f, matrix.doubles("data"));
    }

    /** {@code TfidfVectorizer}: counts, then weights. */
    public static Estimator vectorizer(EstimatorAttributes f) {
        return Pipeline.of(
                f.type(),
                java.util.List.of(
                        CountVectorizer.of(f), TfidfTransformer.of(new EstimatorAttributes(f.object("_tfidf")))));
    }

    @Override
    public DataTable transform(DataTable table) {
        double[] x = table.finite(type());
        DataTable result = DataTable.of(table.rows(), table.columns());
        double[] y = result.values();
        for (int i = 0; i < x.length; i++) {
            if (x[i] != 0) {
                double v = logarithmic ? Math.log(x[i]) + 1 : x[i];
                y[i] = rarity == null ? v : v * rarity[i % rarity.length];
            }
        }
        if (!norm.isEmpty()) {
            Normalizer.divide(y, table.columns(), norm, y);
        }
        return result;
    }
}
