// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.preprocessing;

import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.Transformer;
import io.nereid.backends.sklearn.pickle.NdArray;
import io.nereid.backends.sklearn.pickle.UnsupportedModel;
import java.util.List;

/**
 * {@code TargetEncoder}: a category as the mean target of its training rows, one column for each class where there are
 * several; an unknown one as the mean of all. Immutable.
 */
public final class TargetEncoder extends Transformer {
    private final CategoryIndex[] categories;
    /** By column and class, the number for each category. */
    private final double[][] encodings;
    /** By class, the number for unknown categories. */
    private final double[] means;

    private TargetEncoder(EstimatorAttributes f, CategoryIndex[] categories, double[][] encodings, double[] means) {
        super(f.type(), categories.length, encodings.length);
        this.categories = categories;
        this.encodings = encodings;
        this.means = means;
    }

    public static TargetEncoder of(EstimatorAttributes f) {
        List<Object> given = f.list("categories_");
        List<Object> encoded = f.list("encodings_");
        boolean classes = f.text("target_type_", "continuous").equals("multiclass");
        double[] means = f.doubles("target_mean_");
        int each = classes ? f.array("classes_").count() : 1;
        if (means.length != each || encoded.size() != (long) given.size() * each) {
            throw UnsupportedModel.corrupt(f.path() + " has " + encoded.size() + " encodings of " + given.size()
                    + " columns and " + means.length + " means (expected: " + each + " for each)");
        }
        CategoryIndex[] categories = new CategoryIndex[given.size()];
        double[][] encodings = new double[encoded.size()][];
        for (int i = 0; i < encodings.length; i++) {
            if (!(given.get(i / each) instanceof NdArray a) || !(encoded.get(i) instanceof NdArray numbers)) {
                throw UnsupportedModel.unsupported(f.path() + " has no arrays of categories");
            }
            categories[i / each] = new CategoryIndex(a);
            encodings[i] = numbers.doubles();
            if (encodings[i].length != a.count()) {
                throw UnsupportedModel.corrupt(
                        f.path() + " has " + encodings[i].length + " encodings of " + a.count() + " categories");
            }
        }
        return new TargetEncoder(f, categories, encodings, means);
    }

    /** Whether a column has text categories. */
    public boolean takesText(int column) {
        return categories[column].hasTexts();
    }

    @Override
    public boolean quick() {
        return true;
    }

    @Override
    public DataTable transform(DataTable table) {
        DataTable result = DataTable.of(table.rows(), encodings.length);
        for (int r = 0; r < table.rows(); r++) {
            for (int c = 0; c < categories.length; c++) {
                int found = categories[c].find(table.at(r, c), categories[c].present(table.text(r, c)));
                for (int k = 0; k < means.length; k++) {
                    int column = c * means.length + k;
                    result.values()[r * encodings.length + column] = found < 0 ? means[k] : encodings[column][found];
                }
            }
        }
        return result;
    }
}
