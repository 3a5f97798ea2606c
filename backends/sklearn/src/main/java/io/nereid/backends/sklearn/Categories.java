// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn;

import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** The categories of one column, by value. Immutable. */
final class Categories {
    private final Object[] values;
    private final Map<Object, Integer> places = new HashMap<>();

    Categories(NdArray array) {
        values = array.values();
        for (int i = 0; i < values.length; i++) {
            values[i] = values[i] instanceof String s ? s : key(Values.number(values[i]));
            places.putIfAbsent(values[i], i);
        }
    }

    private static Double key(double v) {
        return v == 0 ? 0.0 : v;
    }

    int count() {
        return values.length;
    }

    /** Where the value stands; -1 when it is not among them. */
    int find(double v, @Nullable String text) {
        return places.getOrDefault(text == null ? key(v) : text, -1);
    }

    boolean hasTexts() {
        for (Object value : values) {
            if (value instanceof String) {
                return true;
            }
        }
        return false;
    }

    /** The place of what stands for no value. */
    int findNothing() {
        return places.getOrDefault(Double.NaN, -1);
    }
}
