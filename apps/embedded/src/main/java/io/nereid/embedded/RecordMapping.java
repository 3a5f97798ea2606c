// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.embedded;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import java.lang.reflect.Array;
import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.lang.reflect.RecordComponent;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

/** How the components of a record class correspond to tensors. Immutable; one for each class. */
final class RecordMapping {
    private static final ClassValue<RecordMapping> MAPPINGS = new ClassValue<>() {
        @Override
        protected RecordMapping computeValue(Class<?> type) {
            return new RecordMapping(type);
        }
    };

    private record Column(String name, Class<?> type, Method accessor) {}

    private final Class<?> type;
    private final List<Column> columns = new ArrayList<>();
    private final Constructor<?> constructor;

    private RecordMapping(Class<?> type) {
        this.type = type;
        List<Class<?>> types = new ArrayList<>();
        for (RecordComponent component : type.getRecordComponents()) {
            TensorName named = component.getAnnotation(TensorName.class);
            Method accessor = component.getAccessor();
            accessor.setAccessible(true);
            columns.add(new Column(named == null ? component.getName() : named.value(), component.getType(), accessor));
            types.add(component.getType());
        }
        try {
            constructor = type.getDeclaredConstructor(types.toArray(Class<?>[]::new));
        } catch (NoSuchMethodException e) {
            throw new IllegalStateException(type + " has no canonical constructor", e);
        }
        constructor.setAccessible(true);
    }

    static RecordMapping of(Class<?> type) {
        return MAPPINGS.get(type);
    }

    // ---- inputs ----

    /**
     * The values of the model's inputs for rows.
     *
     * @throws ServingException INVALID_ARGUMENT when the components are not the model's inputs
     */
    static List<Inputs.Value> inputs(List<? extends Record> rows, List<TensorSpec> specs) {
        if (rows.isEmpty()) {
            throw ServingException.invalidArgument("there is not a single row (expected: one or more)");
        }
        RecordMapping mapping = of(rows.get(0).getClass());
        List<Inputs.Value> values = new ArrayList<>();
        if (mapping.columns.stream()
                .allMatch(column -> specs.stream().anyMatch(s -> s.name().equals(column.name)))) {
            for (Column column : mapping.columns) {
                List<Object> all = new ArrayList<>(rows.size());
                for (Record row : rows) {
                    all.add(mapping.value(column, row));
                }
                values.add(new Inputs.Value(column.name, all, null));
            }
            return values;
        }
        List<TensorSpec> required = specs.stream().filter(s -> !s.optional()).toList();
        if (required.size() != 1 || required.get(0).shape().rank() > 2) {
            throw ServingException.invalidArgument("the components "
                    + mapping.columns.stream().map(Column::name).toList() + " of "
                    + mapping.type.getSimpleName() + " are not the model's inputs (expected: "
                    + specs.stream().map(TensorSpec::name).toList() + ")");
        }
        TensorSpec matrix = required.get(0);
        long width = matrix.shape().rank() == 2 ? matrix.shape().dim(1) : -1;
        if (width >= 0 && width != mapping.columns.size()) {
            throw ServingException.invalidArgument(mapping.type.getSimpleName() + " has " + mapping.columns.size()
                    + " components, and input '" + matrix.name() + "' is " + matrix.shape() + " (expected: " + width
                    + " components)");
        }
        List<Object> all = new ArrayList<>(rows.size());
        for (Record row : rows) {
            Object[] cells = new Object[mapping.columns.size()];
            for (int i = 0; i < cells.length; i++) {
                cells[i] = mapping.value(mapping.columns.get(i), row);
            }
            all.add(cells);
        }
        values.add(new Inputs.Value(matrix.name(), all, null));
        return values;
    }

    private Object value(Column column, Record row) {
        if (row.getClass() != type) {
            throw ServingException.invalidArgument("a row is a "
                    + row.getClass().getSimpleName() + " (expected: " + type.getSimpleName() + ", as the first one)");
        }
        try {
            Object value = column.accessor.invoke(row);
            if (value == null) {
                throw ServingException.invalidArgument(
                        "component '" + column.name + "' of a row is null (expected: a value)");
            }
            return value;
        } catch (ReflectiveOperationException e) {
            throw ServingException.wrap(
                    ErrorCode.INVALID_ARGUMENT,
                    "component '" + column.name + "' of " + type.getSimpleName() + " could not be read",
                    e.getCause() == null ? e : e.getCause());
        }
    }

    // ---- outputs ----

    /** One record for each row of a prediction. */
    <R extends Record> List<R> rows(Class<R> result, Prediction from) {
        int count = -1;
        List<Object> arrays = new ArrayList<>();
        List<Integer> widths = new ArrayList<>();
        for (Column column : columns) {
            long[] shape = from.shape(column.name);
            int rows = shape.length == 0 ? 1 : Math.toIntExact(shape[0]);
            if (count >= 0 && rows != count) {
                throw ServingException.invalidArgument("output '" + column.name + "' has " + rows
                        + " rows, and the ones before it have " + count + " (expected: the same number)");
            }
            count = rows;
            Object all = values(column, from);
            arrays.add(all);
            int width = rows == 0 ? 0 : Array.getLength(all) / rows;
            if (!isArray(column) && rows > 0 && width != 1) {
                throw ServingException.invalidArgument("output '" + column.name + "' of shape " + Arrays.toString(shape)
                        + " has " + width + " values in a row (expected: one, for a component of type "
                        + column.type.getSimpleName() + "; an array takes them all)");
            }
            widths.add(width);
        }
        List<R> all = new ArrayList<>(Math.max(0, count));
        for (int row = 0; row < count; row++) {
            Object[] arguments = new Object[columns.size()];
            for (int i = 0; i < arguments.length; i++) {
                Column column = columns.get(i);
                int width = widths.get(i);
                if (isArray(column)) {
                    Object part = Array.newInstance(column.type.getComponentType(), width);
                    System.arraycopy(arrays.get(i), row * width, part, 0, width);
                    arguments[i] = part;
                } else {
                    arguments[i] = Array.get(arrays.get(i), row);
                }
            }
            try {
                all.add(result.cast(constructor.newInstance(arguments)));
            } catch (ReflectiveOperationException e) {
                throw ServingException.wrap(
                        ErrorCode.INVALID_ARGUMENT,
                        type.getSimpleName() + " could not be made of row " + row + " of the prediction",
                        e.getCause() == null ? e : e.getCause());
            }
        }
        return all;
    }

    private static boolean isArray(Column column) {
        return column.type.isArray() && column.type != byte[].class;
    }

    private interface Reader {
        Object read(Prediction from, String name);
    }

    private static final Map<Class<?>, Reader> READERS = Map.ofEntries(
            Map.entry(float.class, Prediction::floats),
            Map.entry(double.class, Prediction::doubles),
            Map.entry(long.class, Prediction::longs),
            Map.entry(int.class, RecordMapping::ints),
            Map.entry(boolean.class, Prediction::booleans),
            Map.entry(String.class, RecordMapping::texts),
            Map.entry(Float.class, Prediction::floats),
            Map.entry(Double.class, Prediction::doubles),
            Map.entry(Long.class, Prediction::longs),
            Map.entry(Integer.class, RecordMapping::ints),
            Map.entry(Boolean.class, Prediction::booleans),
            Map.entry(byte[].class, Prediction::bytes));

    private Object values(Column column, Prediction from) {
        Class<?> element = isArray(column) ? column.type.getComponentType() : column.type;
        Reader reader =
                isArray(column) && !element.isPrimitive() && element != String.class ? null : READERS.get(element);
        if (reader == null) {
            throw ServingException.invalidArgument("component '" + column.name + "' of " + type.getSimpleName()
                    + " is of type " + column.type.getSimpleName()
                    + " (expected: float, double, long, int, boolean, String, an array of these, or byte[])");
        }
        return reader.read(from, column.name);
    }

    private static int[] ints(Prediction from, String name) {
        long[] longs = from.longs(name);
        int[] all = new int[longs.length];
        for (int i = 0; i < all.length; i++) {
            if (longs[i] != (int) longs[i]) {
                throw ServingException.invalidArgument(
                        "output '" + name + "' holds " + longs[i] + " (expected: a number that fits an int)");
            }
            all[i] = (int) longs[i];
        }
        return all;
    }

    /** Labels may be texts or whole numbers. */
    private static String[] texts(Prediction from, String name) {
        DataType type = from.dataType(name);
        if (type == DataType.BYTES) {
            return from.strings(name);
        }
        return Arrays.stream(from.longs(name)).mapToObj(Long::toString).toArray(String[]::new);
    }
}
