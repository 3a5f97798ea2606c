// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.pickle;

import io.nereid.json.JsonReader;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** JSON as values of Java: maps, lists, texts, longs, doubles, booleans, and {@link PyNone} for null. Stateless. */
public final class JsonValues {
    private JsonValues() {}

    /** Reads a whole document, at most so many levels deep. */
    public static Object read(JsonReader reader) {
        switch (reader.peek()) {
            case OBJECT -> {
                Map<String, Object> map = new LinkedHashMap<>();
                reader.beginObject();
                while (reader.nextField()) {
                    String key = reader.key();
                    map.put(key, read(reader));
                }
                return map;
            }
            case ARRAY -> {
                List<Object> list = new ArrayList<>();
                reader.beginArray();
                while (reader.hasNext()) {
                    list.add(read(reader));
                }
                return list;
            }
            case STRING -> {
                return reader.readString();
            }
            case NUMBER -> {
                return reader.isIntegral() ? (Object) reader.readLong() : (Object) reader.readDouble();
            }
            case BOOLEAN -> {
                return reader.readBoolean();
            }
            default -> {
                reader.readNull();
                return PyNone.NONE;
            }
        }
    }
}
