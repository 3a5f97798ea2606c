// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.graph;

import io.nereid.base.Code;
import io.nereid.base.ServingException;
import io.nereid.json.ByteSink;
import io.nereid.json.JsonReader;
import io.nereid.json.JsonToken;
import io.nereid.json.TensorReader;
import io.nereid.spi.InferenceResponse;
import io.nereid.spi.ServableId;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Reads what a graph came to as an answer of V2. What an Ensemble has merged is one answer, too, when all of its members are:
 * its outputs are called {@code step.output}. Confined to one answer.
 */
final class AnswerReader {
    /** Nodes inside nodes; far above what graphs have. */
    private static final int MOST_LEVELS = 32;

    private static final int MOST_RANK = 256;

    private static final int TOLD = 200;

    private final String graph;
    private final byte[] text;
    private final int length;
    private final JsonReader json = new JsonReader();
    private final TensorReader tensors = new TensorReader(json, true);
    private final List<Tensor> outputs = new ArrayList<>();
    private final Map<String, Object> parameters = new LinkedHashMap<>();
    private String model;
    private long version;
    private String id;

    private AnswerReader(String graph, String id, byte[] body) {
        this.graph = graph;
        this.model = graph;
        this.id = id;
        this.length = body.length;
        this.text = Arrays.copyOf(body, Math.addExact(length, JsonReader.SLACK));
    }

    /**
     * The answer, whose outputs belong to the caller.
     *
     * @param graph the graph's name, for an answer that names no model and for errors
     * @param id the request's
     * @throws ServingException FAILED_PRECONDITION when it is none of V2
     */
    static InferenceResponse read(String graph, String id, byte[] body) {
        AnswerReader reader = new AnswerReader(graph, id, body);
        boolean done = false;
        try {
            InferenceResponse response = reader.read();
            done = true;
            return response;
        } finally {
            if (!done) {
                Tensor.closeAll(reader.outputs);
            }
        }
    }

    private InferenceResponse read() {
        json.reset(text, 0, length);
        try {
            json.skipValue();
            json.expectEnd();
        } catch (ServingException e) {
            throw foreign("which is no JSON");
        }
        json.seek(0);
        try {
            answer("", 0);
        } catch (ServingException e) {
            throw e.code() == Code.INVALID_ARGUMENT ? foreign("where " + e.getMessage()) : e;
        }
        return new InferenceResponse(new ServableId(model, version), id, outputs, parameters);
    }

    /** The error that tells what there is instead of an answer. */
    private ServingException foreign(String why) {
        String said = new String(text, 0, Math.min(length, TOLD), StandardCharsets.UTF_8).strip();
        return ServingException.of(
                Code.FAILED_PRECONDITION,
                "the graph '" + graph + "' answered " + (said.isEmpty() ? "nothing" : said)
                        + (length > TOLD ? "..." : "") + ", " + why + ", not a V2 inference response",
                "let the last steps be services of protocol v2, or call the graph over REST");
    }

    private void answer(String prefix, int level) {
        if (json.peek() != JsonToken.OBJECT || level > MOST_LEVELS) {
            throw foreign("which has no 'outputs'");
        }
        Map<String, Integer> members = members();
        Integer at = members.get("outputs");
        if (at != null) {
            json.seek(at);
            if (json.peek() == JsonToken.ARRAY) {
                outputs(prefix);
                more(prefix, members);
                return;
            }
        }
        if (members.isEmpty()) {
            throw foreign("which has no 'outputs'");
        }
        members.forEach((name, position) -> {
            json.seek(position);
            answer(prefix + name + ".", level + 1);
        });
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

    private void more(String prefix, Map<String, Integer> members) {
        Integer at = members.get("parameters");
        if (at != null) {
            json.seek(at);
            if (!json.tryNull()) {
                json.beginObject();
                while (json.nextField()) {
                    String key = prefix + json.key();
                    Object value = value();
                    if (value != null) {
                        parameters.put(key, value);
                    }
                }
            }
        }
        if (!prefix.isEmpty()) {
            return;
        }
        String name = text(members.get("model_name"));
        model = name.isEmpty() ? model : name;
        version = number(text(members.get("model_version")));
        String given = text(members.get("id"));
        id = given.isEmpty() ? id : given;
    }

    private String text(@Nullable Integer at) {
        if (at == null) {
            return "";
        }
        json.seek(at);
        Object value = value();
        return value == null ? "" : value.toString();
    }

    /** A version, or 0 for what is none that can be told as a number. */
    private static long number(String text) {
        boolean digits = !text.isEmpty() && text.length() <= 18 && text.chars().allMatch(c -> c >= '0' && c <= '9');
        return digits ? Long.parseLong(text) : 0;
    }

    /** A Boolean, Long, Double or String, objects and arrays being their own text; null for null. */
    private @Nullable Object value() {
        return switch (json.peek()) {
            case STRING -> json.readString();
            case BOOLEAN -> json.readBoolean();
            case NULL -> {
                json.readNull();
                yield null;
            }
            case NUMBER -> {
                String number = raw();
                yield number.length() <= 18 && number.chars().allMatch(c -> c == '-' || (c >= '0' && c <= '9'))
                        ? (Object) Long.valueOf(number)
                        : (Object) Double.valueOf(number);
            }
            default -> raw();
        };
    }

    private String raw() {
        int from = json.position();
        json.skipValue();
        return new String(text, from, json.position() - from, StandardCharsets.UTF_8);
    }

    private void outputs(String prefix) {
        json.beginArray();
        while (json.hasNext()) {
            output(prefix);
        }
    }

    private void output(String prefix) {
        Map<String, Integer> members = members();
        int after = json.position();
        String name = text(members.get("name"));
        String typeName = text(members.get("datatype"));
        String label = "output '" + name + "'";
        DataType type = DataType.ofWireName(typeName);
        if (type == null) {
            throw ServingException.invalidArgument(label + " has the datatype '" + typeName + "'");
        }
        Integer dims = members.get("shape");
        Integer data = members.get("data");
        if (dims == null || data == null) {
            throw ServingException.invalidArgument(label + " has no '" + (dims == null ? "shape" : "data") + "'");
        }
        json.seek(dims);
        Shape shape = shape(label);
        json.seek(data);
        json.describe(label);
        outputs.add(tensor(prefix + name, type, shape));
        json.describe(null);
        json.seek(after);
    }

    private Shape shape(String label) {
        long[] dims = new long[8];
        int rank = 0;
        json.beginArray();
        while (json.hasNext()) {
            if (rank == MOST_RANK) {
                throw ServingException.invalidArgument(label + " has more than " + MOST_RANK + " dimensions");
            }
            if (rank == dims.length) {
                dims = Arrays.copyOf(dims, rank * 2);
            }
            dims[rank] = json.readLong();
            if (dims[rank++] < 0) {
                throw ServingException.invalidArgument(label + " has a dimension below 0");
            }
        }
        return Shape.of(Arrays.copyOf(dims, rank));
    }

    private Tensor tensor(String name, DataType type, Shape shape) {
        long count = shape.elementCount();
        if (count > length) {
            // a shape must not make us allocate what the text cannot fill
            throw ServingException.invalidArgument(
                    "output '" + name + "' has the shape " + shape + ", which its 'data' cannot fill");
        }
        return tensors.readTensor(name, type, shape, new ByteSink(256));
    }
}
