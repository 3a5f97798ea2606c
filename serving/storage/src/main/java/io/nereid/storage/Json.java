// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** JSON of stores, settings and the cache's own files. Stateless. */
final class Json {
    private static final ObjectMapper MAPPER = new ObjectMapper();

    private Json() {}

    /** Reads an object; the message of a refusal names the text and shows nothing of it, which may be secret. */
    static JsonNode read(String text, String what) {
        try {
            JsonNode node = MAPPER.readTree(text);
            if (node != null && !node.isMissingNode()) {
                return node;
            }
        } catch (JsonProcessingException e) {
            // Told below, without the text.
        }
        throw ServingException.invalidArgument(what + " is not valid JSON");
    }

    static List<String> strings(String text, String what) {
        JsonNode node = read(text, what);
        if (!node.isArray()) {
            throw ServingException.invalidArgument(what + " is not a JSON array of strings");
        }
        List<String> strings = new ArrayList<>();
        node.forEach(item -> strings.add(item.asText()));
        return strings;
    }

    /** The fields of an object, each as text. */
    static Map<String, String> fields(String text, String what) {
        JsonNode node = read(text, what);
        if (!node.isObject()) {
            throw ServingException.invalidArgument(what + " is not a JSON object");
        }
        Map<String, String> fields = new LinkedHashMap<>();
        node.properties()
                .forEach(field -> fields.put(
                        field.getKey(),
                        field.getValue().isValueNode()
                                ? field.getValue().asText()
                                : field.getValue().toString()));
        return fields;
    }

    static ObjectNode object() {
        return MAPPER.createObjectNode();
    }

    static String quoted(String text) {
        return MAPPER.getNodeFactory().textNode(text).toString();
    }
}
