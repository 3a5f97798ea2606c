// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.schema;

import io.nereid.repository.problem.SourcePosition;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * A configuration message with typed values. Built by {@link ConfigBinder}, afterwards only read; confined to one
 * thread.
 *
 * @param at its start
 * @param fields values by field name: String, Long, Double, Boolean, TypedMessage, or of a map, {@link Entry}
 * @param faulty names of fields with invalid values, which have been reported
 */
public record TypedMessage(SourcePosition at, Map<String, List<Value>> fields, Set<String> faulty) {
    public TypedMessage(SourcePosition at) {
        this(at, new LinkedHashMap<>(), new HashSet<>());
    }

    /**
     * A value.
     *
     * @param value the value
     * @param at where it starts
     */
    public record Value(Object value, SourcePosition at) {
        public String text() {
            return value instanceof String s ? s : "";
        }

        public long number() {
            return value instanceof Long n ? n : 0;
        }

        public TypedMessage message() {
            return value instanceof TypedMessage m ? m : new TypedMessage(at);
        }

        public Entry entry() {
            return value instanceof Entry e ? e : new Entry("", "");
        }
    }

    /**
     * A member of a map.
     *
     * @param key as text
     * @param value as in a field
     */
    public record Entry(String key, Object value) {}

    public boolean has(String field) {
        return fields.containsKey(field);
    }

    /** Whether a required field is missing and has not been reported as invalid. */
    public boolean lacks(String field) {
        return !has(field) && !faulty.contains(field);
    }

    public List<Value> all(String field) {
        return fields.getOrDefault(field, List.of());
    }

    public @Nullable Value first(String field) {
        List<Value> values = all(field);
        return values.isEmpty() ? null : values.get(0);
    }

    public SourcePosition place(String field) {
        Value value = first(field);
        return value == null ? at : value.at();
    }

    public String text(String field) {
        Value value = first(field);
        return value == null ? "" : value.text();
    }

    public long number(String field) {
        Value value = first(field);
        return value == null ? 0 : value.number();
    }

    public boolean flag(String field) {
        Value value = first(field);
        return value != null && Boolean.TRUE.equals(value.value());
    }

    public TypedMessage message(String field) {
        Value value = first(field);
        return value == null ? new TypedMessage(at) : value.message();
    }
}
