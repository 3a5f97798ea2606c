// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.request;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;
import io.nereid.storage.spi.StorageSettings;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Reads and writes the JSON of stores, settings and the cache's own files. Stateless. */
public final class StorageJson {
    private static final ObjectMapper MAPPER = new ObjectMapper();

    private StorageJson() {}

    /** Parses a text. The error message contains {@code what} but never the text, which may be secret. */
    public static JsonNode read(String text, String what) {
        try {
            JsonNode node = MAPPER.readTree(text);
            if (node != null && !node.isMissingNode()) {
                return node;
            }
        } catch (JsonProcessingException e) {
            // Reported below, without the text.
        }
        throw ServingException.invalidArgument(what + " is not valid JSON");
    }

    public static List<String> strings(String text, String what) {
        JsonNode node = read(text, what);
        if (!node.isArray()) {
            throw ServingException.invalidArgument(what + " is not a JSON array of strings");
        }
        List<String> strings = new ArrayList<>();
        node.forEach(item -> strings.add(item.asText()));
        return strings;
    }

    /** A setting that is a list: a JSON array of strings, or separated by commas. Empty when it is not set. */
    public static List<String> list(StorageSettings settings, String name) {
        String value = settings.get(name);
        if (value == null) {
            return List.of();
        }
        if (value.trim().startsWith("[")) {
            return strings(value, "storage setting " + name);
        }
        return Arrays.stream(value.split(","))
                .map(String::trim)
                .filter(s -> !s.isEmpty())
                .toList();
    }

    /** The fields of an object, each as text. */
    public static Map<String, String> fields(String text, String what) {
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

    public static ObjectNode object() {
        return MAPPER.createObjectNode();
    }

    static String quoted(String text) {
        return MAPPER.getNodeFactory().textNode(text).toString();
    }
}
