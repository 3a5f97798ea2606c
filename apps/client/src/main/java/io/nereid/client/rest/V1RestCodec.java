// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.client.rest;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.databind.JsonNode;
import io.nereid.base.ErrorCode;
import io.nereid.client.infer.InferRequest;
import io.nereid.client.infer.InferResult;
import io.nereid.client.infer.InferTensor;
import io.nereid.client.infer.InferenceException;
import io.nereid.client.infer.TensorDataType;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Bodies of V1's {@code :predict}. Requests are rows ({@code instances}), which all servers read, or columns
 * ({@code inputs}) when the inputs do not have the same number of rows. Stateless.
 */
final class V1RestCodec {
    private static final String SIGNATURE = "signature_name";

    private V1RestCodec() {}

    /**
     * Encodes a request.
     *
     * @throws InferenceException INVALID_ARGUMENT for what V1 cannot express
     */
    static byte[] write(InferRequest request) {
        refuse(!request.id().isEmpty(), "an id");
        refuse(request.isSequence(), "sequences");
        refuse(request.outputs().values().stream().anyMatch(n -> n > 0), "classification of outputs");
        refuse(request.inputs().isEmpty(), "requests without inputs");
        for (String name : request.parameters().keySet()) {
            refuse(!name.equals(SIGNATURE), "the parameter '" + name + "'");
        }
        ByteArrayOutputStream out = new ByteArrayOutputStream(1024);
        try (JsonGenerator json = Json.FACTORY.createGenerator(out)) {
            json.writeStartObject();
            Object signature = request.parameters().get(SIGNATURE);
            if (signature != null) {
                json.writeStringField(SIGNATURE, signature.toString());
            }
            long rows = rows(request);
            if (rows >= 0) {
                rows(request, rows, json);
            } else {
                columns(request, json);
            }
            json.writeEndObject();
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
        return out.toByteArray();
    }

    private static void refuse(boolean condition, String what) {
        if (condition) {
            throw InferenceException.of(ErrorCode.INVALID_ARGUMENT, "V1 does not have " + what + " (expected: V2)");
        }
    }

    /** The rows that all inputs have; -1 when they differ. */
    private static long rows(InferRequest request) {
        long rows = -1;
        for (InferTensor input : request.inputs().values()) {
            long[] shape = input.shape();
            if (shape.length == 0 || (rows >= 0 && rows != shape[0])) {
                return -1;
            }
            rows = shape[0];
        }
        return rows;
    }

    private static void rows(InferRequest request, long rows, JsonGenerator json) throws IOException {
        List<String> names = new ArrayList<>(request.inputs().keySet());
        List<JsonElementWriter> writers = new ArrayList<>();
        List<long[]> shapes = new ArrayList<>();
        for (InferTensor input : request.inputs().values()) {
            writers.add(new JsonElementWriter(input, true));
            shapes.add(input.shape());
        }
        int[] next = new int[names.size()];
        json.writeArrayFieldStart("instances");
        for (long row = 0; row < rows; row++) {
            if (names.size() > 1) {
                json.writeStartObject();
            }
            for (int i = 0; i < next.length; i++) {
                if (names.size() > 1) {
                    json.writeFieldName(names.get(i));
                }
                next[i] = writers.get(i).nested(shapes.get(i), 1, next[i], json);
            }
            if (names.size() > 1) {
                json.writeEndObject();
            }
        }
        json.writeEndArray();
    }

    private static void columns(InferRequest request, JsonGenerator json) throws IOException {
        json.writeObjectFieldStart("inputs");
        for (Map.Entry<String, InferTensor> input : request.inputs().entrySet()) {
            json.writeFieldName(input.getKey());
            new JsonElementWriter(input.getValue(), true)
                    .nested(input.getValue().shape(), 0, 0, json);
        }
        json.writeEndObject();
    }

    /** Decodes a response; the requested outputs are selected here, for a server of V1 sends all. */
    static InferResult read(byte[] body, InferRequest request) {
        JsonNode root = Json.tree(body);
        Map<String, InferTensor> all = new LinkedHashMap<>();
        JsonNode predictions = root.get("predictions");
        JsonNode outputs = root.get("outputs");
        if (predictions != null && predictions.isArray()) {
            if (!predictions.isEmpty() && isNamed(predictions.get(0))) {
                namedRows(predictions, all);
            } else {
                all.put(unnamed(request, "predictions"), tensor("predictions", predictions));
            }
        } else if (outputs != null && isNamed(outputs)) {
            outputs.properties().forEach(each -> all.put(each.getKey(), tensor(each.getKey(), each.getValue())));
        } else if (outputs != null) {
            all.put(unnamed(request, "outputs"), tensor("outputs", outputs));
        } else {
            throw Json.unreadable(
                    "it has neither an array 'predictions' nor 'outputs' (expected: one of them, or predictJson)",
                    null);
        }
        Map<String, InferTensor> selected = new LinkedHashMap<>();
        for (String name :
                request.outputs().isEmpty() ? all.keySet() : request.outputs().keySet()) {
            InferTensor output = all.get(name);
            if (output == null) {
                throw InferenceException.of(
                        ErrorCode.INVALID_ARGUMENT,
                        "the response of model '" + request.model() + "' does not have output '" + name
                                + "' (expected: one of " + all.keySet() + ")");
            }
            selected.put(name, output);
        }
        return new InferResult(
                request.model(), "", Json.text(root, "id"), selected, Json.parameters(root.path("parameters")));
    }

    private static boolean isNamed(JsonNode value) {
        return value.isObject() && !isBase64(value);
    }

    private static boolean isBase64(JsonNode value) {
        return value.size() == 1 && value.has("b64");
    }

    /** The only output of a model is without a name on the wire. */
    private static String unnamed(InferRequest request, String otherwise) {
        return request.outputs().size() == 1
                ? request.outputs().keySet().iterator().next()
                : otherwise;
    }

    private static void namedRows(JsonNode predictions, Map<String, InferTensor> all) {
        Iterator<String> names = predictions.get(0).fieldNames();
        while (names.hasNext()) {
            String name = names.next();
            var column = Json.MAPPER.createArrayNode();
            for (JsonNode row : predictions) {
                JsonNode value = row.get(name);
                if (value == null) {
                    throw Json.unreadable("a row is without '" + name + "', which the first one has", null);
                }
                column.add(value);
            }
            all.put(name, tensor(name, column));
        }
    }

    /** A tensor of nested arrays: INT64, FP64, BOOL or BYTES, which is all that JSON says of a type. */
    private static InferTensor tensor(String name, JsonNode value) {
        List<Long> dims = new ArrayList<>();
        for (JsonNode each = value; each != null && each.isArray(); each = each.get(0)) {
            dims.add((long) each.size());
        }
        Kinds kinds = new Kinds(name);
        kinds.visit(value, dims, 0);
        try (JsonParser json = Json.MAPPER.treeAsTokens(value)) {
            json.nextToken();
            return InferTensor.raw(
                    kinds.type(),
                    JsonElementReader.read(json, kinds.type()),
                    dims.stream().mapToLong(d -> d).toArray());
        } catch (IOException | IllegalArgumentException e) {
            throw Json.unreadable(e.getMessage(), e);
        }
    }

    /** What the elements of an output are. Confined to one thread. */
    private static final class Kinds {
        private final String name;
        private boolean texts;
        private boolean booleans;
        private boolean integers;
        private boolean floats;

        Kinds(String name) {
            this.name = name;
        }

        void visit(JsonNode value, List<Long> dims, int level) {
            if (level < dims.size()) {
                if (!value.isArray() || value.size() != dims.get(level)) {
                    throw irregular();
                }
                value.forEach(each -> visit(each, dims, level + 1));
                return;
            }
            texts |= value.isTextual() || (value.isObject() && isBase64(value));
            booleans |= value.isBoolean();
            integers |= value.isIntegralNumber();
            floats |= value.isFloatingPointNumber() || value.isNull();
            if (value.isArray() || (value.isObject() && !isBase64(value))) {
                throw irregular();
            }
        }

        private InferenceException irregular() {
            return Json.unreadable(
                    "output '" + name
                            + "' is not an array whose rows have one length (expected: a tensor, or predictJson)",
                    null);
        }

        TensorDataType type() {
            boolean numbers = integers || floats;
            if ((texts && (booleans || numbers)) || (booleans && numbers)) {
                throw Json.unreadable(
                        "output '" + name + "' has values of several types (expected: one, or predictJson)", null);
            }
            return texts
                    ? TensorDataType.BYTES
                    : booleans ? TensorDataType.BOOL : integers && !floats ? TensorDataType.INT64 : TensorDataType.FP64;
        }
    }
}
