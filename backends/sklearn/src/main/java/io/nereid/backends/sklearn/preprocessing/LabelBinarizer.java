// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.preprocessing;

import io.nereid.backends.sklearn.estimator.ClassLabels;
import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.Transformer;

/** {@code LabelBinarizer}: a column for each label, or one where there are two labels. Immutable. */
public final class LabelBinarizer extends Transformer {
    private final ClassLabels labels;
    private final boolean texts;
    private final double negative;
    private final double positive;

    private LabelBinarizer(EstimatorAttributes f, ClassLabels labels) {
        super(f.type(), 1, labels.count() <= 2 ? 1 : labels.count());
        this.labels = labels;
        this.texts = f.array("classes_").isText();
        this.negative = f.number("neg_label", 0);
        this.positive = f.number("pos_label", 1);
        if (f.text("y_type_", "binary").startsWith("multilabel")) {
            throw f.unsupported("y_type_");
        }
    }

    public static LabelBinarizer of(EstimatorAttributes f) {
        return new LabelBinarizer(f, ClassLabels.of(f.array("classes_")));
    }

    public boolean takesText() {
        return texts;
    }

    @Override
    public boolean quick() {
        return true;
    }

    @Override
    public DataTable transform(DataTable table) {
        int width = labels.count() <= 2 ? 1 : labels.count();
        DataTable result = DataTable.of(table.rows(), width);
        for (int r = 0; r < table.rows(); r++) {
            int found = labels.find(table.at(r, 0), table.text(r, 0));
            for (int c = 0; c < width; c++) {
                boolean mine = width == 1 ? found == 1 : found == c;
                result.values()[r * width + c] = mine ? positive : negative;
            }
        }
        return result;
    }
}
