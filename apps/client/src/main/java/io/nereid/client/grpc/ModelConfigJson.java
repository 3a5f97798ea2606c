// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.client.grpc;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Turns a ModelConfig into JSON with the names of its fields, from a table of them. Fields with their default value are not on
 * the wire, and therefore not in the JSON. Stateless.
 */
final class ModelConfigJson {
    private static final ObjectMapper MAPPER = new ObjectMapper();

    /** Fields by message, and values by enum, each by number. */
    private static final Map<String, Map<Integer, String[]>> TYPES = table();

    private ModelConfigJson() {}

    private static Map<String, Map<Integer, String[]>> table() {
        Map<String, Map<Integer, String[]>> types = new HashMap<>();
        try (InputStream in = ModelConfigJson.class.getResourceAsStream("model_config.fields")) {
            if (in == null) {
                throw new IllegalStateException("model_config.fields is not beside this class");
            }
            Map<Integer, String[]> current = new HashMap<>();
            for (String line : new String(in.readAllBytes(), StandardCharsets.UTF_8).split("\n")) {
                String[] words = line.split(" ");
                if (words[0].equals("message") || words[0].equals("enum")) {
                    current = new HashMap<>();
                    types.put(words[1], current);
                } else if (!words[0].equals("#")) {
                    current.put(Integer.valueOf(words[0]), words);
                }
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return types;
    }

    /** The JSON of a ModelConfigResponse. */
    static String response(byte[] bytes) {
        Message message = new Message(bytes);
        List<Object> config = new ArrayList<>();
        message.fields(field -> {
            if (field == 1) {
                config.add(object("ModelConfig", message));
            }
        });
        try {
            return MAPPER.writeValueAsString(config.isEmpty() ? Map.of() : config.get(0));
        } catch (JsonProcessingException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static Map<String, Object> object(String type, Message message) {
        Map<Integer, String[]> fields = TYPES.getOrDefault(type, Map.of());
        Map<String, Object> object = new LinkedHashMap<>();
        message.nested(number -> {
            String[] field = fields.get(number);
            if (field != null) {
                field(field[1], field[2], message, object);
            }
        });
        return object;
    }

    @SuppressWarnings("unchecked") // the lists and maps were put there by this method
    private static void field(String name, String type, Message message, Map<String, Object> object) {
        int arrow = type.indexOf('>');
        if (arrow >= 0) {
            Map<String, Object> entries =
                    (Map<String, Object>) object.computeIfAbsent(name, n -> new LinkedHashMap<String, Object>());
            entry(type.substring(0, arrow), type.substring(arrow + 1), message, entries);
        } else if (type.endsWith("[]")) {
            List<Object> values = (List<Object>) object.computeIfAbsent(name, n -> new ArrayList<Object>());
            String element = type.substring(0, type.length() - 2);
            if (element.equals("string") || (TYPES.containsKey(element) && !isEnum(element))) {
                values.add(value(element, message));
            } else {
                message.numbers(() -> values.add(packed(element, message)));
            }
        } else {
            object.put(name, value(type, message));
        }
    }

    private static void entry(String keyType, String valueType, Message message, Map<String, Object> entries) {
        @Nullable Object[] pair = {keyType.equals("string") ? "" : 0, null};
        message.nested(number -> {
            if (number == 1) {
                pair[0] = value(keyType, message);
            } else if (number == 2) {
                pair[1] = value(valueType, message);
            }
        });
        Object value = pair[1];
        entries.put(String.valueOf(pair[0]), value != null ? value : valueType.equals("string") ? "" : Map.of());
    }

    private static boolean isEnum(String type) {
        Map<Integer, String[]> values = TYPES.get(type);
        return values != null && values.values().stream().allMatch(words -> words.length == 2) && !values.isEmpty();
    }

    private static Object value(String type, Message message) {
        return switch (type) {
            case "string" -> message.text();
            case "bool" -> message.number() != 0;
            case "float" -> Float.intBitsToFloat(message.fixed32());
            case "double" -> Double.longBitsToDouble(message.fixed64());
            case "int32", "int64", "uint32", "uint64" -> message.number();
            default -> isEnum(type) ? enumValue(type, message.number()) : object(type, message);
        };
    }

    private static Object packed(String type, Message message) {
        return switch (type) {
            case "float" -> Float.intBitsToFloat(message.fixed32());
            case "double" -> Double.longBitsToDouble(message.fixed64());
            case "bool" -> message.varint() != 0;
            case "int32", "int64", "uint32", "uint64" -> message.varint();
            default -> enumValue(type, message.varint());
        };
    }

    private static Object enumValue(String type, long number) {
        String[] words = TYPES.getOrDefault(type, Map.of()).get((int) number);
        return words == null ? number : words[1];
    }
}
