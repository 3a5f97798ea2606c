// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.python;

import io.nereid.base.ServingException;
import io.nereid.json.JsonReader;
import io.nereid.json.JsonToken;
import io.nereid.json.JsonWriter;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Encodes and decodes the frames between server and worker: 4 bytes of length (little-endian), then a JSON object. In
 * Java a frame is a tree of Map, List, String, Long, Double and Boolean; null values are left out. Stateless.
 */
final class FrameCodec {
    private FrameCodec() {}

    /** Puts the length before a frame's body. */
    static ByteBuffer framed(JsonWriter body) {
        ByteBuffer frame = ByteBuffer.allocate(4 + body.length()).order(ByteOrder.LITTLE_ENDIAN);
        return frame.putInt(body.length()).put(body.array(), 0, body.length()).flip();
    }

    /**
     * Writes a tree as JSON.
     *
     * @param value Map, List, String, Boolean, Integer, Long or Double
     */
    static void write(JsonWriter json, Object value) {
        if (value instanceof Map<?, ?> map) {
            json.beginObject();
            map.forEach((k, v) -> {
                json.name(String.valueOf(k));
                write(json, v);
            });
            json.endObject();
        } else if (value instanceof Iterable<?> list) {
            json.beginArray();
            list.forEach(v -> write(json, v));
            json.endArray();
        } else if (value instanceof Boolean b) {
            json.value(b.booleanValue());
        } else if (value instanceof Double d) {
            json.value(d.doubleValue());
        } else if (value instanceof Number n) {
            json.value(n.longValue());
        } else {
            json.value(value.toString());
        }
    }

    /** The tree as JSON text. */
    static String text(Map<String, Object> tree) {
        JsonWriter json = new JsonWriter(1024);
        write(json, tree);
        return new String(json.array(), 0, json.length(), java.nio.charset.StandardCharsets.UTF_8);
    }

    /**
     * Begins a tensor's description: its name, type and shape. The caller adds the location (file, offset, length) and
     * ends the array.
     */
    static void head(JsonWriter json, Tensor t) {
        json.beginArray().value(t.name()).value(t.dataType().name()).beginArray();
        Shape shape = t.shape();
        for (int i = 0; i < shape.rank(); i++) {
            json.value(shape.dim(i));
        }
        json.endArray();
    }

    /** @throws ServingException INVALID_ARGUMENT for invalid JSON */
    static @Nullable Object read(JsonReader json) {
        JsonToken token = json.peek();
        switch (token) {
            case OBJECT:
                Map<String, Object> map = new LinkedHashMap<>();
                json.beginObject();
                while (json.nextField()) {
                    String key = json.key();
                    Object value = read(json);
                    if (value != null) {
                        map.put(key, value);
                    }
                }
                return map;
            case ARRAY:
                List<Object> list = new ArrayList<>();
                json.beginArray();
                while (json.hasNext()) {
                    Object value = read(json);
                    if (value != null) {
                        list.add(value);
                    }
                }
                return list;
            case STRING:
                return json.readString();
            case NUMBER:
                if (json.isIntegral()) {
                    return json.readLong();
                }
                return json.readDouble();
            case BOOLEAN:
                return json.readBoolean();
            default:
                json.readNull();
                return null;
        }
    }

    static String string(Map<String, Object> frame, String key) {
        return frame.get(key) instanceof String s ? s : "";
    }

    static long number(Map<String, Object> frame, String key, long otherwise) {
        return frame.get(key) instanceof Number n ? n.longValue() : otherwise;
    }

    static boolean yes(Map<String, Object> frame, String key) {
        return Boolean.TRUE.equals(frame.get(key));
    }

    static List<?> list(Map<String, Object> frame, String key) {
        return frame.get(key) instanceof List<?> l ? l : List.of();
    }

    @SuppressWarnings("unchecked")
    static Map<String, Object> map(@Nullable Object value) {
        return value instanceof Map<?, ?> m ? (Map<String, Object>) m : Map.of();
    }
}
