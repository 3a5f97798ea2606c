// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.json;

import io.nereid.base.ServingException;
import java.lang.reflect.Array;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * JSON as plain Java values: Map in the order of the document, List, String, Boolean, Long, Double and null. For
 * documents that are handed to user code or whose fields are looked up in any order; tensors are read with
 * {@link TensorReader}, which creates no objects. It reads with {@link JsonReader} and therefore has its syntax, its
 * limit of the depth and its messages; duplicate fields are rejected. Stateless.
 *
 * <pre>{@code
 * Map<?, ?> document = (Map<?, ?>) JsonValues.read(bytes);
 * JsonWriter writer = new JsonWriter(256);
 * JsonValues.write(writer, Map.of("instances", rows));
 * }</pre>
 */
public final class JsonValues {
    /** What {@link #write(JsonWriter, Object, NonFinite)} does with NaN and infinities. */
    public enum NonFinite {
        /** Throws IllegalStateException. */
        REFUSED,
        /** Writes null. */
        NULL
    }

    private JsonValues() {}

    /**
     * Reads a document. A number without fraction and exponent is a Long if it fits; all other numbers are Doubles.
     *
     * @throws ServingException INVALID_ARGUMENT for text that is not JSON, or a field that is given twice
     */
    public static @Nullable Object read(byte[] text) {
        return document(text, false);
    }

    /**
     * Reads a document in which all numbers are Doubles, and an array of only numbers, booleans (1 and 0) and nulls
     * (NaN) is a {@code double[]}, which takes less than half of the memory of a List.
     *
     * @throws ServingException INVALID_ARGUMENT for text that is not JSON, or a field that is given twice
     */
    public static @Nullable Object readDoubles(byte[] text) {
        return document(text, true);
    }

    /**
     * Reads the next value of a document, with numbers as in {@link #read(byte[])}.
     *
     * @throws ServingException INVALID_ARGUMENT for text that is not JSON, or a field that is given twice
     */
    public static @Nullable Object read(JsonReader reader) {
        return value(reader, false);
    }

    private static @Nullable Object document(byte[] text, boolean doubles) {
        JsonReader reader = new JsonReader();
        reader.reset(Arrays.copyOf(text, text.length + JsonReader.SLACK), 0, text.length);
        Object value = value(reader, doubles);
        reader.expectEnd();
        return value;
    }

    private static @Nullable Object value(JsonReader reader, boolean doubles) {
        switch (reader.peek()) {
            case OBJECT:
                return object(reader, doubles);
            case ARRAY:
                return doubles ? doublesOrList(reader) : list(reader);
            case STRING:
                return reader.readString();
            case BOOLEAN:
                return reader.readBoolean();
            case NULL:
                reader.readNull();
                return null;
            default:
                return doubles ? (Double) reader.readDouble() : number(reader);
        }
    }

    private static Map<String, @Nullable Object> object(JsonReader reader, boolean doubles) {
        Map<String, @Nullable Object> map = new LinkedHashMap<>();
        reader.beginObject();
        while (reader.nextField()) {
            String key = reader.key();
            if (map.containsKey(key)) {
                throw ServingException.invalidArgument("field '" + key + "' is given twice");
            }
            map.put(key, value(reader, doubles));
        }
        return map;
    }

    private static List<@Nullable Object> list(JsonReader reader) {
        List<@Nullable Object> list = new ArrayList<>();
        reader.beginArray();
        while (reader.hasNext()) {
            list.add(value(reader, false));
        }
        return list;
    }

    private static Object doublesOrList(JsonReader reader) {
        double[] numbers = new double[8];
        int count = 0;
        List<@Nullable Object> list = null;
        reader.beginArray();
        while (reader.hasNext()) {
            if (list == null) {
                JsonToken token = reader.peek();
                if (token == JsonToken.NUMBER || token == JsonToken.NULL || token == JsonToken.BOOLEAN) {
                    numbers = count == numbers.length ? Arrays.copyOf(numbers, 2 * count) : numbers;
                    numbers[count++] = asDouble(reader, token);
                    continue;
                }
                list = new ArrayList<>();
                for (int i = 0; i < count; i++) {
                    list.add(numbers[i]);
                }
            }
            list.add(value(reader, true));
        }
        return list == null ? Arrays.copyOf(numbers, count) : list;
    }

    private static double asDouble(JsonReader reader, JsonToken token) {
        if (token == JsonToken.NULL) {
            reader.readNull();
            return Double.NaN;
        }
        if (token == JsonToken.BOOLEAN) {
            return reader.readBoolean() ? 1 : 0;
        }
        return reader.readDouble();
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
     * @throws IllegalStateException for a value that JSON cannot represent, such as NaN
     */
    public static void write(JsonWriter to, @Nullable Object value) {
        write(to, value, NonFinite.REFUSED);
    }

    /**
     * Writes a value, also any Iterable, array, CharSequence and Number.
     *
     * @throws IllegalStateException for a value that JSON cannot represent
     */
    public static void write(JsonWriter to, @Nullable Object value, NonFinite nonFinite) {
        if (value == null) {
            to.nullValue();
        } else if (value instanceof Map<?, ?> map) {
            to.beginObject();
            map.forEach((key, inner) -> write(to.name(String.valueOf(key)), inner, nonFinite));
            to.endObject();
        } else if (value instanceof Iterable<?> list) {
            to.beginArray();
            list.forEach(inner -> write(to, inner, nonFinite));
            to.endArray();
        } else if (value instanceof double[] numbers) {
            to.beginArray();
            for (double number : numbers) {
                write(to, number, nonFinite);
            }
            to.endArray();
        } else if (value.getClass().isArray()) {
            to.beginArray();
            for (int i = 0; i < Array.getLength(value); i++) {
                write(to, Array.get(value, i), nonFinite);
            }
            to.endArray();
        } else if (value instanceof CharSequence text) {
            to.value(text.toString());
        } else if (value instanceof Boolean flag) {
            to.value((boolean) flag);
        } else if (value instanceof Float single && Float.isFinite(single)) {
            to.value((float) single);
        } else if (value instanceof Float || value instanceof Double) {
            write(to, ((Number) value).doubleValue(), nonFinite);
        } else if (value instanceof BigDecimal || value instanceof BigInteger) {
            to.rawValue(value.toString());
        } else if (value instanceof Number number) {
            to.value(number.longValue());
        } else {
            throw new IllegalStateException("a " + value.getClass().getName() + " is not JSON");
        }
    }

    private static void write(JsonWriter to, double number, NonFinite nonFinite) {
        if (Double.isFinite(number)) {
            to.value(number);
        } else if (nonFinite == NonFinite.NULL) {
            to.nullValue();
        } else {
            throw new IllegalStateException("a number that is " + number + " is not JSON");
        }
    }
}
