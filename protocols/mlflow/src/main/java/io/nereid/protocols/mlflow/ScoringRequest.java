// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.mlflow;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.json.ByteSink;
import io.nereid.json.JsonReader;
import io.nereid.json.JsonToken;
import io.nereid.json.JsonWriter;
import io.nereid.json.TensorReader;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.commons.csv.CSVFormat;
import org.apache.commons.csv.CSVParser;
import org.apache.commons.csv.CSVRecord;

/**
 * A decoded scoring request.
 *
 * @param inputs the model's inputs, which the holder of this record owns
 * @param frame whether the request was a data frame
 * @param parameters the parameters of the request
 */
record ScoringRequest(List<Tensor> inputs, boolean frame, Map<String, Object> parameters) {
    /** The parameter with the names of columns, a list in JSON: of a request's matrix, or of a Python function's result. */
    static final String FEATURE_NAMES = "feature_names";

    /** The parameter by which a Python function knows a request of this protocol. */
    private static final String SCORING = "mlflow_scoring";

    private static final String EXPECTED = "The input must be a JSON dictionary with exactly one of the input fields"
            + " {'dataframe_split', 'dataframe_records', 'instances', 'inputs'}";
    private static final int NONE = -1;
    /** RFC 4180; as in pandas, text behind a closing quote belongs to the cell. */
    private static final CSVFormat CSV =
            CSVFormat.DEFAULT.builder().setTrailingData(true).get();

    /**
     * Decodes a table in CSV.
     *
     * @throws ServingException INVALID_ARGUMENT for a table without a header, or one that does not match the model
     */
    static ScoringRequest csv(MemoryRegion body, ModelMetadata metadata) {
        try (CSVParser lines = CSVParser.parse(csvText(body), CSV)) {
            Iterator<CSVRecord> records = lines.iterator();
            List<String> names = records.hasNext() ? records.next().toList() : List.of();
            if (!records.hasNext()) {
                throw ServingException.invalidArgument("the table has " + lines.getRecordNumber()
                        + " lines (expected: one with the names of the columns, and rows)");
            }
            DataFrame frame = new DataFrame(metadata, names);
            for (int row = 0; records.hasNext(); row++) {
                CSVRecord cells = records.next();
                if (cells.size() != names.size()) {
                    throw ServingException.invalidArgument("row " + row + " has " + cells.size() + " cells (expected: "
                            + names.size() + ", as there are columns)");
                }
                for (int c = 0; c < cells.size(); c++) {
                    frame.text(c, cells.get(c));
                }
                frame.endRow();
            }
            return of(frame, metadata, parameters(metadata));
        } catch (IOException | UncheckedIOException e) {
            // The text is in memory, so the only cause is a quote that is not closed.
            throw ServingException.wrap(ErrorCode.INVALID_ARGUMENT, "the table ends within a quoted cell", e);
        }
    }

    private static boolean function(ModelMetadata metadata) {
        return metadata.properties().containsKey(ModelMetadata.PYTHON_FUNCTION);
    }

    /** The parameters of a request before those that it has itself. */
    private static Map<String, Object> parameters(ModelMetadata metadata) {
        Map<String, Object> parameters = new HashMap<>();
        if (function(metadata)) {
            parameters.put(SCORING, true);
        }
        return parameters;
    }

    /** The request of a data frame; a Python function gets the names of a matrix's columns. */
    private static ScoringRequest of(DataFrame frame, ModelMetadata metadata, Map<String, Object> parameters) {
        if (function(metadata) && !frame.matrixColumns().isEmpty()) {
            JsonWriter names = new JsonWriter(256);
            names.beginArray();
            frame.matrixColumns().forEach(names::value);
            names.endArray();
            parameters.put(FEATURE_NAMES, new String(names.array(), 0, names.length(), StandardCharsets.UTF_8));
        }
        return new ScoringRequest(frame.tensors(), true, Map.copyOf(parameters));
    }

    /** The body as text, without a byte order mark. */
    private static String csvText(MemoryRegion body) {
        String text = new String(bytes(body), StandardCharsets.UTF_8);
        return text.startsWith("\uFEFF") ? text.substring(1) : text;
    }

    private static byte[] bytes(MemoryRegion body) {
        byte[] bytes = new byte[body.size()];
        body.getBytes(0, bytes, 0, bytes.length);
        return bytes;
    }

    /**
     * Decodes a JSON request in one of MLflow's four forms.
     *
     * @throws ServingException INVALID_ARGUMENT for a malformed request, or one that does not match the model
     */
    static ScoringRequest json(MemoryRegion body, ModelMetadata metadata) {
        byte[] text = new byte[body.size() + JsonReader.SLACK];
        body.getBytes(0, text, 0, body.size());
        JsonReader reader = new JsonReader();
        reader.reset(text, 0, body.size());
        return new Decoding(reader, text, metadata).decode();
    }

    /** Decodes one JSON body. Confined to one thread. */
    private static final class Decoding {
        private final JsonReader reader;
        private final byte[] text;
        private final TensorReader tensors;
        private final ModelMetadata metadata;
        private int split = NONE;
        private int records = NONE;
        private int instances = NONE;
        private int inputs = NONE;
        private final Map<String, Object> parameters;

        Decoding(JsonReader reader, byte[] text, ModelMetadata metadata) {
            this.reader = reader;
            this.text = text;
            this.tensors = new TensorReader(reader, true, true);
            this.metadata = metadata;
            this.parameters = ScoringRequest.parameters(metadata);
        }

        ScoringRequest decode() {
            scan();
            int given =
                    (split >= 0 ? 1 : 0) + (records >= 0 ? 1 : 0) + (instances >= 0 ? 1 : 0) + (inputs >= 0 ? 1 : 0);
            if (given != 1) {
                throw ServingException.invalidArgument(EXPECTED + ". Received " + given + " of them.");
            }
            if (split >= 0) {
                return of(split(), metadata, parameters);
            }
            if (records >= 0) {
                return of(records(records), metadata, parameters);
            }
            int at = Math.max(instances, inputs);
            reader.seek(at);
            if ((instances >= 0 || function(metadata)) && reader.peek() == JsonToken.ARRAY) {
                reader.beginArray();
                if (reader.hasNext() && object()) {
                    return of(records(at), metadata, parameters);
                }
            }
            reader.seek(at);
            return new ScoringRequest(object() ? named() : arrays(at), false, Map.copyOf(parameters));
        }

        /** Whether the next value is an object other than <code>{"b64": …}</code>, which is a value. */
        private boolean object() {
            return reader.peek() == JsonToken.OBJECT && !reader.firstKeyIs("b64");
        }

        private void scan() {
            int params = NONE;
            try {
                if (reader.peek() != JsonToken.OBJECT) {
                    throw ServingException.invalidArgument(
                            EXPECTED + ". Received " + (reader.peek() == JsonToken.ARRAY ? "a list." : "a value."));
                }
                reader.beginObject();
                while (reader.nextField()) {
                    int at = reader.position();
                    if (reader.keyEquals("dataframe_split")) {
                        split = at;
                    } else if (reader.keyEquals("dataframe_records")) {
                        records = at;
                    } else if (reader.keyEquals("instances")) {
                        instances = at;
                    } else if (reader.keyEquals("inputs")) {
                        inputs = at;
                    } else if (reader.keyEquals("params")) {
                        params = at;
                    }
                    reader.skipValue();
                }
                reader.expectEnd();
            } catch (ServingException e) {
                throw e.getMessage().startsWith(EXPECTED)
                        ? e
                        : ServingException.invalidArgument(
                                "Ensure that input is a valid JSON formatted string. Error: " + e.getMessage());
            }
            if (params >= 0) {
                reader.seek(params);
                params();
            }
        }

        /** Reads the parameters of a Python function, which gets lists as JSON; no other model has any. */
        private void params() {
            if (reader.tryNull()) {
                return;
            }
            reader.beginObject();
            while (reader.nextField()) {
                if (function(metadata)) {
                    String name = reader.key();
                    switch (reader.peek()) {
                        case STRING -> parameters.put(name, reader.readString());
                        case BOOLEAN -> parameters.put(name, reader.readBoolean());
                        case NUMBER -> parameters.put(name, number());
                        case NULL -> reader.skipValue();
                        default -> {
                            int from = reader.position();
                            reader.skipValue();
                            parameters.put(
                                    name, new String(text, from, reader.position() - from, StandardCharsets.UTF_8));
                        }
                    }
                    continue;
                }
                throw ServingException.invalidArgument(
                        "parameter '" + reader.key() + "' is not supported by the model (expected: no params)",
                        "configure the model instead, and leave 'params' out");
            }
        }

        private Object number() {
            if (reader.isIntegral()) {
                return reader.readLong();
            }
            return reader.readDouble();
        }

        private DataFrame split() {
            int columns = NONE;
            int data = NONE;
            reader.seek(split);
            reader.beginObject();
            while (reader.nextField()) {
                int at = reader.position();
                if (reader.keyEquals("columns")) {
                    columns = at;
                } else if (reader.keyEquals("data")) {
                    data = at;
                }
                reader.skipValue();
            }
            if (data < 0) {
                throw ServingException.invalidArgument("'dataframe_split' has no 'data'", "send 'columns' and 'data'");
            }
            List<String> names = columns < 0 ? positions(data) : names(columns);
            DataFrame frame = columns < 0 ? DataFrame.unnamed(metadata, names.size()) : new DataFrame(metadata, names);
            reader.seek(data);
            reader.beginArray();
            while (reader.hasNext()) {
                reader.beginArray();
                int c = 0;
                while (reader.hasNext()) {
                    if (c == names.size()) {
                        throw width(frame.rows(), names.size(), "more");
                    }
                    frame.value(c++, reader, tensors, function(metadata) ? text : null);
                }
                if (c != names.size()) {
                    throw width(frame.rows(), names.size(), String.valueOf(c));
                }
                frame.endRow();
            }
            return frame;
        }

        private static ServingException width(int row, int expected, String found) {
            return ServingException.invalidArgument(
                    "row " + row + " has " + found + " values (expected: " + expected + ", as there are columns)");
        }

        private List<String> names(int at) {
            List<String> names = new ArrayList<>();
            reader.seek(at);
            reader.beginArray();
            while (reader.hasNext()) {
                if (reader.peek() == JsonToken.NUMBER) {
                    names.add(String.valueOf(reader.readLong()));
                } else {
                    names.add(reader.readString());
                }
            }
            return names;
        }

        /** Positions as names, one for each value of the first row. */
        private List<String> positions(int at) {
            List<String> names = new ArrayList<>();
            reader.seek(at);
            reader.beginArray();
            if (reader.hasNext()) {
                reader.beginArray();
                while (reader.hasNext()) {
                    reader.skipValue();
                    names.add(String.valueOf(names.size()));
                }
            }
            return names;
        }

        private DataFrame records(int at) {
            Set<String> names = new LinkedHashSet<>();
            reader.seek(at);
            reader.beginArray();
            while (reader.hasNext()) {
                reader.beginObject();
                while (reader.nextField()) {
                    names.add(reader.key());
                    reader.skipValue();
                }
            }
            List<String> columns = List.copyOf(names);
            DataFrame frame = new DataFrame(metadata, columns);
            reader.seek(at);
            reader.beginArray();
            while (reader.hasNext()) {
                reader.beginObject();
                int expected = 0;
                while (reader.nextField()) {
                    int c = expected < columns.size() && reader.keyEquals(columns.get(expected))
                            ? expected
                            : columns.indexOf(reader.key());
                    frame.value(c, reader, tensors, function(metadata) ? text : null);
                    expected = c + 1;
                }
                frame.endRow();
            }
            return frame;
        }

        /** {@code {"inputs": {name: array, …}}}. */
        private List<Tensor> named() {
            List<Tensor> made = new ArrayList<>();
            boolean done = false;
            try {
                List<String> names = new ArrayList<>();
                List<Integer> places = new ArrayList<>();
                reader.beginObject();
                while (reader.nextField()) {
                    names.add(reader.key());
                    places.add(reader.position());
                    reader.skipValue();
                }
                List<TensorSpec> specs = metadata.inputs();
                if (specs.stream().noneMatch(s -> names.contains(s.name()))) {
                    List<Tensor> columns = columns(names, places);
                    done = true;
                    return columns;
                }
                for (TensorSpec spec : specs) {
                    int place = names.indexOf(spec.name());
                    if (place >= 0) {
                        reader.seek(places.get(place));
                        made.add(tensor(spec));
                    } else if (!spec.optional()) {
                        throw DataFrame.missing(List.of(spec.name()));
                    }
                }
                done = true;
                return made;
            } finally {
                if (!done) {
                    Tensor.closeAll(made);
                }
            }
        }

        /** Arrays by column, for a model with one input of all columns. */
        private List<Tensor> columns(List<String> names, List<Integer> places) {
            DataFrame frame = new DataFrame(metadata, names);
            int rows = -1;
            for (int c = 0; c < names.size(); c++) {
                reader.seek(places.get(c));
                if (reader.peek() != JsonToken.ARRAY) {
                    throw ServingException.invalidArgument(
                            "input '" + names.get(c) + "' is not a list (expected: a value for each row)");
                }
                int n = 0;
                reader.beginArray();
                while (reader.hasNext()) {
                    frame.value(c, reader, tensors, function(metadata) ? text : null);
                    n++;
                }
                if (rows >= 0 && n != rows) {
                    throw ServingException.invalidArgument("input '" + names.get(c) + "' has " + n
                            + " values (expected: " + rows + ", as '" + names.get(0) + "')");
                }
                rows = n;
            }
            frame.rows(Math.max(0, rows));
            return frame.tensors();
        }

        /** One array: the only input, or rows with a value for each input. */
        private List<Tensor> arrays(int at) {
            List<TensorSpec> specs = metadata.inputs();
            if (specs.size() == 1) {
                return List.of(tensor(specs.get(0)));
            }
            List<Integer> rows = new ArrayList<>();
            reader.seek(at);
            reader.beginArray();
            while (reader.hasNext()) {
                rows.add(reader.position());
                if (reader.peek() != JsonToken.ARRAY) {
                    throw ServingException.invalidArgument(
                            "the model has " + specs.size()
                                    + " inputs, and a row is one value (expected: a list of values," + " or names)",
                            "name the inputs: "
                                    + String.join(
                                            ", ",
                                            specs.stream().map(TensorSpec::name).toList()));
                }
                reader.skipValue();
            }
            List<Integer> first = rows.isEmpty() ? List.of() : elements(rows.get(0));
            DataFrame frame = DataFrame.unnamed(metadata, first.size());
            for (int row : rows) {
                reader.seek(row);
                reader.beginArray();
                int c = 0;
                while (reader.hasNext()) {
                    if (c == first.size()) {
                        throw width(frame.rows(), first.size(), "more");
                    }
                    frame.value(c++, reader, tensors, function(metadata) ? text : null);
                }
                if (c != first.size()) {
                    throw width(frame.rows(), first.size(), String.valueOf(c));
                }
                frame.endRow();
            }
            return frame.tensors();
        }

        private List<Integer> elements(int at) {
            List<Integer> elements = new ArrayList<>();
            reader.seek(at);
            reader.beginArray();
            while (reader.hasNext()) {
                elements.add(reader.position());
                reader.skipValue();
            }
            return elements;
        }

        private Tensor tensor(TensorSpec spec) {
            ByteSink sink = new ByteSink(1024);
            try {
                tensors.readNested(spec.dataType(), sink);
            } catch (ServingException e) {
                throw ServingException.invalidArgument("input '" + spec.name() + "': " + e.getMessage(), e.remedy());
            }
            return DataFrame.tensor(spec, Shape.of(tensors.dims()), sink);
        }
    }
}
