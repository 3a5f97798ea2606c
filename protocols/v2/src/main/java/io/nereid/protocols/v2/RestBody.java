// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2;

import io.nereid.base.ServingException;
import io.nereid.json.ByteSink;
import io.nereid.json.JsonReader;
import io.nereid.json.JsonToken;
import io.nereid.json.TensorReader;
import io.nereid.protobuf.ProtobufWriter;
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

/** A request or an answer of V2 in JSON, to be told as a message. Confined to one thread. */
final class RestBody implements AutoCloseable {
    /** Answers inside answers; far above what graphs have. */
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

    private RestBody(byte[] body) {
        length = body.length;
        text = Arrays.copyOf(body, Math.addExact(length, JsonReader.SLACK));
    }

    /** @throws ServingException INVALID_ARGUMENT for a body that is no request */
    static RestBody request(byte[] body) {
        return read(body, RestBody::request);
    }

    /** @throws ServingException INVALID_ARGUMENT for a body that is no answer */
    static RestBody answer(byte[] body) {
        return read(body, RestBody::answer);
    }

    private static RestBody read(byte[] body, Consumer<RestBody> reading) {
        RestBody made = new RestBody(body);
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
            throw ServingException.invalidArgument("the request has no 'inputs', which one of V2 has");
        }
        id = text(members.get("id"));
        parameters.putAll(parameters(members.get("parameters")));
        json.seek(inputs);
        tensors("input", "");
        Integer wanted = members.get("outputs");
        if (wanted != null) {
            json.seek(wanted);
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
     * An answer, or an object of answers, as graphs merge those of many steps: then outputs are called {@code
     * step.output}.
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

    /** Where the values of an object's members are. */
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

    /** A text, or the text of something else; nothing for null. */
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
            throw RestInput.unknownType(label, typeName);
        }
        Integer dims = members.get("shape");
        Integer data = members.get("data");
        if (dims == null || data == null) {
            throw ServingException.invalidArgument(
                    label + " has no '" + (dims == null ? "shape" : "data") + "'",
                    kind.equals("input")
                            ? "the service speaks gRPC alone, and is asked with JSON: send the data in it"
                            : null);
        }
        json.seek(dims);
        Shape shape = shape(label);
        json.seek(data);
        json.describe(label);
        if (shape.elementCount() > length) {
            // a shape must not make us allocate what the text cannot fill
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
        return RestInput.shape(label, dims, rank);
    }

    /** The {@code ModelInferRequest}: typed contents, but for types that have none. */
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
     * @param asked the model that was asked for, should the answer name none
     * @param askedId the request's id, should the answer have none
     * @param wantsRaw whether contents are to be raw
     */
    byte[] answerMessage(String asked, String askedId, boolean wantsRaw) {
        ProtobufWriter out = new ProtobufWriter();
        out.textField(1, model.isEmpty() ? asked : model);
        out.textField(2, version);
        out.textField(3, id.isEmpty() ? askedId : id);
        if (rest(out, wantsRaw)) {
            raw(out, 6);
        }
        return out.toByteArray();
    }

<<<<<<< /tmp/merge13183542194245387350/mine
    /** Writes parameters and tensors, whose fields requests and answers number alike; true when contents are to follow raw. */
    private boolean rest(ProtobufWriter out, boolean wantsRaw) {
=======
    /**
     * Writes parameters and tensors, whose fields requests and answers number alike; true when contents are to follow
     * raw.
     */
    private boolean rest(WireWriter out, boolean wantsRaw) {
>>>>>>> /tmp/merge13183542194245387350/cur
        parameters.forEach((name, value) -> GrpcInferWriter.writeParameter(out, 4, name, value));
        boolean raw = wantsRaw || tensors.stream().anyMatch(t -> TypedContents.field(t.dataType()) == 0);
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
            int to = out.room(tensor.byteLength());
            tensor.buffer().get(0, out.array(), to, tensor.byteLength());
        }
    }
}
