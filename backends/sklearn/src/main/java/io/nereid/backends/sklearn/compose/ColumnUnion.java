// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.compose;

import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.Estimator;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.PredictMethod;
import io.nereid.backends.sklearn.estimator.Transformer;
import io.nereid.backends.sklearn.pickle.PyDict;
import io.nereid.backends.sklearn.pickle.PythonValues;
import io.nereid.backends.sklearn.pickle.UnsupportedModel;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * {@code FeatureUnion} and {@code ColumnTransformer}: transformers of the same rows, whose results are concatenated by
 * columns. Immutable.
 */
public final class ColumnUnion extends Transformer {
    /**
     * A transformer of some columns.
     *
     * @param transformer the transformer; null to pass the columns through
     * @param columns its input columns; null for all
     * @param weight the factor of its result
     */
    public record Part(@Nullable Estimator transformer, int @Nullable [] columns, double weight) {}

    private final List<Part> parts;

    ColumnUnion(String type, int features, List<Part> parts) {
        super(type, features, width(parts));
        this.parts = List.copyOf(parts);
    }

    /** The union of a {@code FeatureUnion}: all transformers get all columns. */
    public static Estimator featureUnion(EstimatorAttributes f, Estimator.Factory factory) {
        List<Part> parts = new ArrayList<>();
        for (Object item : f.list("transformer_list")) {
            List<Object> named = EstimatorAttributes.asList(item);
            Object transformer = named.get(1);
            if ("drop".equals(transformer)) {
                continue;
            }
            double weight = weight(f, named.get(0));
            parts.add(
                    new Part(Passthrough.is(transformer) ? null : transformer(f, factory, transformer), null, weight));
        }
        int features = -1;
        for (Part part : parts) {
            features = part.transformer() != null ? part.transformer().features() : features;
        }
        return new ColumnUnion(f.type(), features, parts);
    }

    /** Builds a member, which must be a transformer. */
    static Estimator transformer(EstimatorAttributes f, Estimator.Factory factory, Object value) {
        Estimator transformer = factory.build(value);
        if (!transformer.can(PredictMethod.TRANSFORM)) {
            throw UnsupportedModel.unsupported(
                    f.path() + " with a " + transformer.type() + ", which is not a transformer");
        }
        return transformer;
    }

    /** The weight of a named transformer, 1 by default. */
    static double weight(EstimatorAttributes f, Object name) {
        return f.any("transformer_weights") instanceof PyDict d && d.items().get(name) != null
                ? PythonValues.number(d.items().get(name))
                : 1;
    }

    private static int width(List<Part> parts) {
        int sum = 0;
        for (Part p : parts) {
            int width = p.transformer != null
                    ? Math.abs(p.transformer.width(PredictMethod.TRANSFORM))
                    : p.columns != null ? p.columns.length : -1;
            if (width < 0 || (p.transformer != null && p.transformer.width(PredictMethod.TRANSFORM) < 0)) {
                return -1;
            }
            sum += Math.max(width, p.transformer != null && width == 0 ? 1 : 0);
        }
        return sum;
    }

    public List<Part> parts() {
        return parts;
    }

    @Override
    public boolean quick() {
        return parts.stream().allMatch(p -> p.transformer == null || p.transformer.quick());
    }

    @Override
    public DataTable transform(DataTable table) {
        List<DataTable> results = new ArrayList<>(parts.size());
        for (Part part : parts) {
            DataTable mine = part.columns == null ? table : table.select(part.columns);
            DataTable result =
                    part.transformer == null ? mine : part.transformer.checked(PredictMethod.TRANSFORM, mine);
            if (part.weight != 1) {
                DataTable weighted = DataTable.of(result.rows(), result.columns());
                for (int i = 0; i < weighted.values().length; i++) {
                    weighted.values()[i] = result.values()[i] * part.weight;
                }
                result = weighted;
            }
            results.add(result);
        }
        return results.isEmpty() ? DataTable.of(table.rows(), 0) : DataTable.beside(table.rows(), results);
    }
}
