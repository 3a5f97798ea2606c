// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn;

import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** {@code FeatureUnion} and {@code ColumnTransformer}: results beside each other. Immutable. */
final class Parallel extends Transformer {
    /**
     * One part.
     *
     * @param transformer what it does; null to leave values as they are
     * @param columns which columns it is given; null for all
     * @param weight what its result is multiplied with
     */
    record Part(@Nullable Estimator transformer, int @Nullable [] columns, double weight) {}

    private final List<Part> parts;

    Parallel(String type, int features, List<Part> parts) {
        super(type, features, width(parts));
        this.parts = List.copyOf(parts);
    }

    private static int width(List<Part> parts) {
        int sum = 0;
        for (Part p : parts) {
            int width = p.transformer != null
                    ? Math.abs(p.transformer.width(Method.TRANSFORM))
                    : p.columns != null ? p.columns.length : -1;
            if (width < 0 || (p.transformer != null && p.transformer.width(Method.TRANSFORM) < 0)) {
                return -1;
            }
            sum += Math.max(width, p.transformer != null && width == 0 ? 1 : 0);
        }
        return sum;
    }

    List<Part> parts() {
        return parts;
    }

    @Override
    boolean quick() {
        return parts.stream().allMatch(p -> p.transformer == null || p.transformer.quick());
    }

    @Override
    Table transform(Table table) {
        List<Table> results = new ArrayList<>(parts.size());
        for (Part part : parts) {
            Table mine = part.columns == null ? table : table.select(part.columns);
            Table result = part.transformer == null ? mine : part.transformer.checked(Method.TRANSFORM, mine);
            if (part.weight != 1) {
                Table weighted = Table.of(result.rows(), result.columns());
                for (int i = 0; i < weighted.values().length; i++) {
                    weighted.values()[i] = result.values()[i] * part.weight;
                }
                result = weighted;
            }
            results.add(result);
        }
        return results.isEmpty() ? Table.of(table.rows(), 0) : Table.beside(table.rows(), results);
    }
}
