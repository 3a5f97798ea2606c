// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.huggingface.graph;

import io.nereid.base.ServingException;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/** Typed access to the fields of a {@code config.json} of transformers. Immutable. */
public final class EncoderConfig {
    private static final int MOST_LABELS = 1_000_000;

    private final Map<?, ?> fields;

    /** @param fields the document, as {@link io.nereid.json.JsonValues} reads it */
    public EncoderConfig(Map<?, ?> fields) {
        this.fields = fields;
    }

    /** The field's value; null when it is absent. */
    public @Nullable Object value(String name) {
        return fields.get(name);
    }

    /** A string field, or the other value when it is absent or not a string. */
    public String text(String name, String otherwise) {
        return fields.get(name) instanceof String s ? s : otherwise;
    }

    /** A boolean field, or the other value when it is absent. */
    public boolean flag(String name, boolean otherwise) {
        return fields.get(name) instanceof Boolean b ? b : otherwise;
    }

    /** A number field, or the other value when it is absent. */
    public double number(String name, double otherwise) {
        return fields.get(name) instanceof Number n ? n.doubleValue() : otherwise;
    }

    /** @throws ServingException INVALID_ARGUMENT when the field is absent, not a whole number, or not in 1 to {@code most} */
    int size(String name, int most) {
        Object value = fields.get(name);
        if (value instanceof Long n && n >= 1 && n <= most) {
            return n.intValue();
        }
        throw wrong(name, "a whole number from 1 to " + most);
    }

    /** As {@link #size(String, int)}, with a value for an absent field. */
    int size(String name, int most, int otherwise) {
        return fields.get(name) == null ? otherwise : size(name, most);
    }

    /** A whole number of 0 or more. */
    public int index(String name, int otherwise) {
        Object value = fields.get(name);
        if (value == null) {
            return otherwise;
        }
        if (value instanceof Long n && n >= 0 && n <= Integer.MAX_VALUE) {
            return n.intValue();
        }
        throw wrong(name, "a whole number >= 0");
    }

    ServingException wrong(String name, String expected) {
        Object value = fields.get(name);
        return ServingException.invalidArgument(
                "config.json has '" + name + "': " + value + " (expected: " + expected + ")",
                "copy the config.json that belongs to the weights");
    }

    /** The first architecture, such as {@code BertForSequenceClassification}; empty when there is none. */
    public String architecture() {
        return fields.get("architectures") instanceof List<?> list && !list.isEmpty() && list.get(0) instanceof String s
                ? s
                : "";
    }

    /** The labels, in the order of their numbers: {@code id2label}, or {@code LABEL_0} and so on. */
    public List<String> labels() {
        if (fields.get("id2label") instanceof Map<?, ?> map && !map.isEmpty()) {
            TreeMap<Integer, String> labels = new TreeMap<>();
            map.forEach((key, value) -> {
                try {
                    labels.put(Integer.parseInt(String.valueOf(key)), String.valueOf(value));
                } catch (NumberFormatException e) {
                    throw wrong("id2label", "an object of labels by number");
                }
            });
            if (labels.firstKey() != 0 || labels.lastKey() != labels.size() - 1) {
                throw wrong("id2label", "the numbers from 0 without gaps");
            }
            return List.copyOf(labels.values());
        }
        int count = size("num_labels", MOST_LABELS, 2);
        return java.util.stream.IntStream.range(0, count)
                .mapToObj(i -> String.format(Locale.ROOT, "LABEL_%d", i))
                .toList();
    }
}
