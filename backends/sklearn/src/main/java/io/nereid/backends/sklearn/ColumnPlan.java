// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Reads a {@code ColumnTransformer}: which of its parts is given which columns. Confined to one thread. */
final class ColumnPlan {
    private final Fields f;
    private final List<String> names;
    private final int features;

    ColumnPlan(Fields f) {
        this.f = f;
        this.names = names(f);
        this.features = f.features() >= 0 ? f.features() : names.size();
    }

    /** Names of the columns it was fitted to; empty when it was fitted to an array. */
    static List<String> names(Fields f) {
        List<String> names = f.names();
        if (names.isEmpty()
                && f.any("_df_columns") instanceof PyObject index
                && index.arguments().size() > 1
                && index.arguments().get(1) instanceof PyDict d
                && d.items().get("data") instanceof NdArray a) {
            for (Object name : a.values()) {
                names.add(String.valueOf(name));
            }
        }
        return names;
    }

    Estimator build(Assembly assembly) {
        List<Parallel.Part> parts = new ArrayList<>();
        for (Object item : f.list("transformers_")) {
            List<Object> named = Fields.asList(item);
            if (named.size() < 3) {
                throw Refusal.corrupt(f.path() + " has a part without columns");
            }
            Object transformer = named.get(1);
            if ("drop".equals(transformer)) {
                continue;
            }
            int[] columns = Assembly.within(places(named.get(0), named.get(2)), features);
            if (columns.length == 0) {
                continue;
            }
            Estimator built = Assembly.idle(transformer) ? null : Assembly.transformer(f, assembly, transformer);
            parts.add(new Parallel.Part(built, columns, Assembly.weight(f, named.get(0))));
        }
        return new Parallel(f.type(), features, parts);
    }

    private int[] places(Object part, Object columns) {
        if (f.any("_transformer_to_input_indices") instanceof PyDict d
                && d.items().get(part) instanceof PyList known) {
            return known.items().stream().mapToInt(v -> (int) Values.number(v)).toArray();
        }
        if (columns instanceof PyObject slice && slice.type().name().equals("slice")) {
            return range(slice.arguments());
        }
        List<Object> items =
                columns instanceof String || columns instanceof Long ? List.of(columns) : Fields.asList(columns);
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
        return Steps.ints(places);
    }

    private int place(Object item) {
        if (item instanceof String name) {
            int at = names.indexOf(name);
            if (at < 0) {
                throw Refusal.unsupported(f.path() + " names a column that it was not fitted to");
            }
            return at;
        }
        int at = (int) Values.number(item);
        return at < 0 ? at + features : at;
    }

    private int[] range(List<Object> slice) {
        int[] ends = {0, features, 1};
        for (int i = 0; i < 3 && i < slice.size(); i++) {
            Object end = slice.get(i);
            if (end instanceof String name) {
                // Names of both ends are part of the range.
                ends[i] = place(name) + i;
            } else if (end instanceof Long n) {
                ends[i] = (int) (n < 0 && i < 2 ? n + features : n);
            }
        }
        List<Integer> places = new ArrayList<>();
        for (int i = ends[0]; i < Math.min(ends[1], features) && ends[2] > 0; i += ends[2]) {
            places.add(i);
        }
        return Steps.ints(places);
    }

    /** For each column whether it holds text; null when there are no columns to tell of. */
    static boolean @Nullable [] texts(Estimator estimator, int columns) {
        if (columns < 0) {
            return null;
        }
        boolean[] texts = new boolean[columns];
        mark(estimator, texts);
        return texts;
    }

    private static void mark(Estimator estimator, boolean[] texts) {
        if (estimator instanceof Chain chain) {
            for (Estimator step : chain.first()) {
                mark(step, texts);
                if (!keeps(step)) {
                    return;
                }
            }
            mark(chain.last(), texts);
        } else if (estimator instanceof Parallel parallel) {
            for (Parallel.Part part : parallel.parts()) {
                markPart(part, texts);
            }
        } else if (estimator.before() != null) {
            mark(estimator.before(), texts);
        } else if (estimator instanceof TextCounts) {
            java.util.Arrays.fill(texts, true);
        } else if (estimator instanceof Encoder encoder && encoder.features() == texts.length) {
            for (int i = 0; i < texts.length; i++) {
                texts[i] |= encoder.takesText(i);
            }
        } else if (estimator instanceof Columns.LabelNumbers labels) {
            java.util.Arrays.fill(texts, labels.takesText());
        }
    }

    /** Whether its columns come out in their places. */
    private static boolean keeps(Estimator e) {
        return e instanceof Imputer || e instanceof Columns.Same;
    }

    private static void markPart(Parallel.Part part, boolean[] texts) {
        if (part.transformer() == null) {
            return;
        }
        int[] columns = part.columns();
        if (columns == null) {
            mark(part.transformer(), texts);
            return;
        }
        boolean[] mine = new boolean[columns.length];
        mark(part.transformer(), mine);
        for (int i = 0; i < mine.length; i++) {
            texts[columns[i]] |= mine[i];
        }
    }

    /** Names of the columns that the outermost estimator with names was fitted to. */
    static List<String> namesOf(Object value) {
        Object now = value;
        for (int i = 0; i < 8 && now instanceof PyObject object; i++) {
            Fields fields = new Fields(object);
            List<String> names = names(fields);
            if (!names.isEmpty()) {
                return names;
            }
            Object steps = fields.any("steps");
            Object best = fields.any("best_estimator_");
            now = best != null
                    ? best
                    : steps instanceof PyList list && !list.items().isEmpty()
                            ? Fields.asList(list.items().get(0)).get(1)
                            : PyNone.NONE;
        }
        return List.of();
    }

    /** Python's version of the library that wrote the file, or empty. */
    static String version(Object value) {
        Map<String, Object> attributes = value instanceof PyObject o ? o.attributes() : Map.of();
        return attributes.get("_sklearn_version") instanceof String v && v.length() < 24 ? v : "";
    }
}
