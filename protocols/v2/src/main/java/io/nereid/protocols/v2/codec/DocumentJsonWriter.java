// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.codec;

import io.nereid.json.JsonWriter;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Writes documents (Map, Iterable, String, Long, Double and Boolean) as JSON. Holds no state. */
public final class DocumentJsonWriter {
    private DocumentJsonWriter() {}

    public static void write(@Nullable Object value, JsonWriter json) {
        if (value instanceof Map<?, ?> map) {
            json.beginObject();
            for (Map.Entry<?, ?> entry : map.entrySet()) {
                json.name(String.valueOf(entry.getKey()));
                write(entry.getValue(), json);
            }
            json.endObject();
        } else if (value instanceof Iterable<?> list) {
            json.beginArray();
            for (Object element : list) {
                write(element, json);
            }
            json.endArray();
        } else if (value instanceof Boolean b) {
            json.value(b.booleanValue());
        } else if (value instanceof Float f) {
            json.value(f.floatValue());
        } else if (value instanceof Double d) {
            json.value(d.doubleValue());
        } else if (value instanceof Number n) {
            json.value(n.longValue());
        } else if (value == null) {
            json.nullValue();
        } else {
            json.value(String.valueOf(value));
        }
    }
}
