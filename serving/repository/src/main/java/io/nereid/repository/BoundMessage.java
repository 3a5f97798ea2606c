// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository;

import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * A message of the configuration whose fields have their types. Built by {@link ConfigBinder}, afterwards only read, on
 * the same thread.
 *
 * @param at where it starts
 * @param fields values by field name: String, Long, Double, Boolean, BoundMessage, or of a map, {@link Entry}
 * @param faulty names of fields that were given, but wrongly, which has been told
 */
record BoundMessage(Position at, Map<String, List<Value>> fields, Set<String> faulty) {
    BoundMessage(Position at) {
        this(at, new LinkedHashMap<>(), new HashSet<>());
    }

    /**
     * A value.
     *
     * @param value the value
     * @param at where it starts
     */
    record Value(Object value, Position at) {
        String text() {
            return value instanceof String s ? s : "";
        }

        long number() {
            return value instanceof Long n ? n : 0;
        }

        BoundMessage message() {
            return value instanceof BoundMessage m ? m : new BoundMessage(at);
        }

        Entry entry() {
            return value instanceof Entry e ? e : new Entry("", "");
        }
    }

    /**
     * A member of a map.
     *
     * @param key as text
     * @param value as in a field
     */
    record Entry(String key, Object value) {}

    boolean has(String field) {
        return fields.containsKey(field);
    }

    /** Whether a field that must be given is not there, and nothing has been said about it yet. */
    boolean lacks(String field) {
        return !has(field) && !faulty.contains(field);
    }

    List<Value> all(String field) {
        return fields.getOrDefault(field, List.of());
    }

    @Nullable Value first(String field) {
        List<Value> values = all(field);
        return values.isEmpty() ? null : values.get(0);
    }

    Position place(String field) {
        Value value = first(field);
        return value == null ? at : value.at();
    }

    String text(String field) {
        Value value = first(field);
        return value == null ? "" : value.text();
    }

    long number(String field) {
        Value value = first(field);
        return value == null ? 0 : value.number();
    }

    boolean flag(String field) {
        Value value = first(field);
        return value != null && Boolean.TRUE.equals(value.value());
    }

    BoundMessage message(String field) {
        Value value = first(field);
        return value == null ? new BoundMessage(at) : value.message();
    }
}
