// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v1.openai;

import io.nereid.base.NameSuggestions;
import io.nereid.base.ServingException;
import io.nereid.json.JsonValues;
import io.nereid.tensor.MemoryRegion;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** The fields of a JSON object in a body; null is as good as absent, as clients send it for what was not given. Confined. */
final class BodyFields {
    private final Map<?, ?> fields;

    /**
     * Reads a body.
     *
     * @param known the fields that it may have
     * @throws ServingException INVALID_ARGUMENT for text that is not a JSON object, and for other fields
     */
    BodyFields(MemoryRegion body, List<String> known) {
        byte[] bytes = new byte[body.size()];
        body.getBytes(0, bytes, 0, bytes.length);
        if (!(JsonValues.read(bytes) instanceof Map<?, ?> object)) {
            throw ServingException.invalidArgument("the body is not a JSON object", "send {\"model\": …}");
        }
        for (Map.Entry<?, ?> field : object.entrySet()) {
            String name = String.valueOf(field.getKey());
            if (field.getValue() != null && !known.contains(name)) {
                throw ServingException.invalidArgument(
                        "field '" + (name.length() > 100 ? name.substring(0, 100) + "…" : name)
                                + "' is not supported (this server knows " + String.join(", ", known) + ")",
                        NameSuggestions.didYouMean(name, known, "leave it out"));
            }
        }
        this.fields = object;
    }

    /** The value of a field; null when it is absent. */
    @Nullable Object get(String name) {
        return fields.get(name);
    }

    /** @throws ServingException INVALID_ARGUMENT for a field that is absent, empty or not a string */
    String required(String name) {
        if (fields.get(name) instanceof String text && !text.isEmpty()) {
            return text;
        }
        throw wrong(name, "a string");
    }

    /** @throws ServingException INVALID_ARGUMENT for a field that is not a string */
    String text(String name, String otherwise) {
        Object value = fields.get(name);
        if (value == null || value instanceof String) {
            return value == null ? otherwise : (String) value;
        }
        throw wrong(name, "a string");
    }

    /** @throws ServingException INVALID_ARGUMENT for a field that is not a boolean */
    boolean flag(String name, boolean otherwise) {
        Object value = fields.get(name);
        if (value == null || value instanceof Boolean) {
            return value == null ? otherwise : (Boolean) value;
        }
        throw wrong(name, "true or false");
    }

    /** @throws ServingException INVALID_ARGUMENT for a field that is not a whole number of at least {@code least} */
    int number(String name, int least, int otherwise) {
        Object value = fields.get(name);
        if (value == null) {
            return otherwise;
        }
        if (value instanceof Long n && n >= least && n <= Integer.MAX_VALUE) {
            return n.intValue();
        }
        throw wrong(name, "a whole number >= " + least);
    }

    /** The error for a value that is not as expected. */
    ServingException wrong(String name, String expected) {
        Object value = fields.get(name);
        String shown = value == null
                ? "is missing"
                : value instanceof List<?> list
                        ? (list.isEmpty() ? "is empty" : "is an array")
                        : value instanceof Map ? "is an object" : "is '" + value + "'";
        return ServingException.invalidArgument(
                "field '" + name + "' " + (shown.length() > 100 ? shown.substring(0, 100) + "…" : shown)
                        + " (expected: " + expected + ")",
                "correct the field");
    }
}
