// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.catboost;

import io.nereid.base.ServingException;
import io.nereid.json.JsonReader;
import io.nereid.json.JsonToken;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Reads small parts of a JSON document as maps, lists, strings and numbers. Stateless. */
final class JsonNodes {
    private JsonNodes() {}

    /** Reads the next value: a map, list, string, double, boolean or null. */
    static @Nullable Object value(JsonReader in) {
        JsonToken token = in.peek();
        switch (token) {
            case OBJECT -> {
                Map<String, Object> map = new HashMap<>();
                in.beginObject();
                while (in.nextField()) {
                    String key = in.key();
                    Object value = value(in);
                    if (value != null) {
                        map.put(key, value);
                    }
                }
                return map;
            }
            case ARRAY -> {
                List<@Nullable Object> list = new ArrayList<>();
                in.beginArray();
                while (in.hasNext()) {
                    list.add(value(in));
                }
                return list;
            }
            case STRING -> {
                return in.readString();
            }
            case BOOLEAN -> {
                return in.readBoolean();
            }
            case NUMBER -> {
                return in.readDouble();
            }
            default -> {
                in.readNull();
                return null;
            }
        }
    }

    /** Reads an array of numbers, or a single number. */
    static double[] doubles(JsonReader in) {
        if (in.peek() != JsonToken.ARRAY) {
            return new double[] {in.readDouble()};
        }
        double[] values = new double[16];
        int size = 0;
        in.beginArray();
        while (in.hasNext()) {
            if (size == values.length) {
                values = Arrays.copyOf(values, size * 2);
            }
            values[size++] = in.readDouble();
        }
        return Arrays.copyOf(values, size);
    }

    @SuppressWarnings("unchecked")
    static Map<String, Object> map(@Nullable Object value) {
        if (value instanceof Map<?, ?> map) {
            return (Map<String, Object>) map;
        }
        throw ServingException.invalidArgument("found " + value + " (expected: an object)");
    }

    static List<?> list(@Nullable Object value) {
        return value == null ? List.of() : value instanceof List<?> list ? list : List.of(value);
    }

    static double number(@Nullable Object value, String what) {
        if (value instanceof Double d) {
            return d;
        }
        throw ServingException.invalidArgument("'" + what + "' is " + value + " (expected: a number)");
    }

    static int whole(@Nullable Object value, String what) {
        double number = number(value, what);
        if (number != Math.rint(number) || Math.abs(number) > 0xffff_ffffL) {
            throw ServingException.invalidArgument("'" + what + "' is " + number + " (expected: an integer)");
        }
        return (int) (long) number;
    }

    static float[] floats(@Nullable Object value) {
        List<?> list = list(value);
        float[] floats = new float[list.size()];
        for (int i = 0; i < floats.length; i++) {
            floats[i] = (float) number(list.get(i), "borders");
        }
        return floats;
    }
}
