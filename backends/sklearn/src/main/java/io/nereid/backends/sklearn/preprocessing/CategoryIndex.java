// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.preprocessing;

import io.nereid.backends.sklearn.pickle.NdArray;
import io.nereid.backends.sklearn.pickle.PythonValues;
import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** The index of each category of one column, by value. Immutable. */
public final class CategoryIndex {
    private final Object[] values;
    private final Map<Object, Integer> places = new HashMap<>();

    public CategoryIndex(NdArray array) {
        values = array.values();
        for (int i = 0; i < values.length; i++) {
            values[i] = values[i] instanceof String s ? s : key(PythonValues.number(values[i]));
            places.putIfAbsent(values[i], i);
        }
    }

    /** Makes -0.0 equal to 0.0, which differ as boxed values. */
    private static Double key(double v) {
        return v == 0 ? 0.0 : v;
    }

    int count() {
        return values.length;
    }

    /** The index of a category; -1 when it is unknown. */
    public int find(double v, @Nullable String text) {
        return places.getOrDefault(text == null ? key(v) : text, -1);
    }

    /** The text of a cell; null for an empty one, which is none of the categories, if missing values are one. */
    @Nullable String present(@Nullable String text) {
        return text != null && text.isEmpty() && !places.containsKey(text) && findNothing() >= 0 ? null : text;
    }

    boolean hasTexts() {
        for (Object value : values) {
            if (value instanceof String) {
                return true;
            }
        }
        return false;
    }

    /** The index of NaN, the category of missing values; -1 when there is none. */
    int findNothing() {
        return places.getOrDefault(Double.NaN, -1);
    }
}
