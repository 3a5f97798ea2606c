// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v1.rest;

import io.nereid.base.ServingException;
import io.nereid.json.ByteSink;
import io.nereid.json.BytesStyle;
import io.nereid.json.FloatStyle;
import io.nereid.json.JsonReader;
import io.nereid.json.JsonToken;
import io.nereid.json.JsonWriter;
import io.nereid.protocols.v1.common.ExampleOutputs;
import io.nereid.protocols.v1.common.ExampleOutputs.Scored;
import io.nereid.protocols.v1.common.TfServingMetrics.Api;
import io.nereid.tensor.Tensor;
import io.nereid.tfdata.Example;
import io.nereid.tfdata.ExampleList;
import io.nereid.tfdata.Feature;
import io.nereid.transport.api.HttpReply;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Decodes the body of {@code :classify} and {@code :regress}, which holds examples, and encodes their responses.
 * Numbers written without a decimal point become INT64 features, other numbers FLOAT, strings and <code>{"b64":
 * …}</code> BYTES. Reused; confined to one thread.
 */
final class ExamplesJson {
    private final RestRequestBody body;
    private final JsonReader reader;
    private final JsonWriter writer = new JsonWriter(1024);
    private final ByteSink sink = new ByteSink(64);

    ExamplesJson(RestRequestBody body, FloatStyle floats) {
        this.body = body;
        this.reader = body.reader();
        writer.floatStyle(floats);
    }

    /** Decodes the examples of the open body. */
    ExampleList decode() {
        Example context = null;
        if (body.context() != RestRequestBody.NONE) {
            reader.seek(body.context());
            context = example();
        }
        if (body.examples() == RestRequestBody.NONE) {
            throw ServingException.invalidArgument("JSON Value: " + body.excerpt(0)
                    + " When method is classify, key 'examples' is expected and was not found");
        }
        reader.seek(body.examples());
        if (reader.peek() != JsonToken.ARRAY) {
            throw ServingException.invalidArgument(
                    "JSON Value: " + body.excerpt(0) + " Expecting 'examples' value to be an list/array");
        }
        List<Example> examples = new ArrayList<>();
        reader.beginArray();
        while (reader.hasNext()) {
            examples.add(example());
        }
        if (examples.isEmpty()) {
            throw ServingException.invalidArgument(
                    "JSON Value: " + body.excerpt(0) + " 'examples' value is an empty array");
        }
        return ExampleList.of(examples, context);
    }

    private Example example() {
        if (reader.peek() != JsonToken.OBJECT) {
            throw ServingException.invalidArgument(
                    "Example must be JSON object but got JSON " + JsonErrorDescriber.typeOf(reader));
        }
        Map<String, Feature> features = new LinkedHashMap<>();
        reader.beginObject();
        while (reader.nextField()) {
            String name = reader.key();
            Values values = new Values(name);
            if (reader.peek() == JsonToken.ARRAY) {
                reader.beginArray();
                while (reader.hasNext()) {
                    values.read();
                }
            } else {
                values.read();
            }
            if (values.kind != Feature.Kind.NONE) {
                features.put(name, values.feature());
            }
        }
        return new Example(features);
    }

    /** The values of one feature; all have the same kind. */
    private final class Values {
        private final String name;
        private Feature.Kind kind = Feature.Kind.NONE;
        private final List<byte[]> bytes = new ArrayList<>();
        private float[] floats = {};
        private long[] longs = {};
        private int count;

        Values(String name) {
            this.name = name;
        }

        void read() {
            switch (reader.peek()) {
                case STRING -> {
                    setKind(Feature.Kind.BYTES);
                    sink.reset();
                    int unused = reader.readStringBytes(sink);
                    addBytes();
                }
                case OBJECT -> readBase64();
                case BOOLEAN -> {
                    setKind(Feature.Kind.INT64);
                    addLong(reader.readBoolean() ? 1 : 0);
                }
                case NUMBER -> readNumber();
                case ARRAY, NULL, END_OBJECT, END_ARRAY, END_OF_INPUT -> throw unexpected();
            }
        }

        private void readNumber() {
            if (!reader.isIntegral()) {
                setKind(Feature.Kind.FLOAT);
                if (count == floats.length) {
                    floats = Arrays.copyOf(floats, Math.max(4, 2 * count));
                }
                floats[count++] = (float) reader.readDouble();
                return;
            }
            setKind(Feature.Kind.INT64);
            try {
                addLong(reader.readLong());
            } catch (ServingException e) {
                throw ServingException.invalidArgument(
                        "Feature: " + name + " has uint64 element. Only int64 is supported.", e.describe());
            }
        }

        private void readBase64() {
            int at = reader.position();
            boolean base64 = JsonErrorDescriber.isBase64(reader);
            reader.seek(at);
            if (!base64) {
                throw unexpected();
            }
            setKind(Feature.Kind.BYTES);
            reader.beginObject();
            boolean unusedField = reader.nextField();
            sink.reset();
            try {
                int unused = reader.readBase64(sink);
            } catch (ServingException e) {
                throw ServingException.invalidArgument(
                        "Unable to base64 decode", "feature '" + name + "': " + e.describe());
            }
            boolean unusedEnd = reader.nextField();
            addBytes();
        }

        private void addBytes() {
            bytes.add(Arrays.copyOf(sink.array(), sink.length()));
            count++;
        }

        private void addLong(long value) {
            if (count == longs.length) {
                longs = Arrays.copyOf(longs, Math.max(4, 2 * count));
            }
            longs[count++] = value;
        }

        private void setKind(Feature.Kind next) {
            if (kind != Feature.Kind.NONE && kind != next) {
                String text = kind == Feature.Kind.BYTES ? "bytes" : kind == Feature.Kind.FLOAT ? "float" : "int64";
                throw ServingException.invalidArgument(
                        "Unexpected element type in feature: " + name + " expecting type: " + text,
                        kind == Feature.Kind.INT64 && next == Feature.Kind.FLOAT
                                ? "write every number of the list with a decimal point"
                                : null);
            }
            kind = next;
        }

        private ServingException unexpected() {
            return ServingException.invalidArgument("Feature: " + name + " has element with unexpected JSON type: "
                    + JsonErrorDescriber.typeOf(reader));
        }

        Feature feature() {
            return switch (kind) {
                case BYTES -> Feature.ofBytes(bytes);
                case FLOAT -> Feature.ofFloats(Arrays.copyOf(floats, count));
                case INT64, NONE -> Feature.ofLongs(Arrays.copyOf(longs, count));
            };
        }
    }

    /**
     * Encodes a response; the caller still owns the outputs.
     *
     * @param exact whether only the outputs with TensorFlow's keys count
     */
    HttpReply encode(Api api, List<Tensor> outputs, long examples, boolean exact) {
        writer.reset();
        writer.beginObject().name("results").beginArray();
        if (api == Api.CLASSIFY) {
            for (List<Scored> classes : ExampleOutputs.classes(outputs, examples, exact)) {
                writer.beginArray();
                for (Scored c : classes) {
                    writer.beginArray();
                    writer.value(c.label(), 0, c.label().length, BytesStyle.REJECT_MALFORMED);
                    writer.value(c.score()).endArray();
                }
                writer.endArray();
            }
        } else {
            for (float value : ExampleOutputs.values(outputs, examples, exact)) {
                writer.value(value);
            }
        }
        writer.endArray().endObject();
        byte[] bytes = Arrays.copyOf(writer.array(), writer.length());
        return HttpReply.json(200, bytes, bytes.length);
    }
}
