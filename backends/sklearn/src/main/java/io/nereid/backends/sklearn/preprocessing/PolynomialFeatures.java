// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.preprocessing;

import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.Transformer;
import io.nereid.backends.sklearn.pickle.PyTuple;
import io.nereid.backends.sklearn.pickle.PythonValues;
import io.nereid.backends.sklearn.pickle.UnsupportedModel;
import java.util.ArrayList;
import java.util.List;

/** {@code PolynomialFeatures}: all products of columns up to a degree. Immutable. */
public final class PolynomialFeatures extends Transformer {
    private static final int MAX_TERMS = 1 << 20;

    private final int[][] terms;

    private PolynomialFeatures(EstimatorAttributes f, int features, int[][] terms) {
        super(f.type(), features, terms.length);
        this.terms = terms;
    }

    public static PolynomialFeatures of(EstimatorAttributes f) {
        int features = f.features() >= 0 ? f.features() : f.integer("n_input_features_", -1);
        int low = 0;
        int high;
        if (f.has("_max_degree")) {
            low = f.integer("_min_degree", 0);
            high = f.integer("_max_degree", 2);
        } else if (f.any("degree") instanceof PyTuple t) {
            low = (int) PythonValues.number(t.get(0));
            high = (int) PythonValues.number(t.get(1));
        } else {
            high = f.integer("degree", 2);
        }
        if (features < 1 || high < 0 || high > 64) {
            throw UnsupportedModel.unsupported(f.path() + " has degree " + high + " of " + features + " features");
        }
        boolean bias = f.flag("include_bias", true);
        boolean once = f.flag("interaction_only", false);
        List<int[]> terms = new ArrayList<>();
        if (bias) {
            terms.add(new int[0]);
        }
        for (int degree = Math.max(1, low); degree <= high; degree++) {
            combine(terms, new int[degree], 0, 0, features, once);
        }
        return new PolynomialFeatures(f, features, terms.toArray(int[][]::new));
    }

    /** Adds all combinations of columns of one degree in scikit-learn's (lexicographic) order. */
    private static void combine(List<int[]> terms, int[] term, int at, int from, int features, boolean once) {
        if (at == term.length) {
            if (terms.size() >= MAX_TERMS) {
                throw UnsupportedModel.unsupported("PolynomialFeatures has more than " + MAX_TERMS + " terms");
            }
            terms.add(term.clone());
            return;
        }
        // Without repetition, as many columns must follow as are still to be chosen: every path then ends in a term, so
        // that
        // the limit on terms bounds the time.
        int end = once ? features - (term.length - at) + 1 : features;
        for (int i = from; i < end; i++) {
            term[at] = i;
            combine(terms, term, at + 1, once ? i + 1 : i, features, once);
        }
    }

    @Override
    public boolean quick() {
        return terms.length < 200;
    }

    @Override
    public DataTable transform(DataTable table) {
        double[] x = table.finite(type());
        DataTable result = DataTable.of(table.rows(), terms.length);
        int at = 0;
        for (int r = 0; r < table.rows(); r++) {
            int from = r * table.columns();
            for (int[] term : terms) {
                double product = 1;
                for (int c : term) {
                    product *= x[from + c];
                }
                result.values()[at++] = product;
            }
        }
        return result;
    }
}
