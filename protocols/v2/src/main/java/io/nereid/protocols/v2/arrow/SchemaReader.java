// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.arrow;

import io.nereid.base.ServingException;
import io.nereid.base.flatbuffers.FlatBuffersTable;
import io.nereid.json.JsonReader;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Reads the schema of a stream and refuses types of columns that are not tensors. The numbers of fields and types are
 * those of Arrow's Schema.fbs. Holds no state.
 */
final class SchemaReader {
    /** Far above the columns of tables; it limits the memory that a small schema can take. */
    static final int MAX_COLUMNS = 65_536;

    private static final int MAX_DEPTH = 32;
    private static final int INT = 2;
    private static final int FLOATING_POINT = 3;
    private static final int BINARY = 4;
    private static final int UTF8 = 5;
    private static final int BOOL = 6;
    private static final int FIXED_SIZE_LIST = 16;
    private static final int LARGE_BINARY = 19;
    private static final int LARGE_UTF8 = 20;
    private static final int BINARY_VIEW = 23;
    private static final int UTF8_VIEW = 24;

    /** The types of Arrow by their numbers. */
    private static final String[] NAMES = {
        "none",
        "null",
        "int",
        "floating point",
        "binary",
        "utf8",
        "bool",
        "decimal",
        "date",
        "time",
        "timestamp",
        "interval",
        "list",
        "struct",
        "union",
        "fixed_size_binary",
        "fixed_size_list",
        "map",
        "duration",
        "large_binary",
        "large_utf8",
        "large_list",
        "run_end_encoded",
        "binary_view",
        "utf8_view",
        "list_view",
        "large_list_view"
    };

    private SchemaReader() {}

    static ArrowSchema read(FlatBuffersTable schema) {
        if (schema.shortAt(0, 0) != 0) {
            throw ServingException.invalidArgument(
                    "the Arrow stream is big-endian (expected: little-endian)", "write it on a little-endian machine");
        }
        List<FlatBuffersTable> tables = schema.tables(1);
        if (tables.size() > MAX_COLUMNS) {
            throw ServingException.invalidArgument(
                    "the table has " + tables.size() + " columns (expected: at most " + MAX_COLUMNS + ")",
                    "send the features as one column of fixed-size lists");
        }
        List<ArrowField> fields = new ArrayList<>(tables.size());
        for (FlatBuffersTable table : tables) {
            fields.add(field(table));
        }
        return new ArrowSchema(List.copyOf(fields), pairs(schema, 2));
    }

    private static Map<String, String> pairs(FlatBuffersTable table, int number) {
        Map<String, String> pairs = new LinkedHashMap<>();
        for (FlatBuffersTable pair : table.tables(number)) {
            pairs.put(pair.text(0), pair.text(1));
        }
        return pairs;
    }

    private static ArrowField field(FlatBuffersTable outermost) {
        String name = outermost.text(0);
        long[] lists = new long[MAX_DEPTH];
        int depth = 0;
        FlatBuffersTable leaf = outermost;
        while (true) {
            if (leaf.has(4)) {
                throw refused(
                        name,
                        "dictionary",
                        "decode it, with column.dictionary_decode() in pyarrow or cast(pl.String) in polars");
            }
            if (leaf.byteAt(2, 0) != FIXED_SIZE_LIST) {
                break;
            }
            FlatBuffersTable type = leaf.table(3);
            List<FlatBuffersTable> children = leaf.tables(5);
            if (type == null || children.size() != 1 || type.intAt(0, 0) < 0) {
                throw ArrowStreamReader.damaged("the list of column '" + name + "' has no size or no values");
            }
            if (depth == MAX_DEPTH) {
                throw refused(name, "of lists nested more than " + MAX_DEPTH + " deep", "reduce the dimensions");
            }
            lists[depth] = type.intAt(0, 0);
            depth++;
            leaf = children.get(0);
        }
        Shape shape = Shape.of(Arrays.copyOf(lists, depth));
        // the product must fit into a number before anything multiplies with it
        shape.elementCount();
        return leaf(name, leaf, shape, row(outermost, name, shape));
    }

    private static ArrowField leaf(String name, FlatBuffersTable field, Shape lists, Shape row) {
        int kind = field.byteAt(2, 0);
        FlatBuffersTable type = field.table(3);
        return switch (kind) {
            case INT -> integer(name, type, lists, row);
            case FLOATING_POINT -> {
                int precision = type == null ? 0 : type.shortAt(0, 0);
                yield switch (precision) {
                    case 0 -> new ArrowField(name, "halffloat", DataType.FP16, ColumnLayout.FIXED, lists, row);
                    case 1 -> new ArrowField(name, "float", DataType.FP32, ColumnLayout.FIXED, lists, row);
                    case 2 -> new ArrowField(name, "double", DataType.FP64, ColumnLayout.FIXED, lists, row);
                    default ->
                        throw ArrowStreamReader.damaged(
                                "column '" + name + "' has floating-point precision " + precision);
                };
            }
            case BOOL -> new ArrowField(name, "bool", DataType.BOOL, ColumnLayout.BITS, lists, row);
            case BINARY, UTF8 -> new ArrowField(name, NAMES[kind], DataType.BYTES, ColumnLayout.OFFSETS, lists, row);
            case LARGE_BINARY, LARGE_UTF8 ->
                new ArrowField(name, NAMES[kind], DataType.BYTES, ColumnLayout.LARGE_OFFSETS, lists, row);
            case BINARY_VIEW, UTF8_VIEW ->
                new ArrowField(name, NAMES[kind], DataType.BYTES, ColumnLayout.VIEWS, lists, row);
            default ->
                throw refused(
                        name,
                        kind > 0 && kind < NAMES.length ? NAMES[kind] : "of unknown number " + kind,
                        remedy(kind));
        };
    }

    private static ArrowField integer(String name, @Nullable FlatBuffersTable type, Shape lists, Shape row) {
        int bits = type == null ? 0 : type.intAt(0, 0);
        boolean signed = type != null && type.byteAt(1, 0) != 0;
        DataType found = switch (bits) {
            case 8 -> signed ? DataType.INT8 : DataType.UINT8;
            case 16 -> signed ? DataType.INT16 : DataType.UINT16;
            case 32 -> signed ? DataType.INT32 : DataType.UINT32;
            case 64 -> signed ? DataType.INT64 : DataType.UINT64;
            default -> throw ArrowStreamReader.damaged("column '" + name + "' has integers of " + bits + " bits");
        };
        return new ArrowField(name, (signed ? "int" : "uint") + bits, found, ColumnLayout.FIXED, lists, row);
    }

    private static String remedy(int kind) {
        return switch (NAMES[kind > 0 && kind < NAMES.length ? kind : 0]) {
            case "decimal" -> "convert it, such as with column.cast(pa.float64())";
            case "date", "time", "timestamp", "interval", "duration" ->
                "convert it to the number that the model was trained with, such as with column.cast(pa.int64())";
            case "list", "large_list", "list_view", "large_list_view" ->
                "send lists of one length as fixed-size lists, such as column.cast(pa.list_(pa.float32(), 4))";
            case "struct", "union", "map" -> "send each member as a column of its own, such as with table.flatten()";
            case "fixed_size_binary" -> "convert it with column.cast(pa.binary())";
            case "run_end_encoded" -> "decode it with pyarrow.compute.run_end_decode(column)";
            default -> "convert it to the type of the model's input";
        };
    }

    static ServingException refused(String column, String type, String remedy) {
        return ServingException.invalidArgument(
                "column '" + column + "' has a type that is not supported: " + type
                        + " (expected: integers, floating-point numbers, bool, utf8, binary, or fixed-size lists of them)",
                remedy);
    }

    /** The shape of a row: that of the lists, but for the extension type of tensors, whose values are one list. */
    private static Shape row(FlatBuffersTable field, String name, Shape lists) {
        if (!pairs(field, 6).getOrDefault("ARROW:extension:name", "").equals("arrow.fixed_shape_tensor")) {
            return lists;
        }
        String text = pairs(field, 6).getOrDefault("ARROW:extension:metadata", "");
        long[] dims = new long[MAX_DEPTH];
        int rank = 0;
        boolean permuted = false;
        byte[] bytes = Arrays.copyOf(
                text.getBytes(StandardCharsets.UTF_8), text.getBytes(StandardCharsets.UTF_8).length + JsonReader.SLACK);
        JsonReader json = new JsonReader();
        json.reset(bytes, 0, bytes.length - JsonReader.SLACK);
        json.describe("the metadata of column '" + name + "'");
        json.beginObject();
        while (json.nextField()) {
            if (json.keyEquals("shape")) {
                json.beginArray();
                while (json.hasNext()) {
                    if (rank == MAX_DEPTH) {
                        throw refused(name, "a tensor of more than " + MAX_DEPTH + " dimensions", "reduce them");
                    }
                    dims[rank] = json.readLong();
                    rank++;
                }
            } else if (json.keyEquals("permutation") && !json.tryNull()) {
                int next = 0;
                json.beginArray();
                while (json.hasNext()) {
                    permuted |= json.readLong() != next;
                    next++;
                }
            } else {
                json.skipValue();
            }
        }
        if (permuted) {
            throw refused(
                    name, "a tensor whose dimensions are permuted", "make it contiguous before it becomes a column");
        }
        Shape shape = Shape.of(Arrays.copyOf(dims, rank));
        if (shape.isDynamic() || shape.elementCount() != lists.elementCount()) {
            throw ArrowStreamReader.damaged("column '" + name + "' has lists of " + lists.elementCount()
                    + " values, but its metadata has shape " + shape);
        }
        return shape;
    }
}
