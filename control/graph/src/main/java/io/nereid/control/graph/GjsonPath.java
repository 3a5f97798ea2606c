// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.graph;

import com.fasterxml.jackson.databind.JsonNode;
import io.nereid.base.ServingException;
import org.jspecify.annotations.Nullable;

/**
 * The condition of a step: a path into JSON in the syntax of gjson (https://github.com/tidwall/gjson, SYNTAX.md), the
 * language of conditions in KServe's InferenceGraph. Supports keys, indices, wildcards, {@code #}, queries, pipes,
 * multipaths and the modifiers that do not change the text; rejects the rest of the syntax with a message that names
 * it. Immutable.
 *
 * <pre>{@code
 * GjsonPath path = GjsonPath.parse("predictions.#(label==\"cat\").score");
 * boolean matches = path.find(response) != null;
 * }</pre>
 */
public final class GjsonPath {
    private final String text;
    private final GjsonComponent first;

    private GjsonPath(String text, GjsonComponent first) {
        this.text = text;
        this.first = first;
    }

    /**
     * Parses a path.
     *
     * @throws ServingException INVALID_ARGUMENT with the position of the error
     */
    public static GjsonPath parse(String text) {
        if (text.isBlank()) {
            throw ServingException.invalidArgument(
                    "the condition is empty (expected a path such as predictions.0.label)");
        }
        return new GjsonPath(text, new GjsonParser(text).parse());
    }

    /** The value that the path leads to, or null when it leads to no value. */
    public @Nullable JsonNode find(JsonNode root) {
        return first.find(root);
    }

    @Override
    public String toString() {
        return text;
    }
}
