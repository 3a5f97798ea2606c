// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v1.rest;

import io.nereid.base.NameSuggestions;
import io.nereid.base.ServingException;
import io.nereid.json.JsonReader;
import io.nereid.json.JsonToken;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Reads the rows of a table whose columns have names, in the forms that KServe's servers make a pandas data frame of. An
 * element of the list is a row, {@code {"a": 1, "b": 2}}; columns, {@code {"a": [1, 3], "b": [2, 4]}}; columns by the
 * labels of their rows, {@code {"a": {"0": 1, "1": 3}, "b": {"0": 2, "1": 4}}}; or a list of rows. All elements together
 * are the table. Used for one body; confined to one thread.
 */
final class TableRows {
    private final JsonReader reader;
    private final String list;
    private final List<TensorSpec> specs;
    private final List<String> names;
    private final boolean lenient;

    private final Map<String, List<@Nullable Object>> columns = new LinkedHashMap<>();
    private int rows;
    private int element;

    /**
     * @param list the field of the body that has the rows, for messages
     * @param specs the inputs of the signature: one for each column, or one of two dimensions for all
     * @param names the names of the columns of the only input; empty when it has none, and columns then count in the order
     *     in which the first element has them
     * @param lenient whether missing columns are missing values and other columns are left out, as LightGBM's server has it
     */
    TableRows(JsonReader reader, String list, List<TensorSpec> specs, List<String> names, boolean lenient) {
        this.reader = reader;
        this.list = list;
        this.specs = specs;
        this.lenient = lenient;
        this.names = matrix() ? names : specs.stream().map(TensorSpec::name).toList();
        this.names.forEach(name -> columns.put(name, new ArrayList<>()));
    }

    private boolean matrix() {
        return matrix(specs);
    }

    /** Whether a signature has one input for all columns. */
    static boolean matrix(List<TensorSpec> specs) {
        return specs.size() == 1 && specs.get(0).shape().rank() == 2;
    }

    /** Reads all elements; the reader is at the first one, which there is. The caller owns the tensors. */
    List<Tensor> read() {
        do {
            if (reader.peek() == JsonToken.ARRAY) {
                reader.beginArray();
                while (reader.hasNext()) {
                    frame();
                }
            } else {
                frame();
            }
            element++;
        } while (reader.hasNext());
        if (rows == 0) {
            throw ServingException.invalidArgument(
                    "'" + list + "' has no rows (expected: at least one)", "send a value for each column");
        }
        return matrix() ? List.of(matrix(specs.get(0))) : tensors();
    }

    /** Reads an object of columns, or of the values of one row. */
    private void frame() {
        if (reader.peek() != JsonToken.OBJECT) {
            throw failure("It is not an object of named values, as the first element is", null);
        }
        Map<String, Object> given = new LinkedHashMap<>();
        Set<String> labels = new LinkedHashSet<>();
        int length = -1;
        boolean labelled = false;
        reader.beginObject();
        while (reader.nextField()) {
            String name = reader.key();
            Object value = switch (reader.peek()) {
                case ARRAY -> list(name);
                case OBJECT -> labelled(name);
                default -> new Scalar(scalar(name));
            };
            if (given.putIfAbsent(name, value) != null) {
                throw failure("The column '" + name + "' is given twice", null);
            }
            if (value instanceof Map<?, ?> map) {
                labelled = true;
                map.keySet().forEach(label -> labels.add((String) label));
            } else if (value instanceof List<?> values) {
                if (length >= 0 && values.size() != length) {
                    throw failure(
                            "The column '" + name + "' has " + values.size() + " values (expected: " + length
                                    + ", as the column before)",
                            null);
                }
                length = values.size();
            }
        }
        if (labelled && length >= 0) {
            throw failure(
                    "It has columns that are lists and columns that are objects of values",
                    "send all columns of an element in one form");
        }
        add(given, labels, labelled ? labels.size() : length >= 0 ? length : given.isEmpty() ? 0 : 1);
    }

    private void add(Map<String, Object> given, Set<String> labels, int count) {
        boolean known = false;
        for (Map.Entry<String, Object> column : given.entrySet()) {
            String name = column.getKey();
            List<@Nullable Object> values = columns.get(name);
            if (values == null && (names.isEmpty() && element == 0 && rows == 0)) {
                values = new ArrayList<>();
                columns.put(name, values);
            }
            if (values == null) {
                if (lenient) {
                    continue;
                }
                throw failure(
                        "'" + name + "' is not a column of the model",
                        NameSuggestions.didYouMean(
                                name, List.copyOf(columns.keySet()), "its columns are " + columns.keySet()));
            }
            known = true;
            Object value = column.getValue();
            if (value instanceof Map<?, ?> byLabel) {
                for (String label : labels) {
                    values.add(byLabel.get(label));
                }
            } else if (value instanceof List<?> list) {
                values.addAll(list);
            } else {
                for (int i = 0; i < count; i++) {
                    values.add(((Scalar) value).value());
                }
            }
        }
        if (!known) {
            throw failure("It does not have any of the model's columns", "its columns are " + columns.keySet());
        }
        rows += count;
        for (Map.Entry<String, List<@Nullable Object>> column : columns.entrySet()) {
            while (column.getValue().size() < rows) {
                if (!lenient) {
                    throw failure(
                            "The column '" + column.getKey() + "' is missing", "the columns are " + columns.keySet());
                }
                column.getValue().add(null);
            }
        }
    }

    private List<@Nullable Object> list(String column) {
        List<@Nullable Object> values = new ArrayList<>();
        reader.beginArray();
        while (reader.hasNext()) {
            values.add(scalar(column));
        }
        return values;
    }

    private Map<String, @Nullable Object> labelled(String column) {
        Map<String, @Nullable Object> values = new LinkedHashMap<>();
        reader.beginObject();
        while (reader.nextField()) {
            String label = reader.key();
            values.put(label, scalar(column));
        }
        return values;
    }

    /** A number, truth value or text; null for a missing value. */
    private @Nullable Object scalar(String column) {
        switch (reader.peek()) {
            case NULL:
                reader.readNull();
                return null;
            case STRING:
                return reader.readString();
            case BOOLEAN:
                return reader.readBoolean() ? 1.0 : 0.0;
            case NUMBER:
                return reader.readDouble();
            default:
                throw failure(
                        "A value of the column '" + column + "' is a list or an object", "send one value per row");
        }
    }

    /** The value that all rows of an element have. */
    private record Scalar(@Nullable Object value) {}

    private Tensor matrix(TensorSpec spec) {
        long width = spec.shape().dim(1);
        if (width >= 0 && columns.size() != width) {
            throw ServingException.invalidArgument(
                    "the rows of '" + list + "' have " + columns.size() + " columns (expected: " + width + ")",
                    "send a value for each column of the model");
        }
        int count = columns.size();
        Shape shape = Shape.of(rows, count);
        if (spec.dataType() == DataType.BYTES) {
            byte[][] texts = new byte[rows * count][];
            int place = 0;
            for (Map.Entry<String, List<@Nullable Object>> column : columns.entrySet()) {
                texts(column.getKey(), column.getValue(), texts, place++, count);
            }
            return Tensor.ofBytes(spec.name(), shape, texts);
        }
        double[] values = new double[Math.multiplyExact(rows, count)];
        int place = 0;
        for (Map.Entry<String, List<@Nullable Object>> column : columns.entrySet()) {
            numbers(column.getKey(), column.getValue(), spec, values, place++, count);
        }
        return Tensor.ofDoubles(spec.name(), spec.dataType(), shape, values);
    }

    private List<Tensor> tensors() {
        List<Tensor> tensors = new ArrayList<>();
        boolean whole = false;
        try {
            for (TensorSpec spec : specs) {
                List<@Nullable Object> column = columns.getOrDefault(spec.name(), List.of());
                Shape shape = spec.shape().rank() == 1 ? Shape.of(rows) : Shape.of(rows, 1);
                if (spec.dataType() == DataType.BYTES) {
                    byte[][] texts = new byte[rows][];
                    texts(spec.name(), column, texts, 0, 1);
                    tensors.add(Tensor.ofBytes(spec.name(), shape, texts));
                } else {
                    double[] values = new double[rows];
                    numbers(spec.name(), column, spec, values, 0, 1);
                    tensors.add(Tensor.ofDoubles(spec.name(), spec.dataType(), shape, values));
                }
            }
            whole = true;
            return tensors;
        } finally {
            if (!whole) {
                Tensor.closeAll(tensors);
            }
        }
    }

    private void numbers(
            String name, List<@Nullable Object> column, TensorSpec spec, double[] to, int place, int step) {
        boolean fractions = spec.dataType() == DataType.FP32 || spec.dataType() == DataType.FP64;
        int at = place;
        for (Object value : column) {
            if (value instanceof Double number && (fractions || number == Math.rint(number))) {
                to[at] = number;
            } else if (value == null && fractions) {
                to[at] = Double.NaN;
            } else {
                throw wrong(name, value, fractions ? "a number" : "a whole number");
            }
            at += step;
        }
    }

    private void texts(String name, List<@Nullable Object> column, byte[][] to, int place, int step) {
        int at = place;
        for (Object value : column) {
            if (!(value instanceof String text)) {
                throw wrong(name, value, "text");
            }
            to[at] = text.getBytes(StandardCharsets.UTF_8);
            at += step;
        }
    }

    private ServingException wrong(String column, @Nullable Object value, String expected) {
        String text = value == null ? "null" : value.toString();
        return ServingException.invalidArgument("column '" + column + "' of '" + list + "' has the value '"
                + (text.length() > 40 ? text.substring(0, 40) + "…" : text) + "' (expected: " + expected + ")");
    }

    private ServingException failure(String why, @Nullable String remedy) {
        return ServingException.invalidArgument(
                "Failed to process element: " + element + " of '" + list + "' list. " + why, remedy);
    }

    /** The names of a list with commas between them. */
    static List<String> names(String list) {
        return list.isEmpty() ? List.of() : Arrays.asList(list.split(",", -1));
    }
}
