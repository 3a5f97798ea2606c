// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.mlflow;

import io.nereid.base.ServingException;
import io.nereid.json.ByteSink;
import io.nereid.json.JsonReader;
import io.nereid.json.JsonToken;
import io.nereid.json.TensorReader;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Converts a data frame, row by row, to a model's inputs: each column is an input, or all columns together are the only
 * input, a matrix. Columns that the model does not have are ignored, as in MLflow. Confined to one thread.
 */
final class DataFrame {
    /** The model property with the names of its columns, separated by commas. */
    private static final String FEATURE_NAMES = "feature_names";

    /** One for each column of the request; null for an ignored one. */
    private final List<@Nullable Column> given = new ArrayList<>();

    /** The columns of the model, in its order. */
    private final List<Column> taken = new ArrayList<>();

    /** The only input, of which the columns are a part each; null when each column is an input. */
    private final @Nullable TensorSpec matrix;

    private int rows;

    /**
     * A frame with named columns.
     *
     * @throws ServingException INVALID_ARGUMENT when columns are missing
     */
    DataFrame(ModelMetadata metadata, List<String> names) {
        List<TensorSpec> specs = metadata.inputs();
        boolean byName = specs.size() > 1 || names.contains(specs.get(0).name());
        names.forEach(n -> given.add(null));
        if (byName) {
            matrix = null;
            List<String> lacking = new ArrayList<>();
            boolean some = false;
            for (TensorSpec spec : specs) {
                int place = names.indexOf(spec.name());
                if (place >= 0) {
                    take(place, new Column(spec.name(), spec));
                    some = true;
                } else if (!spec.optional()) {
                    lacking.add(spec.name());
                }
            }
            if (!some || !lacking.isEmpty()) {
                throw missing(
                        lacking.isEmpty() ? specs.stream().map(TensorSpec::name).toList() : lacking);
            }
            return;
        }
        TensorSpec only = specs.get(0);
        String known = metadata.properties().getOrDefault(FEATURE_NAMES, "");
        List<String> features = known.isEmpty() ? names : List.of(known.split(",", -1));
        matrix = width(only, features.size()) ? only : null;
        if (matrix == null) {
            throw columns(only, names);
        }
        List<String> lacking = new ArrayList<>();
        for (String feature : features) {
            int place = names.indexOf(feature);
            if (place < 0) {
                lacking.add(feature);
            } else {
                take(place, new Column(feature, only));
            }
        }
        if (!lacking.isEmpty()) {
            throw missing(lacking);
        }
    }

    private DataFrame(List<TensorSpec> specs, int columns) {
        boolean side = specs.size() == 1 && specs.get(0).shape().rank() >= 2;
        matrix = side ? specs.get(0) : null;
        for (int i = 0; i < columns; i++) {
            given.add(null);
        }
        List<TensorSpec> single = specs;
        if (!side && columns != specs.size()) {
            // Leave out optional inputs of another rank, such as one for whole rows.
            single = specs.stream().filter(s -> s.shape().rank() == 1).toList();
        }
        if (side ? !width(specs.get(0), columns) : columns != single.size()) {
            throw side
                    ? columns(specs.get(0), List.of())
                    : ServingException.invalidArgument(
                            "rows have " + columns + " values (expected: " + single.size() + ")",
                            "a value for each of "
                                    + String.join(
                                            ", ",
                                            single.stream()
                                                    .map(TensorSpec::name)
                                                    .toList()));
        }
        for (int i = 0; i < columns; i++) {
            TensorSpec spec = side ? specs.get(0) : single.get(i);
            take(i, new Column(side ? String.valueOf(i) : spec.name(), spec));
        }
    }

    /** A frame with unnamed columns, in the model's order. */
    static DataFrame unnamed(ModelMetadata metadata, int columns) {
        return new DataFrame(metadata.inputs(), columns);
    }

    private void take(int place, Column column) {
        given.set(place, column);
        taken.add(column);
    }

    private static boolean width(TensorSpec spec, int columns) {
        int rank = spec.shape().rank();
        return rank == 1 || spec.unchecked() ? columns == 1 || spec.unchecked() : rank == 2 && fits(spec, columns);
    }

    private static boolean fits(TensorSpec spec, int columns) {
        return spec.shape().dim(1) < 0 || spec.shape().dim(1) == columns;
    }

    static ServingException missing(List<String> names) {
        List<String> shown = names.size() > 20 ? names.subList(0, 20) : names;
        return ServingException.invalidArgument(
                "Model is missing inputs " + shown + (names.size() > 20 ? " and more" : ""),
                "give a column or an input for each");
    }

    private static ServingException columns(TensorSpec spec, List<String> names) {
        return ServingException.invalidArgument(
                "a table of " + names.size() + " columns does not fit the model's input '" + spec.name() + "' of shape "
                        + spec.shape(),
                "send as many columns as it has, or arrays under 'inputs'");
    }

    int rows() {
        return rows;
    }

    /** The names of the columns of the only input, a matrix; empty when each column is an input. */
    List<String> matrixColumns() {
        return matrix == null ? List.of() : taken.stream().map(c -> c.name).toList();
    }

    /** Sets the number of rows, when values were added by column. */
    void rows(int count) {
        rows = count;
    }

    /**
     * Reads the value of a column in the current row; the reader is before it.
     *
     * @param json the document, where objects and lists in columns of text are passed on as JSON; else null
     */
    void value(int column, JsonReader reader, TensorReader tensors, byte @Nullable [] json) {
        Column c = given.get(column);
        if (c == null) {
            reader.skipValue();
        } else {
            c.read(reader, tensors, json);
        }
    }

    /** As {@link #value}, from text. */
    void text(int column, String text) {
        Column c = given.get(column);
        if (c != null) {
            c.text(text);
        }
    }

    /** Ends the current row; columns without a value get a missing value. */
    void endRow() {
        rows++;
        for (Column c : taken) {
            if (c.count < rows) {
                c.none();
            } else if (c.count > rows) {
                throw ServingException.invalidArgument("column '" + c.name + "' is given twice in row " + (rows - 1));
            }
        }
    }

    /** The inputs; the caller owns them. */
    List<Tensor> tensors() {
        if (rows == 0) {
            throw ServingException.invalidArgument("the table has 0 rows (expected: at least one)");
        }
        if (matrix == null || (taken.size() == 1 && matrix.shape().rank() == 1)) {
            List<Tensor> made = new ArrayList<>(taken.size());
            for (Column c : taken) {
                made.add(c.tensor(matrix != null ? matrix : c.spec, rows));
            }
            return made;
        }
        return List.of(sideBySide(matrix));
    }

    private Tensor sideBySide(TensorSpec spec) {
        int size = spec.dataType().size();
        ByteSink sink = new ByteSink(1024);
        int[] at = new int[taken.size()];
        for (int row = 0; row < rows; row++) {
            for (int c = 0; c < at.length; c++) {
                byte[] from = taken.get(c).sink.array();
                int length = size > 0
                        ? size
                        : 4
                                + ByteBuffer.wrap(from)
                                        .order(ByteOrder.LITTLE_ENDIAN)
                                        .getInt(at[c]);
                sink.append(from, at[c], length);
                at[c] += length;
            }
        }
        return tensor(spec, Shape.of(rows, taken.size()), sink);
    }

    static Tensor tensor(TensorSpec spec, Shape shape, ByteSink sink) {
        MemoryRegion region = MemoryRegion.copyOf(sink.array(), 0, sink.length());
        return Tensor.over(spec.name(), spec.dataType(), shape, region, 0, sink.length());
    }

    /** The values read so far for one column. */
    private static final class Column {
        private final String name;
        private final TensorSpec spec;
        private final ByteSink sink = new ByteSink(64);
        private long @Nullable [] dims;
        private int count;

        Column(String name, TensorSpec spec) {
            this.name = name;
            this.spec = spec;
        }

        void read(JsonReader reader, TensorReader tensors, byte @Nullable [] json) {
            if (reader.tryNull()) {
                none();
                return;
            }
            if (json != null
                    && spec.dataType() == DataType.BYTES
                    && spec.shape().rank() == 1) {
                JsonToken token = reader.peek();
                if (token == JsonToken.ARRAY || (token == JsonToken.OBJECT && !reader.firstKeyIs("b64"))) {
                    int from = reader.position();
                    reader.skipValue();
                    text(new String(json, from, reader.position() - from, StandardCharsets.UTF_8));
                    return;
                }
            }
            try {
                tensors.readNested(spec.dataType(), sink);
            } catch (ServingException e) {
                throw ServingException.invalidArgument(
                        "column '" + name + "', row " + count + ": " + e.getMessage(), e.remedy());
            }
            long[] found = tensors.dims();
            if (dims == null) {
                dims = found;
            } else if (!Arrays.equals(dims, found)) {
                throw ServingException.invalidArgument("column '" + name + "' has a value of shape "
                        + Arrays.toString(found) + " in row " + count + " (expected: " + Arrays.toString(dims) + ")");
            }
            count++;
        }

        void text(String text) {
            if (text.isEmpty() && spec.dataType() != DataType.BYTES) {
                none();
                return;
            }
            dims = new long[0];
            count++;
            if (spec.dataType() == DataType.BYTES) {
                bytes(text);
                return;
            }
            try {
                switch (spec.dataType()) {
                    case FP64 -> number(8).putDouble(0, Double.parseDouble(text));
                    case FP32 -> number(4).putFloat(0, Float.parseFloat(text));
                    case BOOL -> number(1).put(0, truth(text));
                    case INT64, UINT64 -> number(8).putLong(0, Long.parseLong(text.strip()));
                    case INT32, UINT32 -> number(4).putInt(0, (int) Long.parseLong(text.strip()));
                    case INT16, UINT16 -> number(2).putShort(0, (short) Long.parseLong(text.strip()));
                    case INT8, UINT8 -> number(1).put(0, (byte) Long.parseLong(text.strip()));
                    default ->
                        throw ServingException.invalidArgument(
                                "column '" + name + "' is of type " + spec.dataType() + ", which CSV does not support");
                }
            } catch (NumberFormatException e) {
                throw ServingException.invalidArgument("column '" + name + "' is '"
                        + (text.length() > 40 ? text.substring(0, 40) + "…" : text) + "' in row " + (count - 1)
                        + " (expected: " + spec.dataType() + ")");
            }
        }

        private static byte truth(String text) {
            return switch (text.strip()) {
                case "true", "True", "TRUE", "1" -> 1;
                case "false", "False", "FALSE", "0" -> 0;
                default -> throw new NumberFormatException(text);
            };
        }

        /** Appends space for a number to the sink. */
        private ByteBuffer number(int size) {
            byte[] zeros = new byte[size];
            sink.append(zeros, 0, size);
            return ByteBuffer.wrap(sink.array(), sink.length() - size, size)
                    .slice()
                    .order(ByteOrder.LITTLE_ENDIAN);
        }

        private void bytes(String text) {
            byte[] utf8 = text.getBytes(StandardCharsets.UTF_8);
            sink.appendIntLE(utf8.length);
            sink.append(utf8, 0, utf8.length);
        }

        /** Adds a missing value: NaN, or the empty string. */
        void none() {
            if (dims != null && dims.length > 0) {
                throw ServingException.invalidArgument("column '" + name + "' has no value in row " + count);
            }
            dims = new long[0];
            switch (spec.dataType()) {
                case FP64 -> number(8).putDouble(0, Double.NaN);
                case FP32 -> number(4).putFloat(0, Float.NaN);
                case BYTES -> bytes("");
                default ->
                    throw ServingException.invalidArgument("column '" + name + "' has no value in row " + count
                            + " (expected: " + spec.dataType() + ", which has no missing values)");
            }
            count++;
        }

        Tensor tensor(TensorSpec input, int rows) {
            if (count != rows) {
                throw ServingException.invalidArgument(
                        "column '" + name + "' has " + count + " values (expected: " + rows + ")");
            }
            long[] inner = dims == null ? new long[0] : dims;
            long[] all = new long[inner.length + 1];
            all[0] = rows;
            System.arraycopy(inner, 0, all, 1, inner.length);
            Shape shape = Shape.of(all);
            if (input.shape().rank() == 2 && shape.rank() == 1 && fits(input, 1)) {
                shape = Shape.of(rows, 1);
            }
            return DataFrame.tensor(input, shape, sink);
        }
    }
}
