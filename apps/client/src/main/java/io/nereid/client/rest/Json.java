// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.client.rest;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonFactoryBuilder;
import com.fasterxml.jackson.core.StreamReadConstraints;
import com.fasterxml.jackson.core.json.JsonReadFeature;
import com.fasterxml.jackson.core.json.JsonWriteFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.nereid.base.ErrorCode;
import io.nereid.client.infer.InferenceException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** The JSON of both REST protocols: with NaN and infinities as Python and TensorFlow Serving write them. Stateless. */
final class Json {
    static final JsonFactory FACTORY = ((JsonFactoryBuilder) JsonFactory.builder())
            .enable(JsonReadFeature.ALLOW_NON_NUMERIC_NUMBERS)
            .disable(JsonWriteFeature.WRITE_NAN_AS_STRINGS)
            .streamReadConstraints(StreamReadConstraints.builder()
                    .maxStringLength(Integer.MAX_VALUE)
                    .build())
            .build();

    static final ObjectMapper MAPPER = new ObjectMapper(FACTORY);

    private Json() {}

    /** Parses a document of a server. */
    static JsonNode tree(byte[] body) {
        try {
            JsonNode root = MAPPER.readTree(body);
            if (root != null && root.isContainerNode()) {
                return root;
            }
            throw unreadable("a JSON object is missing", null);
        } catch (IOException e) {
            throw unreadable(e.getMessage(), e);
        }
    }

    /** The exception for a response that is not what the protocol says. */
    static InferenceException unreadable(@Nullable String why, @Nullable Throwable cause) {
        return InferenceException.of(ErrorCode.INTERNAL, "the response of the server cannot be read: " + why, cause);
    }

    /** The text of a member; empty for null and for one that is not there. */
    static String text(JsonNode object, String member) {
        JsonNode value = object.get(member);
        return value == null || value.isNull() ? "" : value.asText();
    }

    /** The texts of an array; empty when it is not there. */
    static List<String> texts(JsonNode object, String member) {
        List<String> texts = new ArrayList<>();
        object.path(member).forEach(each -> texts.add(each.asText()));
        return texts;
    }

    /** Parameters of a response; other values than scalars become JSON texts. */
    static Map<String, Object> parameters(JsonNode object) {
        Map<String, Object> parameters = new LinkedHashMap<>();
        object.properties().forEach(field -> {
            JsonNode value = field.getValue();
            if (value.isNull()) {
                return;
            }
            Object scalar = value.isTextual()
                    ? value.asText()
                    : value.isBoolean()
                            ? (Object) value.asBoolean()
                            : value.isIntegralNumber()
                                    ? (Object) value.asLong()
                                    : value.isNumber() ? (Object) value.asDouble() : value.toString();
            parameters.put(field.getKey(), scalar);
        });
        return parameters;
    }

    /**
     * Checks and encodes the JSON object of a caller.
     *
     * @throws InferenceException INVALID_ARGUMENT when it is not JSON
     */
    static byte[] checked(String json) {
        try {
            JsonNode root = MAPPER.readTree(json);
            if (root != null && root.isObject()) {
                return json.getBytes(StandardCharsets.UTF_8);
            }
            throw InferenceException.of(ErrorCode.INVALID_ARGUMENT, "the body is not a JSON object: " + json);
        } catch (IOException e) {
            throw InferenceException.of(ErrorCode.INVALID_ARGUMENT, "the body is not JSON: " + e.getMessage(), e);
        }
    }
}
