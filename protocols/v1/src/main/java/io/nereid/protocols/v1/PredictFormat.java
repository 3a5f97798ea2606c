// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v1;

import io.nereid.base.Code;
import io.nereid.base.ServingException;
import io.nereid.base.Suggestions;
import io.nereid.endpoint.HttpReply;
import io.nereid.json.ByteSink;
import io.nereid.json.BytesStyle;
import io.nereid.json.JsonReader;
import io.nereid.json.JsonToken;
import io.nereid.json.JsonWriter;
import io.nereid.json.TensorReader;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * The body of {@code :predict} and of its answer. Row format: {@code instances} holds one value, or one object of named
 * values, per row. Column format: {@code inputs} holds the one value, or an object of named values. Reused; confined to one
 * thread.
 */
final class PredictFormat {
    private static final int KEPT = 1 << 20;

    private final JsonReader reader = new JsonReader();
    private final TensorReader tensors = new TensorReader(reader, true);
    private final JsonWriter writer = new JsonWriter(1024);
    private byte[] text = new byte[4096];
    private boolean rows;

    /** Whether the last decoded body was in row format; the answer takes the same. */
    boolean rows() {
        return rows;
    }

    /** The named tensors of a body, owned by the caller. */
    List<Tensor> decode(MemoryRegion body, ModelMetadata metadata) {
        int length = body.size();
        if (text.length < length + JsonReader.SLACK) {
            text = new byte[length + JsonReader.SLACK + 1024];
        }
        body.getBytes(0, text, 0, length);
        reader.reset(text, 0, length);
        try {
            return decode(metadata);
        } finally {
            if (text.length > KEPT) {
                text = new byte[4096];
            }
        }
    }

    private List<Tensor> decode(ModelMetadata metadata) {
        int instances = -1;
        int inputs = -1;
        try {
            reader.beginObject();
            while (reader.nextField()) {
                if (reader.keyEquals("instances")) {
                    instances = reader.position();
                    reader.skipValue();
                } else if (reader.keyEquals("inputs")) {
                    inputs = reader.position();
                    reader.skipValue();
                } else if (reader.keyEquals("signature_name")) {
                    signature(reader.readString(), metadata);
                } else {
                    reader.skipValue();
                }
            }
            reader.expectEnd();
        } catch (ServingException e) {
            throw e.getMessage().startsWith("Serving signature")
                    ? e
                    : ServingException.invalidArgument("Unrecognized request format: " + e.getMessage(), e.remedy());
        }
        if (instances >= 0 && inputs >= 0) {
            throw ServingException.invalidArgument(
                    "Not formatted correctly: both 'instances' and 'inputs' are given (expected one of them)");
        }
        if (instances < 0 && inputs < 0) {
            throw ServingException.invalidArgument(
                    "Missing 'inputs' or 'instances' key",
                    "send {\"instances\": [...]} with one element per row, or {\"inputs\": ...}");
        }
        rows = instances >= 0;
        reader.seek(rows ? instances : inputs);
        List<Column> columns = new ArrayList<>();
        for (TensorSpec spec : metadata.inputs()) {
            columns.add(new Column(spec));
        }
        if (rows) {
            if (reader.peek() != JsonToken.ARRAY) {
                throw ServingException.invalidArgument("Expected \"instances\" to be a list, found " + reader.peek());
            }
            readRows(columns, metadata);
        } else {
            readColumns(columns, metadata);
        }
        List<Tensor> result = new ArrayList<>();
        for (Column column : columns) {
            if (column.dims != null) {
                result.add(column.tensor(rows));
            } else if (!column.spec.optional()) {
                Tensor.closeAll(result);
                throw ServingException.invalidArgument("Missing named input: " + column.spec.name() + " in '"
                        + (rows ? "instances" : "inputs") + "' object.");
            }
        }
        return result;
    }

    private static void signature(String name, ModelMetadata metadata) {
        if (!name.isEmpty() && !name.equals("serving_default")) {
            throw ServingException.invalidArgument(
                    "Serving signature name: \"" + name + "\" not found in signature def of model '"
                            + metadata.id().model() + "'",
                    "leave signature_name out, or use serving_default");
        }
    }

    private void readRows(List<Column> columns, ModelMetadata metadata) {
        reader.beginArray();
        Boolean named = null;
        while (reader.hasNext()) {
            boolean object = reader.peek() == JsonToken.OBJECT && !isBase64(columns);
            if (named != null && named != object) {
                throw ServingException.invalidArgument(
                        "'instances' mixes objects and plain values (expected all elements of one kind)");
            }
            named = object;
            if (object) {
                readNamed(columns, metadata);
            } else {
                only(columns, metadata).read(true);
            }
        }
        if (named == null) {
            throw ServingException.invalidArgument("'instances' is empty (expected at least one element)");
        }
    }

    private void readColumns(List<Column> columns, ModelMetadata metadata) {
        if (reader.peek() == JsonToken.OBJECT && !isBase64(columns)) {
            readNamed(columns, metadata);
        } else {
            only(columns, metadata).read(false);
        }
    }

    private void readNamed(List<Column> columns, ModelMetadata metadata) {
        reader.beginObject();
        while (reader.nextField()) {
            Column column = null;
            for (Column c : columns) {
                if (reader.keyEquals(c.spec.name())) {
                    column = c;
                }
            }
            if (column == null) {
                String key = reader.key();
                List<String> known =
                        metadata.inputs().stream().map(TensorSpec::name).toList();
                throw ServingException.invalidArgument(
                        "'" + key + "' is not an input of model '"
                                + metadata.id().model() + "'",
                        Suggestions.didYouMean(key, known, "its inputs are " + known));
            }
            column.read(rows);
        }
        for (Column c : columns) {
            if (rows && c.dims != null && c.count != c.seen(columns)) {
                throw ServingException.invalidArgument(
                        "Missing named input: " + c.spec.name() + " in 'instances' object.");
            }
        }
    }

    private static Column only(List<Column> columns, ModelMetadata metadata) {
        if (columns.size() != 1) {
            throw ServingException.invalidArgument(
                    "model '" + metadata.id().model() + "' has " + columns.size()
                            + " inputs, but the values are not named",
                    "send an object with the keys "
                            + metadata.inputs().stream().map(TensorSpec::name).toList());
        }
        return columns.get(0);
    }

    /** Whether the object that comes next is {@code {"b64": …}}, a value and not a set of named values. */
    private boolean isBase64(List<Column> columns) {
        if (columns.size() != 1 || columns.get(0).spec.dataType() != DataType.BYTES) {
            return false;
        }
        int at = reader.position();
        reader.beginObject();
        boolean base64 = reader.nextField()
                && reader.keyEquals("b64")
                && !columns.get(0).spec.name().equals("b64");
        reader.seek(at);
        return base64;
    }

    /** The body of an answer; the outputs stay with the caller. */
    HttpReply encode(List<Tensor> outputs, boolean asRows) {
        writer.reset();
        writer.beginObject();
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
                        Code.INVALID_ARGUMENT,
                        "Tensor name: " + t.name() + " has no shape information, so there are no rows",
                        "use the column format: {\"inputs\": ...}");
            }
            if (n >= 0 && t.shape().dim(0) != n) {
                throw ServingException.of(
                        Code.INVALID_ARGUMENT,
                        "Tensor name: " + t.name() + " has inconsistent batch size: "
                                + t.shape().dim(0) + " expecting: " + n,
                        "use the column format: {\"inputs\": ...}");
            }
            n = t.shape().dim(0);
        }
        ByteBuffer[] buffers = outputs.stream().map(Tensor::buffer).toArray(ByteBuffer[]::new);
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
        writer.bytesStyle(t.name().endsWith("_bytes") ? BytesStyle.BASE64 : BytesStyle.REFUSE_MALFORMED);
        try {
            return writer.nestedArray(t.dataType(), bytes, at, t.shape().dims(), fromDim);
        } catch (ServingException e) {
            throw ServingException.of(
                    Code.INVALID_ARGUMENT,
                    "output '" + t.name() + "' holds bytes that are not UTF-8 text",
                    "ask for it over the V2 protocol, or name the output '" + t.name() + "_bytes' to get base64");
        }
    }

    /** What has been read of one input. */
    private final class Column {
        private final TensorSpec spec;
        private final ByteSink sink = new ByteSink(256);
        private long @org.jspecify.annotations.Nullable [] dims;
        private int count;

        Column(TensorSpec spec) {
            this.spec = spec;
        }

        /** Reads a value; the values of rows must all have one shape. */
        void read(boolean row) {
            reader.describe("input '" + spec.name() + "'");
            tensors.readNested(spec.dataType(), sink);
            reader.describe(null);
            long[] found = tensors.dims();
            if (dims != null && !row) {
                throw ServingException.invalidArgument("input '" + spec.name() + "' is given twice");
            }
            if (dims != null && !Arrays.equals(dims, found)) {
                throw ServingException.invalidArgument("Encountered list at unexpected size: input '" + spec.name()
                        + "' of row " + count + " has shape " + Arrays.toString(found) + ", the rows before "
                        + Arrays.toString(dims));
            }
            dims = found;
            count++;
        }

        /** The largest number of rows that any input has. */
        int seen(List<Column> all) {
            int most = 0;
            for (Column c : all) {
                most = Math.max(most, c.count);
            }
            return most;
        }

        Tensor tensor(boolean asRows) {
            Shape shape = Shape.of(dims == null ? new long[0] : dims);
            MemoryRegion region = MemoryRegion.copyOf(sink.array(), 0, sink.length());
            return Tensor.over(
                    spec.name(), spec.dataType(), asRows ? shape.prepend(count) : shape, region, 0, sink.length());
        }
    }
}
