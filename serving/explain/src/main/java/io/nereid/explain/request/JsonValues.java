// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.explain.request;

import io.nereid.base.ServingException;
import io.nereid.json.JsonReader;
import io.nereid.json.JsonToken;
import io.nereid.json.JsonWriter;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Reads JSON into Java values and writes them: Map, List, String, Boolean, Double and {@link #NULL}. An array of only
 * numbers, booleans (1 and 0) and nulls (NaN) becomes a double[], so that large requests need little memory. Stateless.
 */
public final class JsonValues {
    /** Stands for null. */
    public static final Object NULL = new Object();

    private JsonValues() {}

    /**
     * Parses a document.
     *
     * @throws ServingException INVALID_ARGUMENT for text that is not JSON
     */
    public static Object read(byte[] text) {
        JsonReader reader = new JsonReader();
        reader.reset(Arrays.copyOf(text, text.length + JsonReader.SLACK), 0, text.length);
        Object value = value(reader);
        reader.expectEnd();
        return value;
    }

    private static Object value(JsonReader reader) {
        switch (reader.peek()) {
            case OBJECT:
                Map<String, Object> map = new LinkedHashMap<>();
                reader.beginObject();
                while (reader.nextField()) {
                    String key = reader.key();
                    if (map.put(key, value(reader)) != null) {
                        throw ServingException.invalidArgument("field '" + key + "' is given twice");
                    }
                }
                return map;
            case ARRAY:
                return array(reader);
            case STRING:
                return reader.readString();
            case BOOLEAN:
                return reader.readBoolean();
            case NULL:
                reader.readNull();
                return NULL;
            default:
                return reader.readDouble();
        }
    }

    private static Object array(JsonReader reader) {
        double[] numbers = new double[8];
        int count = 0;
        List<Object> all = null;
        reader.beginArray();
        while (reader.hasNext()) {
            if (all == null) {
                JsonToken token = reader.peek();
                if (token == JsonToken.NUMBER || token == JsonToken.NULL || token == JsonToken.BOOLEAN) {
                    numbers = count == numbers.length ? Arrays.copyOf(numbers, 2 * count) : numbers;
                    numbers[count++] = number(value(reader));
                    continue;
                }
                all = new ArrayList<>();
                for (int i = 0; i < count; i++) {
                    all.add(numbers[i]);
                }
            }
            all.add(value(reader));
        }
        return all == null ? Arrays.copyOf(numbers, count) : all;
    }

    private static double number(Object value) {
        if (value instanceof Boolean b) {
            return b ? 1 : 0;
        }
        return value instanceof Double d ? d : Double.NaN;
    }

    /** Writes a value, which may also contain Integers and Longs. NaN, infinities and null become null. */
    public static void write(JsonWriter to, @Nullable Object value) {
        if (value instanceof Map<?, ?> map) {
            to.beginObject();
            map.forEach((key, inner) -> write(to.name(String.valueOf(key)), inner));
            to.endObject();
        } else if (value instanceof Iterable<?> list) {
            to.beginArray();
            list.forEach(inner -> write(to, inner));
            to.endArray();
        } else if (value instanceof double[] numbers) {
            to.beginArray();
            for (double number : numbers) {
                write(to, number);
            }
            to.endArray();
        } else if (value instanceof double[][] rows) {
            to.beginArray();
            for (double[] row : rows) {
                write(to, row);
            }
            to.endArray();
        } else if (value instanceof Double number && Double.isFinite(number)) {
            to.value((double) number);
        } else if (value instanceof Integer number) {
            to.value((int) number);
        } else if (value instanceof Long number) {
            to.value((long) number);
        } else if (value instanceof Boolean truth) {
            to.value((boolean) truth);
        } else if (value instanceof String text) {
            to.value(text);
        } else {
            to.nullValue();
        }
    }
}
