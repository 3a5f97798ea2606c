// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api;

import com.fasterxml.jackson.databind.JsonNode;
import io.nereid.base.NameSuggestions;
import io.nereid.base.ServingException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Collects all validation errors of a resource, so that the client gets them in one response. Duplicate lines are
 * dropped. Confined to one admission.
 */
public final class ValidationErrors {
    /** The maximum length of names for which similar ones are suggested; comparing longer ones costs too much. */
    public static final int LONGEST_NAME = 60;

    private static final int MOST = 100;

    private final Set<String> lines = new LinkedHashSet<>();
    private boolean misshapen;

    /** Adds an error at a path. */
    public void add(String path, String problem) {
        lines.add(path + ": " + problem);
    }

    /**
     * Adds a complete line for a value of a wrong type or a missing field. The resource can then not be read into
     * records, which ends validation after the schema check.
     */
    public void addShape(String line) {
        lines.add(line);
        misshapen = true;
    }

    /** Whether a value has a wrong type, so that records cannot be read from the resource. */
    public boolean misshapen() {
        return misshapen;
    }

    public List<String> lines() {
        return new ArrayList<>(lines);
    }

    /**
     * Throws the collected errors, if any.
     *
     * @throws ServingException INVALID_ARGUMENT with one line per error, up to a limit
     */
    public void throwIfAny(String what) {
        if (lines.isEmpty()) {
            return;
        }
        List<String> all = lines();
        if (all.size() > MOST) {
            int more = all.size() - MOST;
            all = all.subList(0, MOST);
            all.add("and " + more + " more problems");
        }
        String head = all.size() == 1 ? what + " is invalid: " : what + " is invalid, " + all.size() + " problems:\n";
        throw ServingException.invalidArgument(head + String.join("\n", all));
    }

    /** The message for a value that is not one of the known ones, with a suggestion of a similar one. */
    public static String unknownValue(String value, Collection<String> known) {
        String suggestion = value.length() > LONGEST_NAME ? "" : NameSuggestions.didYouMean(value, known, "");
        return "\"" + clip(value) + "\" is not one of " + String.join(", ", known)
                + (suggestion.isEmpty() ? "" : "; " + suggestion);
    }

    /** A suggestion of similar names to append to a message, or the empty string. */
    public static String didYouMean(String name, Collection<String> known) {
        String suggestion = name.length() > LONGEST_NAME ? "" : NameSuggestions.didYouMean(name, known, "");
        return suggestion.isEmpty() ? "" : "; " + suggestion;
    }

    /** The message for a value of a wrong type. */
    public static String wrongType(String path, String expected, @Nullable JsonNode found) {
        return path + ": expected " + expected + ", found " + (found == null ? "nothing" : shown(found));
    }

    /** A value as it is shown in messages. */
    public static String shown(JsonNode found) {
        return switch (found.getNodeType()) {
            case OBJECT -> "an object";
            case ARRAY -> "a list";
            case STRING -> "the string \"" + clip(found.textValue()) + "\"";
            case NULL, MISSING -> "nothing";
            default -> clip(found.toString());
        };
    }

    /** A text for messages, limited to 80 characters. */
    public static String clip(String text) {
        return text.length() <= 80 ? text : text.substring(0, 77) + "...";
    }
}
