// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.graph;

import com.fasterxml.jackson.databind.JsonNode;
import io.nereid.base.ServingException;
import org.jspecify.annotations.Nullable;

/**
 * A condition of a step: a path into JSON in the dialect of gjson (https://github.com/tidwall/gjson, its SYNTAX.md), which
 * KServe's graphs are written in. Keys, indices, wildcards, {@code #}, queries, pipes, multipaths and the modifiers that change
 * no text are known; the rest of the dialect is refused by name. Immutable.
 */
public final class JsonPath {
    private final String text;
    private final PathPart first;

    private JsonPath(String text, PathPart first) {
        this.text = text;
        this.first = first;
    }

    /**
     * Reads a path.
     *
     * @throws ServingException INVALID_ARGUMENT with the place
     */
    public static JsonPath parse(String text) {
        if (text.isBlank()) {
            throw ServingException.invalidArgument(
                    "the condition is empty (expected a path such as predictions.0.label)");
        }
        return new JsonPath(text, new PathParser(text).parse());
    }

    /** What is there, or null when nothing is. */
    public @Nullable JsonNode find(JsonNode root) {
        return first.find(root);
    }

    @Override
    public String toString() {
        return text;
    }
}
