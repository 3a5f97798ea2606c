// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.preprocessing;

import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.PredictMethod;
import io.nereid.backends.sklearn.estimator.Transformer;
import io.nereid.backends.sklearn.pickle.NdArray;
import io.nereid.backends.sklearn.pickle.UnsupportedModel;
import io.nereid.base.ServingException;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * {@code OrdinalEncoder} and {@code OneHotEncoder}: categories as their index, or as one indicator column each.
 * Immutable.
 */
public final class CategoryEncoder extends Transformer {
    private static final int UNKNOWN = -1;

    private final CategoryIndex[] categories;
    /** For each column and category its output index; infrequent categories share one. */
    private final int[][] groups;
    /** For each column the output index of unknown values, or {@link #UNKNOWN}. */
    private final int[] otherwise;

    private final boolean rejectsUnknown;
    private final int[] dropped;
    private final int[] widths;
    private final boolean oneHot;
    private final double unknownValue;
    private final double missingValue;

    private CategoryEncoder(
            EstimatorAttributes f, boolean oneHot, CategoryIndex[] categories, int width, int[] dropped, int[] widths) {
        super(f.type(), categories.length, width);
        this.oneHot = oneHot;
        this.categories = categories;
        this.dropped = dropped;
        this.widths = widths;
        this.groups = groups(f, categories);
        this.otherwise = otherwise(f, categories.length);
        String unknown = f.text("handle_unknown", "error");
        rejectsUnknown = unknown.equals("error");
        unknownValue = f.number("unknown_value", Double.NaN);
        missingValue = f.number("encoded_missing_value", Double.NaN);
    }

    public static CategoryEncoder ordinal(EstimatorAttributes f) {
        CategoryIndex[] categories = categories(f);
        return new CategoryEncoder(f, false, categories, categories.length, new int[0], new int[0]);
    }

    public static CategoryEncoder oneHot(EstimatorAttributes f) {
        CategoryIndex[] categories = categories(f);
        int[][] groups = groups(f, categories);
        Object drop = f.any(f.contains("_drop_idx_after_grouping") ? "_drop_idx_after_grouping" : "drop_idx_");
        Object[] drops = drop instanceof NdArray a ? a.values() : new Object[0];
        int[] dropped = new int[categories.length];
        int[] widths = new int[categories.length];
        int width = 0;
        for (int c = 0; c < categories.length; c++) {
            dropped[c] = c < drops.length && drops[c] instanceof Number n ? n.intValue() : UNKNOWN;
            int count = Arrays.stream(groups[c]).max().orElse(-1) + 1;
            widths[c] = count - (dropped[c] >= 0 ? 1 : 0);
            width += widths[c];
        }
        return new CategoryEncoder(f, true, categories, width, dropped, widths);
    }

    private static CategoryIndex[] categories(EstimatorAttributes f) {
        List<Object> list = f.list("categories_");
        CategoryIndex[] categories = new CategoryIndex[list.size()];
        for (int c = 0; c < categories.length; c++) {
            if (!(list.get(c) instanceof NdArray a)) {
                throw UnsupportedModel.unsupported(f.path() + " has no arrays of categories");
            }
            categories[c] = new CategoryIndex(a);
        }
        return categories;
    }

    private static int[][] groups(EstimatorAttributes f, CategoryIndex[] categories) {
        List<Object> maps = f.flag("_infrequent_enabled", false) && f.has("_default_to_infrequent_mappings")
                ? f.list("_default_to_infrequent_mappings")
                : List.of();
        int[][] groups = new int[categories.length][];
        for (int c = 0; c < groups.length; c++) {
            if (c < maps.size() && maps.get(c) instanceof NdArray map) {
                groups[c] = Arrays.copyOf(map.ints(), categories[c].count());
            } else {
                groups[c] = new int[categories[c].count()];
                Arrays.setAll(groups[c], i -> i);
            }
        }
        return groups;
    }

    private int[] otherwise(EstimatorAttributes f, int columns) {
        int[] places = new int[columns];
        Arrays.fill(places, UNKNOWN);
        String unknown = f.text("handle_unknown", "error");
        if ((unknown.equals("infrequent_if_exist") || unknown.equals("warn"))
                && f.flag("_infrequent_enabled", false)
                && f.has("_infrequent_indices")) {
            List<Object> infrequent = f.list("_infrequent_indices");
            for (int c = 0; c < columns && c < infrequent.size(); c++) {
                if (infrequent.get(c) instanceof NdArray a && a.count() > 0 && a.ints()[0] < groups[c].length) {
                    places[c] = groups[c][a.ints()[0]];
                }
            }
        }
        return places;
    }

    @Override
    public boolean quick() {
        return true;
    }

    /** Whether a column has text categories. */
    public boolean takesText(int column) {
        return categories[column].hasTexts();
    }

    private int group(int c, double v, @Nullable String text) {
        int place = categories[c].find(v, text);
        if (place >= 0) {
            return groups[c][place];
        }
        if (rejectsUnknown) {
            throw ServingException.invalidArgument(
                    type() + " found unknown category "
                            + (text == null ? v : "'" + (text.length() > 40 ? text.substring(0, 40) + "…" : text) + "'")
                            + " in column " + c,
                    "send a category of the training data, or fit with handle_unknown='ignore'");
        }
        return otherwise[c];
    }

    @Override
    public DataTable transform(DataTable table) {
        DataTable result = DataTable.of(table.rows(), width(PredictMethod.TRANSFORM));
        double[] y = result.values();
        int at = 0;
        for (int r = 0; r < table.rows(); r++) {
            for (int c = 0; c < categories.length; c++) {
                double v = table.at(r, c);
                String text = categories[c].present(table.text(r, c));
                int group = group(c, v, text);
                if (!oneHot) {
                    boolean nothing = text == null && Double.isNaN(v) && group >= 0;
                    y[at++] = nothing ? missingValue : group < 0 ? unknownValue : group;
                    continue;
                }
                if (group >= 0 && group != dropped[c]) {
                    y[at + group - (dropped[c] >= 0 && group > dropped[c] ? 1 : 0)] = 1;
                }
                at += widths[c];
            }
        }
        return result;
    }
}
