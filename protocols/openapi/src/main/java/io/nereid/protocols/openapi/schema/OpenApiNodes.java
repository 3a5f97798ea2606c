// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.openapi.schema;

import io.nereid.json.JsonValues;
import io.nereid.json.JsonWriter;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** Objects of JSON as maps in the order of their members, which is that of the document. Holds no state. */
public final class OpenApiNodes {
    /** Where schemas are that others refer to. */
    public static final String SCHEMAS = "#/components/schemas/";

    private static final String REF = "$ref";

    private OpenApiNodes() {}

    /** An object of the members name, value, name, value, …; it may be changed. */
    public static Map<String, @Nullable Object> object(Object... members) {
        Map<String, @Nullable Object> made = new LinkedHashMap<>();
        for (int i = 0; i < members.length; i += 2) {
            made.put((String) members[i], members[i + 1]);
        }
        return made;
    }

    /** A reference to a schema of the components. */
    public static Map<String, @Nullable Object> schemaReference(String name) {
        return object(REF, SCHEMAS + name);
    }

    /** A reference to another component. */
    public static Map<String, @Nullable Object> reference(String kind, String name) {
        return object(REF, "#/components/" + kind + "/" + name);
    }

    /** The content of a body in JSON. */
    public static Map<String, @Nullable Object> json(Object schema) {
        return object("application/json", object("schema", schema));
    }

    /** A member that is an object; empty if there is none. */
    public static Map<String, @Nullable Object> member(Map<String, ? extends @Nullable Object> object, String name) {
        Map<String, @Nullable Object> copy = new LinkedHashMap<>();
        if (object.get(name) instanceof Map<?, ?> map) {
            map.forEach((key, value) -> copy.put(String.valueOf(key), value));
        }
        return copy;
    }

    /** A deep copy, whose objects may be changed. */
    public static @Nullable Object copy(@Nullable Object node) {
        if (node instanceof Map<?, ?> map) {
            Map<String, @Nullable Object> copy = new LinkedHashMap<>();
            map.forEach((key, value) -> copy.put(String.valueOf(key), copy(value)));
            return copy;
        }
        if (node instanceof List<?> list) {
            List<@Nullable Object> copy = new ArrayList<>(list.size());
            list.forEach(value -> copy.add(copy(value)));
            return copy;
        }
        return node;
    }

    /** Adds the targets of all references below a node. */
    public static void references(@Nullable Object node, Set<String> to) {
        if (node instanceof Map<?, ?> map) {
            if (map.get(REF) instanceof String target) {
                to.add(target);
            }
            map.values().forEach(value -> references(value, to));
        } else if (node instanceof List<?> list) {
            list.forEach(value -> references(value, to));
        }
    }

    /** The text of a document. */
    public static String text(Object node) {
        JsonWriter writer = new JsonWriter(16 << 10);
        JsonValues.write(writer, node, JsonValues.NonFinite.NULL);
        return new String(writer.array(), 0, writer.length(), StandardCharsets.UTF_8);
    }
}
