// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.graph;

import io.nereid.json.BytesStyle;
import io.nereid.json.FloatStyle;
import io.nereid.json.JsonWriter;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceRequest.RequestedOutput;
import io.nereid.spi.InferenceRequest.Sequence;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Tensor;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;

/** Writes a request as the V2 JSON that a client of REST would have sent. Immutable. */
final class RequestJson {
    private RequestJson() {}

    /**
     * The body. The request keeps its inputs.
     *
     * @throws io.nereid.base.ServingException RESOURCE_EXHAUSTED when it would be too large
     */
    static byte[] write(InferenceRequest request) {
        JsonWriter json = new JsonWriter(1024).floatStyle(FloatStyle.SHORTEST);
        json.beginObject();
        if (!request.id().isEmpty()) {
            json.name("id").value(request.id());
        }
        Map<String, Object> parameters = parameters(request);
        if (!parameters.isEmpty()) {
            json.name("parameters").beginObject();
            parameters.forEach((name, value) -> parameter(json.name(name), value));
            json.endObject();
        }
        json.name("inputs").beginArray();
        for (Tensor input : request.inputs()) {
            input(input, json);
        }
        json.endArray();
        if (!request.outputs().isEmpty()) {
            json.name("outputs").beginArray();
            for (RequestedOutput output : request.outputs()) {
                json.beginObject().name("name").value(output.name());
                if (output.classes() > 0) {
                    json.name("parameters")
                            .beginObject()
                            .name("classification")
                            .value(output.classes())
                            .endObject();
                }
                json.endObject();
            }
            json.endArray();
        }
        json.endObject();
        return Arrays.copyOf(json.array(), json.length());
    }

    /** The model's, without the marked headers, and those that the protocol has taken out. */
    private static Map<String, Object> parameters(InferenceRequest request) {
        Map<String, Object> all = new LinkedHashMap<>();
        request.parameters().forEach((name, value) -> {
            if (!name.startsWith(MarkedCall.MARK)) {
                all.put(name, value);
            }
        });
        InferenceRequest.Options options = request.options();
        Sequence sequence = options.sequence();
        if (sequence != null) {
            all.put("sequence_id", sequence.id());
            all.put("sequence_start", sequence.start());
            all.put("sequence_end", sequence.end());
        }
        if (options.priority() != 0) {
            all.put("priority", options.priority());
        }
        if (options.timeoutNanos() != 0) {
            all.put("timeout", options.timeoutNanos() / 1_000);
        }
        if (!options.signature().isEmpty()) {
            all.put("signature_name", options.signature());
        }
        return all;
    }

    private static void parameter(JsonWriter json, Object value) {
        if (value instanceof Boolean b) {
            json.value((boolean) b);
        } else if (value instanceof Long n) {
            json.value((long) n);
        } else if (value instanceof Double d) {
            json.value((double) d);
        } else {
            json.value(String.valueOf(value));
        }
    }

    private static void input(Tensor input, JsonWriter json) {
        json.beginObject().name("name").value(input.name()).name("shape").beginArray();
        for (int i = 0; i < input.shape().rank(); i++) {
            json.value(input.shape().dim(i));
        }
        json.endArray().name("datatype").value(input.dataType().name()).name("data");
        if (input.dataType() == DataType.BYTES) {
            bytes(input, json);
        } else {
            json.flatArray(input.dataType(), input.buffer(), 0, input.shape().elementCount());
        }
        json.endObject();
    }

    /** Elements as strings; one that is not UTF-8 as {@code {"b64": …}}, which this server's models take. */
    private static void bytes(Tensor input, JsonWriter json) {
        ByteBuffer buffer = input.buffer();
        byte[] all = new byte[buffer.remaining()];
        buffer.get(0, all);
        json.beginArray();
        int at = 0;
        while (at < all.length) {
            int length = buffer.getInt(at);
            at += 4;
            json.value(all, at, length, isText(all, at, length) ? BytesStyle.REFUSE_MALFORMED : BytesStyle.BASE64);
            at += length;
        }
        json.endArray();
    }

    private static boolean isText(byte[] bytes, int from, int length) {
        try {
            StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes, from, length));
            return true;
        } catch (CharacterCodingException e) {
            return false;
        }
    }
}
