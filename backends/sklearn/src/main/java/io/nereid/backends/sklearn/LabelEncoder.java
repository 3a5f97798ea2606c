// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn;

import io.nereid.base.ServingException;
import io.nereid.tensor.DataType;

/** {@code LabelEncoder}: the index of each label. Immutable. */
final class LabelEncoder extends Transformer {
    private final Categories categories;

    LabelEncoder(Fields f) {
        super(f.type(), 1, 1);
        categories = new Categories(f.array("classes_"));
    }

    @Override
    int width(Method method) {
        return 0;
    }

    @Override
    DataType type(Method method) {
        return DataType.INT64;
    }

    boolean takesText() {
        return categories.hasTexts();
    }

    @Override
    Table transform(Table table) {
        double[] numbers = new double[table.rows()];
        for (int r = 0; r < numbers.length; r++) {
            int place = categories.find(table.at(r, 0), table.text(r, 0));
            if (place < 0) {
                throw ServingException.invalidArgument("y contains a previously unseen label in row " + r);
            }
            numbers[r] = place;
        }
        return Table.column(numbers);
    }
}
