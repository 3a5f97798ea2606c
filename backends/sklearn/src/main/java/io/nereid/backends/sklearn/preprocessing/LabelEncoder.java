// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.preprocessing;

import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.PredictMethod;
import io.nereid.backends.sklearn.estimator.Transformer;
import io.nereid.base.ServingException;
import io.nereid.tensor.DataType;

/** {@code LabelEncoder}: the index of each label. Immutable. */
public final class LabelEncoder extends Transformer {
    private final CategoryIndex categories;

    public LabelEncoder(EstimatorAttributes f) {
        super(f.type(), 1, 1);
        categories = new CategoryIndex(f.array("classes_"));
    }

    @Override
    public int width(PredictMethod method) {
        return 0;
    }

    @Override
    public DataType type(PredictMethod method) {
        return DataType.INT64;
    }

    public boolean takesText() {
        return categories.hasTexts();
    }

    @Override
    public DataTable transform(DataTable table) {
        double[] numbers = new double[table.rows()];
        for (int r = 0; r < numbers.length; r++) {
            int place = categories.find(table.at(r, 0), table.text(r, 0));
            if (place < 0) {
                throw ServingException.invalidArgument("y contains a previously unseen label in row " + r);
            }
            numbers[r] = place;
        }
        return DataTable.column(numbers);
    }
}
