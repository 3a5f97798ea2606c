// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.impute;

import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.MatrixOps;
import io.nereid.backends.sklearn.estimator.PredictMethod;
import io.nereid.backends.sklearn.estimator.Transformer;
import io.nereid.base.ServingException;
import io.nereid.tensor.DataType;

/** {@code MissingIndicator}: where values are missing. Immutable. */
public final class MissingIndicator extends Transformer {
    private final MissingMask mask;
    private final int[] columns;
    private final boolean[] expected;
    private final boolean strict;

    private MissingIndicator(
            EstimatorAttributes f, MissingMask mask, int[] columns, boolean[] expected, boolean strict) {
        super(f.type(), expected.length, columns.length);
        this.mask = mask;
        this.columns = columns;
        this.expected = expected;
        this.strict = strict;
    }

    /** The indicator of its attributes. */
    public static MissingIndicator of(EstimatorAttributes f) {
        int features = Math.max(0, f.contains("n_features_in_") ? f.features() : f.integer("_n_features", 0));
        int[] columns = MatrixOps.within(f.array("features_").ints(), features);
        boolean[] expected = new boolean[features];
        for (int c : columns) {
            expected[c] = true;
        }
        boolean strict = f.text("features", "missing-only").equals("missing-only") && f.flag("error_on_new", true);
        return new MissingIndicator(f, MissingMask.of(f), columns, expected, strict);
    }

    @Override
    public DataType type(PredictMethod method) {
        return DataType.BOOL;
    }

    @Override
    public boolean quick() {
        return true;
    }

    @Override
    public DataTable transform(DataTable table) {
        for (int c = 0; strict && c < expected.length; c++) {
            for (int r = 0; !expected[c] && r < table.rows(); r++) {
                if (mask.missing(table.at(r, c), table.text(r, c))) {
                    throw ServingException.invalidArgument("The features [" + c
                            + "] have missing values in transform but have no missing values in fit.");
                }
            }
        }
        return mask.indicator(table, columns);
    }
}
