// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.compose;

import io.nereid.backends.sklearn.estimator.Estimator;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.MatrixOps;
import io.nereid.backends.sklearn.pickle.PyDict;
import io.nereid.backends.sklearn.pickle.PyList;
import io.nereid.backends.sklearn.pickle.PyObject;
import io.nereid.backends.sklearn.pickle.PythonValues;
import io.nereid.backends.sklearn.pickle.UnsupportedModel;
import java.util.ArrayList;
import java.util.List;

/** Reads a {@code ColumnTransformer}: which transformer gets which columns. Confined to one thread. */
public final class ColumnTransformerReader {
    private final EstimatorAttributes f;
    private final List<String> names;
    private final int features;

    private ColumnTransformerReader(EstimatorAttributes f) {
        this.f = f;
        this.names = f.names();
        this.features = f.features() >= 0 ? f.features() : names.size();
    }

    public static Estimator build(EstimatorAttributes f, Estimator.Factory factory) {
        return new ColumnTransformerReader(f).build(factory);
    }

    private Estimator build(Estimator.Factory factory) {
        List<ColumnUnion.Part> parts = new ArrayList<>();
        for (Object item : f.list("transformers_")) {
            List<Object> named = EstimatorAttributes.asList(item);
            if (named.size() < 3) {
                throw UnsupportedModel.corrupt(f.path() + " has a part without columns");
            }
            Object transformer = named.get(1);
            if ("drop".equals(transformer)) {
                continue;
            }
            int[] columns = MatrixOps.within(places(named.get(0), named.get(2)), features);
            if (columns.length == 0) {
                continue;
            }
            Estimator built = Passthrough.is(transformer) ? null : ColumnUnion.transformer(f, factory, transformer);
            parts.add(new ColumnUnion.Part(built, columns, ColumnUnion.weight(f, named.get(0))));
        }
        return new ColumnUnion(f.type(), features, parts);
    }

    /** The column indexes of a part, selected by index, name, mask or slice. */
    private int[] places(Object part, Object columns) {
        if (f.any("_transformer_to_input_indices") instanceof PyDict d
                && d.items().get(part) instanceof PyList known) {
            return known.items().stream()
                    .mapToInt(v -> (int) PythonValues.number(v))
                    .toArray();
        }
        if (columns instanceof PyObject slice && slice.type().name().equals("slice")) {
            return range(slice.arguments());
        }
        List<Object> items = columns instanceof String || columns instanceof Long
                ? List.of(columns)
                : EstimatorAttributes.asList(columns);
        boolean mask = !items.isEmpty() && items.get(0) instanceof Boolean;
        List<Integer> places = new ArrayList<>();
        for (int i = 0; i < items.size(); i++) {
            Object item = items.get(i);
            if (mask) {
                if (Boolean.TRUE.equals(item)) {
                    places.add(i);
                }
            } else {
                places.add(place(item));
            }
        }
        return MatrixOps.ints(places);
    }

    private int place(Object item) {
        if (item instanceof String name) {
            int at = names.indexOf(name);
            if (at < 0) {
                throw UnsupportedModel.unsupported(f.path() + " selects a column that it was not fitted to");
            }
            return at;
        }
        int at = (int) PythonValues.number(item);
        return at < 0 ? at + features : at;
    }

    private int[] range(List<Object> slice) {
        int[] ends = {0, features, 1};
        for (int i = 0; i < 3 && i < slice.size(); i++) {
            Object end = slice.get(i);
            if (end instanceof String name) {
                // As in pandas, a slice by names includes its end.
                ends[i] = place(name) + i;
            } else if (end instanceof Long n) {
                ends[i] = (int) (n < 0 && i < 2 ? n + features : n);
            }
        }
        List<Integer> places = new ArrayList<>();
        for (int i = ends[0]; i < Math.min(ends[1], features) && ends[2] > 0; i += ends[2]) {
            places.add(i);
        }
        return MatrixOps.ints(places);
    }
}
