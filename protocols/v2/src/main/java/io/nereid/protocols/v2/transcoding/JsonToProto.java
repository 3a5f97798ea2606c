// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.transcoding;

import io.nereid.base.ServingException;
import io.nereid.json.ByteSink;
import io.nereid.json.JsonReader;
import io.nereid.json.JsonToken;
import io.nereid.json.TensorReader;
import io.nereid.protobuf.ProtobufWriter;
import io.nereid.protocols.v2.codec.GrpcInferWriter;
import io.nereid.protocols.v2.codec.RestInputReader;
import io.nereid.protocols.v2.codec.TypedContentsReader;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** Converts a V2 request or response in JSON to its protobuf message. Confined to one thread. */
final class JsonToProto implements AutoCloseable {
    /** The depth limit of nested responses; far above that of real inference graphs. */
    private static final int MOST_LEVELS = 32;

    private final List<Tensor> tensors = new ArrayList<>();
    private final List<Map<String, Object>> tensorParameters = new ArrayList<>();
    private final Map<String, Map<String, Object>> outputs = new LinkedHashMap<>();
    private final byte[] text;
    private final int length;
    private final JsonReader json = new JsonReader();
    private final TensorReader reader = new TensorReader(json, true);
    private final Map<String, Object> parameters = new LinkedHashMap<>();
    private String id = "";
    private String model = "";
    private String version = "";

    private JsonToProto(byte[] body) {
        // What the model behind makes of a missing value is its own matter: gRPC has none but these.
        reader.missing(() -> true);
        length = body.length;
        text = Arrays.copyOf(body, Math.addExact(length, JsonReader.SLACK));
    }

    /** @throws ServingException INVALID_ARGUMENT for a body that is not a request */
    static JsonToProto request(byte[] body) {
        return read(body, JsonToProto::request);
    }

    /** @throws ServingException INVALID_ARGUMENT for a body that is not a response */
    static JsonToProto answer(byte[] body) {
        return read(body, JsonToProto::answer);
    }

    private static JsonToProto read(byte[] body, Consumer<JsonToProto> reading) {
        JsonToProto made = new JsonToProto(body);
        boolean done = false;
        try {
            reading.accept(made);
            done = true;
            return made;
        } finally {
            if (!done) {
                made.close();
            }
        }
    }

    @Override
    public void close() {
        Tensor.closeAll(tensors);
    }

    private void request() {
        json.reset(text, 0, length);
        Map<String, Integer> members = members();
        json.expectEnd();
        Integer inputs = members.get("inputs");
        if (inputs == null) {
            throw ServingException.invalidArgument("the request has no 'inputs' (expected: a V2 inference request)");
        }
        id = text(members.get("id"));
        parameters.putAll(parameters(members.get("parameters")));
        json.seek(inputs);
        tensors("input", "");
        Integer requested = members.get("outputs");
        if (requested != null) {
            json.seek(requested);
            if (!json.tryNull()) {
                json.beginArray();
                while (json.hasNext()) {
                    Map<String, Integer> output = members();
                    int after = json.position();
                    outputs.put(text(output.get("name")), parameters(output.get("parameters")));
                    json.seek(after);
                }
            }
        }
    }

    private void answer() {
        json.reset(text, 0, length);
        json.skipValue();
        json.expectEnd();
        json.seek(0);
        answer("", 0);
    }

    /**
     * Reads a response, or an object of responses, into which inference graphs merge those of several steps: outputs
     * are then named {@code step.output}.
     */
    private void answer(String prefix, int level) {
        Map<String, Integer> members = json.peek() == JsonToken.OBJECT && level < MOST_LEVELS ? members() : Map.of();
        Integer at = members.get("outputs");
        if (at != null) {
            json.seek(at);
            if (json.peek() == JsonToken.ARRAY) {
                tensors("output", prefix);
                parameters(members.get("parameters")).forEach((key, value) -> parameters.put(prefix + key, value));
                if (prefix.isEmpty()) {
                    id = word(members.get("id"));
                    model = word(members.get("model_name"));
                    version = word(members.get("model_version"));
                }
                return;
            }
        }
        if (members.isEmpty()) {
            throw ServingException.invalidArgument("it has no 'outputs'");
        }
        members.forEach((name, position) -> {
            json.seek(position);
            answer(prefix + name + ".", level + 1);
        });
    }

    private void tensors(String kind, String prefix) {
        json.beginArray();
        while (json.hasNext()) {
            tensor(kind, prefix);
        }
    }

    /** The positions of the values of an object's members. */
    private Map<String, Integer> members() {
        Map<String, Integer> members = new LinkedHashMap<>();
        json.beginObject();
        while (json.nextField()) {
            String key = json.key();
            members.put(key, json.position());
            json.skipValue();
        }
        return members;
    }

    private String text(@Nullable Integer at) {
        if (at == null) {
            return "";
        }
        json.seek(at);
        return json.tryNull() ? "" : json.readString();
    }

    /** A string, or the JSON text of another value; empty for null. */
    private String word(@Nullable Integer at) {
        if (at == null) {
            return "";
        }
        json.seek(at);
        if (json.peek() == JsonToken.STRING) {
            return json.readString();
        }
        boolean nothing = json.peek() == JsonToken.NULL;
        json.skipValue();
        return nothing ? "" : new String(text, at, json.position() - at, StandardCharsets.UTF_8);
    }

    private Map<String, Object> parameters(@Nullable Integer at) {
        if (at == null) {
            return Map.of();
        }
        json.seek(at);
        if (json.tryNull()) {
            return Map.of();
        }
        Map<String, Object> all = new LinkedHashMap<>();
        json.beginObject();
        while (json.nextField()) {
            String key = json.key();
            JsonToken kind = json.peek();
            if (kind == JsonToken.STRING) {
                all.put(key, json.readString());
            } else if (kind == JsonToken.BOOLEAN) {
                all.put(key, json.readBoolean());
            } else if (kind == JsonToken.NUMBER) {
                all.put(key, json.isIntegral() ? (Object) json.readLong() : (Object) json.readDouble());
            } else {
                int from = json.position();
                json.skipValue();
                if (kind != JsonToken.NULL) {
                    all.put(key, new String(text, from, json.position() - from, StandardCharsets.UTF_8));
                }
            }
        }
        return all;
    }

    private void tensor(String kind, String prefix) {
        Map<String, Integer> members = members();
        int after = json.position();
        String name = text(members.get("name"));
        String label = kind + " '" + name + "'";
        String typeName = text(members.get("datatype"));
        DataType type = DataType.ofWireName(typeName);
        if (type == null) {
            throw RestInputReader.unknownType(label, typeName);
        }
        Integer dims = members.get("shape");
        Integer data = members.get("data");
        if (dims == null || data == null) {
            throw ServingException.invalidArgument(
                    label + " has no '" + (dims == null ? "shape" : "data") + "'",
                    kind.equals("input")
                            ? "the service supports only gRPC, and requests are converted from JSON: send data in it"
                            : null);
        }
        json.seek(dims);
        Shape shape = shape(label);
        json.seek(data);
        json.describe(label);
        if (shape.elementCount() > length) {
            // the shape is the client's claim: do not allocate more elements than the text can hold
            throw ServingException.invalidArgument(label + " has " + shape.elementCount() + " elements by its shape "
                    + shape + ", more than its 'data' can hold");
        }
        tensors.add(reader.readTensor(prefix + name, type, shape, new ByteSink(256)));
        json.describe(null);
        tensorParameters.add(parameters(members.get("parameters")));
        json.seek(after);
    }

    private Shape shape(String label) {
        long[] dims = new long[8];
        int rank = 0;
        json.beginArray();
        while (json.hasNext()) {
            if (rank == dims.length) {
                dims = Arrays.copyOf(dims, rank * 2);
            }
            dims[rank++] = json.readLong();
        }
        return RestInputReader.shape(label, dims, rank);
    }

    /** The {@code ModelInferRequest}, with typed contents unless a type has no typed form. */
    byte[] requestMessage(String model, String version) {
        ProtobufWriter out = new ProtobufWriter();
        out.textField(1, model);
        out.textField(2, version);
        out.textField(3, id);
        boolean raw = rest(out, false);
        outputs.forEach((name, asked) -> {
            int at = out.begin(6);
            out.textField(1, name);
            asked.forEach((key, value) -> GrpcInferWriter.writeParameter(out, 2, key, value));
            out.end(at);
        });
        if (raw) {
            raw(out, 7);
        }
        return out.toByteArray();
    }

    /**
     * The {@code ModelInferResponse}.
     *
     * @param requested the requested model, used when the response does not name one
     * @param requestId the request's id, used when the response has none
     * @param preferRaw whether to write raw contents
     */
    byte[] answerMessage(String requested, String requestId, boolean preferRaw) {
        ProtobufWriter out = new ProtobufWriter();
        out.textField(1, model.isEmpty() ? requested : model);
        out.textField(2, version);
        out.textField(3, id.isEmpty() ? requestId : id);
        if (rest(out, preferRaw)) {
            raw(out, 6);
        }
        return out.toByteArray();
    }

    /**
     * Writes parameters and tensors, whose fields have the same numbers in requests and responses. Returns whether raw
     * contents have to follow.
     */
    private boolean rest(ProtobufWriter out, boolean preferRaw) {
        parameters.forEach((name, value) -> GrpcInferWriter.writeParameter(out, 4, name, value));
        boolean raw = preferRaw || tensors.stream().anyMatch(t -> TypedContentsReader.field(t.dataType()) == 0);
        for (int i = 0; i < tensors.size(); i++) {
            Tensor tensor = tensors.get(i);
            int at = out.begin(5);
            out.textField(1, tensor.name());
            out.textField(2, tensor.dataType().name());
            if (tensor.shape().rank() > 0) {
                int shape = out.begin(3);
                for (int d = 0; d < tensor.shape().rank(); d++) {
                    out.varint(tensor.shape().dim(d));
                }
                out.end(shape);
            }
            tensorParameters.get(i).forEach((name, value) -> GrpcInferWriter.writeParameter(out, 4, name, value));
            if (!raw) {
                int contents = out.begin(5);
                GrpcInferWriter.writeContents(tensor, out);
                out.end(contents);
            }
            out.end(at);
        }
        return raw;
    }

    private void raw(ProtobufWriter out, int field) {
        for (Tensor tensor : tensors) {
            out.bytesHeader(field, tensor.byteLength());
            int to = out.reserve(tensor.byteLength());
            tensor.buffer().get(0, out.array(), to, tensor.byteLength());
        }
    }
}
