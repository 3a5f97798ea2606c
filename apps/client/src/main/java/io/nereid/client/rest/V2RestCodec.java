// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.client.rest;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.util.TokenBuffer;
import io.nereid.client.infer.InferRequest;
import io.nereid.client.infer.InferResult;
import io.nereid.client.infer.InferTensor;
import io.nereid.client.infer.TensorDataType;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Inference requests and responses of V2 over REST, as JSON and with Triton's binary tensor data. Stateless. */
final class V2RestCodec {
    private V2RestCodec() {}

    /** Encodes a request: its JSON, and after it the data of the inputs if {@code binary}. */
    static List<ByteBuffer> write(InferRequest request, boolean binary) {
        ByteArrayOutputStream out = new ByteArrayOutputStream(1024);
        List<ByteBuffer> parts = new ArrayList<>();
        try (JsonGenerator json = Json.FACTORY.createGenerator(out)) {
            json.writeStartObject();
            if (!request.id().isEmpty()) {
                json.writeStringField("id", request.id());
            }
            boolean all = binary && request.outputs().isEmpty();
            if (all || !request.parameters().isEmpty()) {
                json.writeObjectFieldStart("parameters");
                for (Map.Entry<String, Object> each : request.parameters().entrySet()) {
                    json.writeFieldName(each.getKey());
                    scalar(each.getValue(), json);
                }
                if (all) {
                    json.writeBooleanField("binary_data_output", true);
                }
                json.writeEndObject();
            }
            json.writeArrayFieldStart("inputs");
            for (Map.Entry<String, InferTensor> input : request.inputs().entrySet()) {
                input(input.getKey(), input.getValue(), binary, json);
                if (binary) {
                    parts.add(input.getValue().bytes());
                }
            }
            json.writeEndArray();
            if (!request.outputs().isEmpty()) {
                json.writeArrayFieldStart("outputs");
                for (Map.Entry<String, Integer> output : request.outputs().entrySet()) {
                    output(output.getKey(), output.getValue(), binary, json);
                }
                json.writeEndArray();
            }
            json.writeEndObject();
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
        parts.add(0, ByteBuffer.wrap(out.toByteArray()));
        return parts;
    }

    private static void scalar(Object value, JsonGenerator json) throws IOException {
        if (value instanceof Boolean b) {
            json.writeBoolean(b);
        } else if (value instanceof Long l) {
            json.writeNumber(l);
        } else if (value instanceof Double d) {
            json.writeNumber(d);
        } else {
            json.writeString(value.toString());
        }
    }

    private static void input(String name, InferTensor tensor, boolean binary, JsonGenerator json) throws IOException {
        json.writeStartObject();
        json.writeStringField("name", name);
        json.writeStringField("datatype", tensor.dataType().name());
        json.writeFieldName("shape");
        json.writeArray(tensor.shape(), 0, tensor.shape().length);
        if (binary) {
            json.writeObjectFieldStart("parameters");
            json.writeNumberField("binary_data_size", tensor.bytes().remaining());
            json.writeEndObject();
        } else {
            json.writeFieldName("data");
            new JsonElementWriter(tensor, false).flat(json);
        }
        json.writeEndObject();
    }

    private static void output(String name, int classes, boolean binary, JsonGenerator json) throws IOException {
        json.writeStartObject();
        json.writeStringField("name", name);
        if (binary || classes > 0) {
            json.writeObjectFieldStart("parameters");
            if (binary) {
                json.writeBooleanField("binary_data", true);
            }
            if (classes > 0) {
                json.writeNumberField("classification", classes);
            }
            json.writeEndObject();
        }
        json.writeEndObject();
    }

    /**
     * Decodes a response.
     *
     * @param length the length of the JSON, after which the binary data begins
     */
    static InferResult read(byte[] body, int length) {
        try (JsonParser json = Json.MAPPER.createParser(body, 0, length)) {
            ByteBuffer binary =
                    ByteBuffer.wrap(body, length, body.length - length).slice().order(ByteOrder.LITTLE_ENDIAN);
            return read(json, binary);
        } catch (IOException | IllegalArgumentException | ArithmeticException e) {
            throw Json.unreadable(e.getMessage(), e);
        }
    }

    private static InferResult read(JsonParser json, ByteBuffer binary) throws IOException {
        String model = "";
        String version = "";
        String id = "";
        Map<String, InferTensor> outputs = new LinkedHashMap<>();
        Map<String, Object> parameters = Map.of();
        boolean found = false;
        expect(json.nextToken(), JsonToken.START_OBJECT);
        while (json.nextToken() == JsonToken.FIELD_NAME) {
            String member = json.currentName();
            json.nextToken();
            switch (member) {
                case "model_name" -> model = text(json);
                case "model_version" -> version = text(json);
                case "id" -> id = text(json);
                case "parameters" -> {
                    JsonNode values = json.readValueAsTree();
                    parameters = Json.parameters(values);
                }
                case "outputs" -> {
                    found = true;
                    expect(json.currentToken(), JsonToken.START_ARRAY);
                    while (json.nextToken() == JsonToken.START_OBJECT) {
                        output(json, binary, outputs);
                    }
                }
                default -> json.skipChildren();
            }
        }
        if (!found) {
            throw Json.unreadable("the member 'outputs' is missing", null);
        }
        return new InferResult(model, version, id, outputs, parameters);
    }

    private static void output(JsonParser json, ByteBuffer binary, Map<String, InferTensor> outputs)
            throws IOException {
        String name = "";
        TensorDataType type = null;
        long[] shape = null;
        int size = -1;
        ByteBuffer data = null;
        TokenBuffer early = null;
        while (json.nextToken() == JsonToken.FIELD_NAME) {
            String member = json.currentName();
            json.nextToken();
            switch (member) {
                case "name" -> name = text(json);
                case "datatype" -> type = TensorDataType.of(text(json));
                case "shape" -> shape = Json.MAPPER.readValue(json, long[].class);
                case "parameters" -> {
                    JsonNode parameters = json.readValueAsTree();
                    size = parameters.path("binary_data_size").asInt(-1);
                }
                case "data" -> {
                    if (type == null) {
                        early = new TokenBuffer(json);
                        early.copyCurrentStructure(json);
                    } else {
                        data = JsonElementReader.read(json, type);
                    }
                }
                default -> json.skipChildren();
            }
        }
        outputs.put(name, tensor(name, type, shape, size, data, early, binary));
    }

    private static InferTensor tensor(
            String name,
            @Nullable TensorDataType type,
            long @Nullable [] shape,
            int size,
            @Nullable ByteBuffer data,
            @Nullable TokenBuffer early,
            ByteBuffer binary)
            throws IOException {
        if (type == null || shape == null) {
            throw Json.unreadable("output '" + name + "' is without datatype or shape", null);
        }
        ByteBuffer bytes = data;
        if (early != null) {
            try (JsonParser later = early.asParser()) {
                later.nextToken();
                bytes = JsonElementReader.read(later, type);
            }
        } else if (size >= 0) {
            if (size > binary.remaining()) {
                throw Json.unreadable(
                        "output '" + name + "' has " + size + " bytes, of which " + binary.remaining() + " are there",
                        null);
            }
            bytes = binary.slice(binary.position(), size);
            binary.position(binary.position() + size);
        }
        if (bytes == null) {
            throw Json.unreadable("output '" + name + "' is without data", null);
        }
        return InferTensor.raw(type, bytes, shape);
    }

    private static String text(JsonParser json) throws IOException {
        return json.currentToken() == JsonToken.VALUE_NULL ? "" : json.getText();
    }

    private static void expect(@Nullable JsonToken token, JsonToken expected) {
        if (token != expected) {
            throw Json.unreadable(token + " where " + expected + " is expected", null);
        }
    }
}
