// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v1.rest;

import io.nereid.base.ErrorCode;
import io.nereid.base.NameSuggestions;
import io.nereid.base.ServingException;
import io.nereid.json.ByteSink;
import io.nereid.json.BytesStyle;
import io.nereid.json.FloatStyle;
import io.nereid.json.JsonReader;
import io.nereid.json.JsonToken;
import io.nereid.json.JsonWriter;
import io.nereid.json.TensorReader;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.Signature;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import io.nereid.tfdata.ExampleTensors;
import io.nereid.transport.api.HttpReply;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Decodes the body of {@code :predict} and encodes its response. Row format: {@code instances} holds one value, or one
 * object of named values, for each row. Column format: {@code inputs} holds the only value, or an object of named
 * values. Reused; confined to one thread.
 */
final class PredictJson {
    private static final int KEPT = 1 << 20;
    /** The response parameter with the id of the batch that the request was run in. */
    private static final String BATCH_ID = "batch_id";

    private static final String INSTANCES = "instances";

    private final RestRequestBody body;
    private final JsonReader reader;
    private final TensorReader tensors;
    private final JsonWriter writer = new JsonWriter(1024);
    private final List<Column> columns = new ArrayList<>();
    private int used;
    private String featureNames = "";
    /** Whether a null is a missing value of the model. */
    private boolean missing;
    /** The backend of a model that answers as KServe's Python servers do; empty for all others. */
    private String kserve = "";
    /** The names of outputs of the present answer that hold documents, separated and enclosed by commas. */
    private String documents = "";
    /** The field of the body that has the rows. */
    private String list = INSTANCES;

    PredictJson(RestRequestBody body, FloatStyle floats) {
        this.body = body;
        this.reader = body.reader();
        this.tensors = new TensorReader(reader, true, true);
        tensors.missing(() -> missing);
        writer.floatStyle(floats);
    }

    /** Whether the answer is in row format: if the body is, and always for the models of KServe's Python servers. */
    boolean rows() {
        return body.instances() != RestRequestBody.NONE || !kserve.isEmpty();
    }

    /** Decodes the named tensors of the open body; the caller owns them. */
    List<Tensor> decode(Signature signature) {
        return decode(signature, Map.of());
    }

    /**
     * As {@link #decode(Signature)}.
     *
     * @param properties the properties of the model. With the names of a table's columns, {@link ExampleTensors#COLUMNS},
     *     a row may be a list of a value for each input that has one of these names, or an object of named values. With
     *     {@link ModelMetadata#KSERVE_SERVER}, a list in {@code inputs} is one of rows as that in {@code instances} is
     */
    List<Tensor> decode(Signature signature, Map<String, String> properties) {
        featureNames = properties.getOrDefault(ExampleTensors.COLUMNS, "");
        kserve = properties.getOrDefault(ModelMetadata.KSERVE_SERVER, "");
        missing = properties.containsKey(ModelMetadata.MISSING_VALUES);
        list = INSTANCES;
        int instances = body.instances();
        int inputs = body.inputs();
        if (!kserve.isEmpty() && inputs >= 0 && isList(inputs)) {
            list = "inputs";
            instances = inputs;
            inputs = RestRequestBody.NONE;
        }
        if (instances >= 0 && inputs >= 0) {
            throw ServingException.invalidArgument(
                    "JSON Value: " + body.excerpt(0)
                            + " Not formatted correctly expecting only one of 'inputs' or 'instances' keys to exist ",
                    "both are given");
        }
        if (instances < 0 && inputs < 0) {
            throw ServingException.invalidArgument(
                    "Missing 'inputs' or 'instances' key",
                    "send {\"instances\": [...]} with one element per row, or {\"inputs\": ...}");
        }
        try {
            begin(signature.inputs());
            if (instances >= 0) {
                return readRows(instances, signature.inputs());
            }
            return readColumns(inputs);
        } finally {
            for (int i = 0; i < used; i++) {
                columns.get(i).sink.shrinkTo(KEPT);
            }
        }
    }

    private boolean isList(int at) {
        reader.seek(at);
        return reader.peek() == JsonToken.ARRAY;
    }

    private void begin(List<TensorSpec> specs) {
        used = specs.size();
        while (columns.size() < used) {
            columns.add(new Column(specs.get(columns.size())));
        }
        for (int i = 0; i < used; i++) {
            columns.get(i).begin(specs.get(i));
        }
    }

    private List<Tensor> readRows(int at, List<TensorSpec> specs) {
        reader.seek(at);
        if (reader.peek() != JsonToken.ARRAY) {
            throw ServingException.invalidArgument("Expected \"instances\" to be a list: JSON Value: " + body.excerpt(0)
                    + " Excepting 'instances' to be an list/array");
        }
        reader.beginArray();
        if (!reader.hasNext()) {
            throw ServingException.invalidArgument(
                    "JSON Value: " + body.excerpt(0) + " No values in '" + list + "' array",
                    "'" + list + "' is empty (expected at least one element)");
        }
        if (areTables(specs)) {
            return new TableRows(reader, list, specs, TableRows.names(featureNames), kserve.equals("lightgbm")).read();
        }
        if (objectOfNames()) {
            return readNamedRows();
        }
        if (used != 1) {
            List<Column> table = reader.peek() == JsonToken.ARRAY ? table() : List.of();
            if (!table.isEmpty()) {
                return readTable(table);
            }
            throw ServingException.invalidArgument(
                    "instances is a plain list, but expecting list of objects as multiple input tensors required as per"
                            + " tensorinfo_map",
                    "send objects with the keys " + names());
        }
        // the list of rows is itself a tensor: read it in one step
        Column column = columns.get(0);
        reader.seek(at);
        try {
            tensors.readNested(column.spec.dataType(), column.sink);
        } catch (ServingException e) {
            throw e.code() == ErrorCode.INVALID_ARGUMENT ? column.fault().ofRows(at, column.named(e)) : e;
        }
        column.dims = tensors.dims();
        return List.of(column.tensor(Shape.of(column.dims)));
    }

    /**
     * Whether the elements, at whose first one the reader is, are tables with named columns: a row or columns of a model
     * with one input for all columns, and what only is a table for the models of KServe's servers. Leaves the reader there.
     */
    private boolean areTables(List<TensorSpec> specs) {
        JsonToken first = reader.peek();
        if (first != JsonToken.OBJECT && first != JsonToken.ARRAY
                || kserve.isEmpty() && (featureNames.isEmpty() || !TableRows.matrix(specs))) {
            return false;
        }
        int at = reader.position();
        boolean tables;
        if (first == JsonToken.ARRAY) {
            reader.beginArray();
            tables = reader.hasNext() && objectOfNames();
        } else if (!objectOfNames()) {
            tables = false;
        } else {
            reader.beginObject();
            boolean named = reader.nextField();
            if (TableRows.matrix(specs)) {
                tables = !named || !reader.keyEquals(specs.get(0).name());
            } else {
                tables = named && specs.size() > 1 && (reader.peek() == JsonToken.ARRAY || objectOfNames());
            }
        }
        reader.seek(at);
        return tables;
    }

    /** The columns of a table that have an input of their own, in the table's order; none unless all have. */
    private List<Column> table() {
        List<Column> table = new ArrayList<>();
        for (String name : featureNames.isEmpty() ? new String[0] : featureNames.split(",", -1)) {
            for (int i = 0; i < used; i++) {
                if (columns.get(i).spec.name().equals(name)) {
                    table.add(columns.get(i));
                    break;
                }
            }
        }
        return table.size() == featureNames.split(",", -1).length ? table : List.of();
    }

    /** Reads rows that are lists with a value for each column; the reader is at the first row. */
    private List<Tensor> readTable(List<Column> table) {
        int row = 0;
        do {
            int given = 0;
            reader.beginArray();
            while (reader.hasNext()) {
                if (given < table.size()) {
                    Column column = table.get(given);
                    try {
                        column.read();
                    } catch (ServingException e) {
                        throw ServingException.of(
                                e.code(),
                                "Failed to process element: " + row + " of '" + list + "' list, '" + column.spec.name()
                                        + "'. Error: INVALID_ARGUMENT: " + e.getMessage(),
                                e.remedy());
                    }
                } else {
                    reader.skipValue();
                }
                given++;
            }
            if (given != table.size()) {
                throw ServingException.invalidArgument(
                        "Failed to process element: " + row + " of '" + list + "' list. It has " + given
                                + " values (expected: " + table.size() + ")",
                        "a row has a value for each of " + featureNames + ", in this order, or names them");
            }
            row++;
        } while (reader.hasNext());
        List<Tensor> result = new ArrayList<>(table.size());
        for (Column column : table) {
            result.add(column.tensor(Shape.of(column.dims).prepend(row)));
        }
        return result;
    }

    /** Reads rows that are objects of named values; the reader is at the first row. */
    private List<Tensor> readNamedRows() {
        int row = 0;
        do {
            int at = reader.position();
            if (!objectOfNames()) {
                throw ServingException.invalidArgument(
                        "Expecting object but got list at item " + row + " of input list",
                        "the elements of 'instances' are objects of named values, or none is");
            }
            readNamedRow(row, at);
            row++;
        } while (reader.hasNext());
        List<Tensor> result = new ArrayList<>(used);
        for (int i = 0; i < used; i++) {
            Column column = columns.get(i);
            if (column.count > 0) {
                result.add(column.tensor(Shape.of(column.dims).prepend(row)));
            }
        }
        return result;
    }

    private void readNamedRow(int row, int at) {
        reader.beginObject();
        while (reader.nextField()) {
            Column column = column();
            try {
                if (column == null) {
                    String key = reader.key();
                    throw ServingException.invalidArgument(
                            "JSON object: does not have named input: " + key,
                            "'" + key + "' is not an input of the model: "
                                    + NameSuggestions.didYouMean(key, names(), "its inputs are " + names()));
                }
                column.read();
            } catch (ServingException e) {
                if (e.code() != ErrorCode.INVALID_ARGUMENT) {
                    throw e;
                }
                throw ServingException.invalidArgument(
                        "Failed to process element: " + row + " key: "
                                + (column == null ? reader.key() : column.spec.name())
                                + " of '" + list + "' list. Error: INVALID_ARGUMENT: " + e.getMessage(),
                        e.remedy());
            }
        }
        for (int i = 0; i < used; i++) {
            Column c = columns.get(i);
            if (c.count != row + 1 && (c.count > 0 || !c.spec.optional())) {
                throw ServingException.invalidArgument(
                        "Failed to process element: " + row + " of '" + list + "' list. JSON object: "
                                + body.excerpt(at) + " keys must be equal to: " + String.join(",", names()),
                        (c.count > row + 1 ? "Named input given twice: " : "Missing named input: ") + c.spec.name()
                                + " in 'instances' object.");
            }
        }
    }

    private List<Tensor> readColumns(int at) {
        reader.seek(at);
        if (objectOfNames()) {
            return readNamedColumns();
        }
        if (used != 1) {
            throw ServingException.invalidArgument(
                    "inputs is a plain value/list, but expecting an object as multiple input tensors required as per"
                            + " tensorinfo_map",
                    "send an object with the keys " + names());
        }
        Column column = columns.get(0);
        column.read();
        return List.of(column.tensor(Shape.of(column.dims)));
    }

    private List<Tensor> readNamedColumns() {
        String unknown = null;
        reader.beginObject();
        while (reader.nextField()) {
            Column column = column();
            if (column == null) {
                unknown = reader.key();
                reader.skipValue();
            } else if (column.count > 0) {
                throw ServingException.invalidArgument("input '" + column.spec.name() + "' is given twice");
            } else {
                column.read();
            }
        }
        List<Tensor> result = new ArrayList<>(used);
        for (int i = 0; i < used; i++) {
            Column column = columns.get(i);
            if (column.count == 0 && !column.spec.optional()) {
                Tensor.closeAll(result);
                throw ServingException.invalidArgument(
                        "Missing named input: " + column.spec.name() + " in 'inputs' object.",
                        unknown == null
                                ? null
                                : "'" + unknown + "' is not an input of the model: "
                                        + NameSuggestions.didYouMean(unknown, names(), "its inputs are " + names()));
            }
            if (column.count > 0) {
                result.add(column.tensor(Shape.of(column.dims)));
            }
        }
        return result;
    }

    /** The column of the current field, or null. */
    private @Nullable Column column() {
        for (int i = 0; i < used; i++) {
            Column c = columns.get(i);
            if (reader.keyEquals(c.spec.name())) {
                return c;
            }
        }
        return null;
    }

    private List<String> names() {
        return columns.subList(0, used).stream().map(c -> c.spec.name()).toList();
    }

    /** Whether the next value is an object of named values, and not <code>{"b64": …}</code>, which is a value. */
    private boolean objectOfNames() {
        if (reader.peek() != JsonToken.OBJECT || !reader.firstKeyIs("b64")) {
            return reader.peek() == JsonToken.OBJECT;
        }
        int at = reader.position();
        boolean value = JsonErrorDescriber.isBase64(reader);
        reader.seek(at);
        return !value;
    }

    /** Encodes a response; the caller still owns the outputs. */
    HttpReply encode(List<Tensor> outputs, boolean asRows) {
        return encode(outputs, asRows, Map.of());
    }

    /**
     * As {@link #encode(List, boolean)}.
     *
     * @param parameters the response's parameters; a batch id is written in the form of KServe's batcher
     */
    HttpReply encode(List<Tensor> outputs, boolean asRows, Map<String, Object> parameters) {
        return encode(outputs, asRows, parameters, Map.of());
    }

    /**
     * As {@link #encode(List, boolean, Map)}.
     *
     * @param properties the properties of the model; outputs that {@link ModelMetadata#JSON_OUTPUTS} names are written as values
     */
    HttpReply encode(
            List<Tensor> outputs, boolean asRows, Map<String, Object> parameters, Map<String, String> properties) {
        documents = "," + properties.getOrDefault(ModelMetadata.JSON_OUTPUTS, "") + ",";
        if (outputs.isEmpty()) {
            throw ServingException.invalidArgument("Cannot convert empty tensor map to JSON");
        }
        writer.reset();
        writer.beginObject();
        if (!parameters.isEmpty() && parameters.get(BATCH_ID) instanceof String batch) {
            writer.name("message").value("").name("batchId").value(batch);
        }
        if (asRows) {
            writer.name("predictions");
            writeRows(outputs);
        } else {
            writer.name("outputs");
            if (outputs.size() == 1) {
                value(outputs.get(0), outputs.get(0).buffer(), 0, 0);
            } else {
                writer.beginObject();
                for (Tensor t : outputs) {
                    writer.name(t.name());
                    value(t, t.buffer(), 0, 0);
                }
                writer.endObject();
            }
        }
        writer.endObject();
        byte[] bytes = Arrays.copyOf(writer.array(), writer.length());
        return HttpReply.json(200, bytes, bytes.length);
    }

    private void writeRows(List<Tensor> outputs) {
        long n = -1;
        for (Tensor t : outputs) {
            if (t.shape().rank() == 0) {
                throw ServingException.of(
                        ErrorCode.INVALID_ARGUMENT,
                        "Tensor name: " + t.name() + " has no shape information ",
                        "use the column format: {\"inputs\": ...}");
            }
            if (n >= 0 && t.shape().dim(0) != n) {
                throw ServingException.of(
                        ErrorCode.INVALID_ARGUMENT,
                        "Tensor name: " + t.name() + " has inconsistent batch size: "
                                + t.shape().dim(0) + " expecting: " + n,
                        "use the column format: {\"inputs\": ...}");
            }
            n = t.shape().dim(0);
        }
        ByteBuffer[] buffers = new ByteBuffer[outputs.size()];
        for (int i = 0; i < buffers.length; i++) {
            buffers[i] = outputs.get(i).buffer();
        }
        int[] at = new int[outputs.size()];
        writer.beginArray();
        for (long row = 0; row < n; row++) {
            if (outputs.size() == 1) {
                at[0] = value(outputs.get(0), buffers[0], at[0], 1);
            } else {
                writer.beginObject();
                for (int i = 0; i < buffers.length; i++) {
                    writer.name(outputs.get(i).name());
                    at[i] = value(outputs.get(i), buffers[i], at[i], 1);
                }
                writer.endObject();
            }
        }
        writer.endArray();
    }

    private int value(Tensor t, ByteBuffer bytes, int at, int fromDim) {
        if (t.dataType() == DataType.BYTES && documents.contains("," + t.name() + ",")) {
            return documents(t.shape(), bytes, at, fromDim);
        }
        writer.bytesStyle(t.name().endsWith("_bytes") ? BytesStyle.BASE64 : BytesStyle.REJECT_MALFORMED);
        try {
            return writer.nestedArray(t.dataType(), bytes, at, t.shape().dims(), fromDim);
        } catch (ServingException e) {
            throw ServingException.of(
                    ErrorCode.INVALID_ARGUMENT,
                    "output '" + t.name() + "' holds bytes that are not UTF-8 text",
                    "ask for it over the V2 protocol, or name the output '" + t.name() + "_bytes' to get base64");
        }
    }

    /** Writes elements that are documents as values, in nested arrays; returns the position after them. */
    private int documents(Shape shape, ByteBuffer bytes, int from, int dim) {
        if (dim >= shape.rank()) {
            byte[] text = new byte[bytes.getInt(from)];
            bytes.get(from + Integer.BYTES, text);
            byte[] json = LiteralText.toJson(text);
            writer.rawValue(json, 0, json.length);
            return from + Integer.BYTES + text.length;
        }
        int at = from;
        writer.beginArray();
        for (long i = 0; i < shape.dim(dim); i++) {
            at = documents(shape, bytes, at, dim + 1);
        }
        writer.endArray();
        return at;
    }

    /** The values read so far for one input. */
    private final class Column {
        private final ByteSink sink = new ByteSink(256);
        private TensorSpec spec;
        private long[] dims = {};
        private int count;

        Column(TensorSpec spec) {
            this.spec = spec;
        }

        void begin(TensorSpec next) {
            spec = next;
            count = 0;
            sink.reset();
        }

        /** Reads a value, which must have the shape of the one before. */
        void read() {
            int at = reader.position();
            try {
                tensors.readNested(spec.dataType(), sink);
            } catch (ServingException e) {
                throw e.code() == ErrorCode.INVALID_ARGUMENT ? fault().ofValue(at, named(e)) : e;
            }
            if (count++ == 0) {
                dims = tensors.dims();
            } else if (!sameShape()) {
                throw ServingException.invalidArgument(
                        String.valueOf(JsonErrorDescriber.difference(dims, tensors.dims())));
            }
        }

        private boolean sameShape() {
            boolean same = dims.length == tensors.rank();
            for (int i = 0; same && i < dims.length; i++) {
                same = dims[i] == tensors.dim(i);
            }
            return same;
        }

        JsonErrorDescriber fault() {
            return new JsonErrorDescriber(body, spec.dataType());
        }

        ServingException named(ServingException e) {
            return ServingException.invalidArgument("input '" + spec.name() + "': " + e.getMessage(), e.remedy());
        }

        Tensor tensor(Shape shape) {
            MemoryRegion region = MemoryRegion.copyOf(sink.array(), 0, sink.length());
            return Tensor.over(spec.name(), spec.dataType(), shape, region, 0, sink.length());
        }
    }
}
