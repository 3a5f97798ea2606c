// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transform;

import io.nereid.base.ServingException;
import io.nereid.json.JsonReader;
import io.nereid.json.JsonWriter;
import java.lang.reflect.Array;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Reads JSON into plain Java values and writes them: Map, List, String, Boolean, Long, Double and null. Stateless. */
final class JsonTree {
    private JsonTree() {}

    /**
     * Parses a document. Rejects duplicate fields.
     *
     * @throws ServingException INVALID_ARGUMENT for text that is not JSON
     */
    static @Nullable Object read(byte[] text) {
        JsonReader reader = new JsonReader();
        reader.reset(Arrays.copyOf(text, text.length + JsonReader.SLACK), 0, text.length);
        Object value = value(reader);
        reader.expectEnd();
        return value;
    }

    private static @Nullable Object value(JsonReader reader) {
        switch (reader.peek()) {
            case OBJECT:
                Map<String, @Nullable Object> map = new LinkedHashMap<>();
                reader.beginObject();
                while (reader.nextField()) {
                    String key = reader.key();
                    if (map.containsKey(key)) {
                        throw ServingException.invalidArgument("field '" + key + "' is given twice");
                    }
                    map.put(key, value(reader));
                }
                return map;
            case ARRAY:
                List<@Nullable Object> list = new ArrayList<>();
                reader.beginArray();
                while (reader.hasNext()) {
                    list.add(value(reader));
                }
                return list;
            case STRING:
                return reader.readString();
            case BOOLEAN:
                return reader.readBoolean();
            case NULL:
                reader.readNull();
                return null;
            default:
                return number(reader);
        }
    }

    private static Number number(JsonReader reader) {
        int at = reader.position();
        if (reader.isIntegral()) {
            try {
                return reader.readLong();
            } catch (ServingException e) {
                reader.seek(at); // greater than a long
            }
        }
        return reader.readDouble();
    }

    /**
     * Writes a value, also any Iterable, array, CharSequence and Number.
     *
     * @throws IllegalStateException for a value that JSON cannot represent
     */
    static void write(JsonWriter to, @Nullable Object value) {
        if (value == null) {
            to.nullValue();
        } else if (value instanceof Map<?, ?> map) {
            to.beginObject();
            map.forEach((key, inner) -> write(to.name(String.valueOf(key)), inner));
            to.endObject();
        } else if (value instanceof Iterable<?> list) {
            to.beginArray();
            list.forEach(inner -> write(to, inner));
            to.endArray();
        } else if (value.getClass().isArray()) {
            to.beginArray();
            for (int i = 0; i < Array.getLength(value); i++) {
                write(to, Array.get(value, i));
            }
            to.endArray();
        } else if (value instanceof CharSequence text) {
            to.value(text.toString());
        } else if (value instanceof Boolean flag) {
            to.value((boolean) flag);
        } else if (value instanceof Number number) {
            write(to, number);
        } else {
            throw new IllegalStateException("a " + value.getClass().getName() + " is not JSON");
        }
    }

    private static void write(JsonWriter to, Number number) {
        if (number instanceof BigDecimal || number instanceof BigInteger) {
            to.rawValue(number.toString());
        } else if (number instanceof Float || number instanceof Double) {
            if (!Double.isFinite(number.doubleValue())) {
                throw new IllegalStateException("a number that is " + number + " is not JSON");
            }
            if (number instanceof Float single) {
                to.value((float) single);
            } else {
                to.value(number.doubleValue());
            }
        } else {
            to.value(number.longValue());
        }
    }
}
