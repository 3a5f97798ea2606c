// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.payload;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.fasterxml.jackson.databind.node.TextNode;
import io.nereid.base.ServingException;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Removes sensitive values from events: values at some paths of JSON bodies, and some headers. A body that cannot be
 * parsed is not sent at all, because the paths cannot be found in it. Immutable.
 */
final class Redaction {
    /** Replaces removed values. */
    static final String REDACTED = "[redacted]";

    /** Redacts nothing. */
    static final Redaction NONE = new Redaction(List.of(), Set.of());

    private static final Pattern STEP =
            Pattern.compile("\\.(\\*|[^.\\[\\]'\"*\\s]+)|\\[(\\*|\\d{1,9})]|\\['([^']+)']|\\[\"([^\"]+)\"]");
    private static final String ANY = "*";

    private final List<List<Step>> paths;
    private final Set<String> headers;

    private Redaction(List<List<Step>> paths, Set<String> headers) {
        this.paths = paths;
        this.headers = headers;
    }

    /**
     * Parses a list such as {@code $.instances[*].name, authorization}: paths begin with {@code $}, other items are
     * names of headers.
     *
     * @throws ServingException INVALID_ARGUMENT for an item that is neither
     */
    static Redaction of(String text) {
        List<List<Step>> paths = new ArrayList<>();
        Set<String> headers = new HashSet<>();
        for (String each : text.split(",", -1)) {
            String item = each.strip();
            if (item.startsWith("$")) {
                paths.add(path(item));
            } else if (item.matches("[A-Za-z0-9!#$&'*+.^_|~-]+")) {
                headers.add(item.toLowerCase(Locale.ROOT));
            } else {
                throw unreadable(item);
            }
        }
        return new Redaction(List.copyOf(paths), Set.copyOf(headers));
    }

    private static List<Step> path(String item) {
        List<Step> steps = new ArrayList<>();
        Matcher m = STEP.matcher(item);
        int at = 1;
        while (at < item.length()) {
            if (!m.find(at) || m.start() != at) {
                throw unreadable(item);
            }
            if (m.group(1) != null) {
                steps.add(new Step(m.group(1), m.group(1).equals(ANY), false));
            } else if (m.group(2) != null) {
                steps.add(new Step(m.group(2), m.group(2).equals(ANY), true));
            } else {
                steps.add(new Step(m.group(3) != null ? m.group(3) : m.group(4), false, false));
            }
            at = m.end();
        }
        return List.copyOf(steps);
    }

    private static ServingException unreadable(String item) {
        return ServingException.invalidArgument(
                "'" + item + "' is neither a path nor the name of a header",
                "write paths such as $.instances[*].name, and headers such as authorization, separated by commas");
    }

    boolean header(String lowerCaseName) {
        return headers.contains(lowerCaseName);
    }

    /**
     * Redacts a body.
     *
     * @return the same array when none of the paths is found; null when the body cannot be parsed and must not be sent
     */
    byte @Nullable [] clean(byte[] body) {
        if (paths.isEmpty() || body.length == 0) {
            return body;
        }
        String text;
        try {
            text = StandardCharsets.UTF_8
                    .newDecoder()
                    .decode(ByteBuffer.wrap(body))
                    .toString();
        } catch (CharacterCodingException e) {
            return null;
        }
        JsonNode tree = JsonDocuments.read(text);
        if (tree == null) {
            return null;
        }
        boolean found = false;
        JsonNode whole = tree;
        for (List<Step> path : paths) {
            if (path.isEmpty()) {
                whole = TextNode.valueOf(REDACTED);
                found = true;
            } else {
                found |= replace(whole, path, 0);
            }
        }
        if (!found) {
            return body;
        }
        try {
            return JsonDocuments.MAPPER.writeValueAsBytes(whole);
        } catch (JsonProcessingException e) {
            return null;
        }
    }

    private static boolean replace(JsonNode node, List<Step> path, int at) {
        Step step = path.get(at);
        boolean last = at == path.size() - 1;
        boolean found = false;
        if (node instanceof ArrayNode array && (step.any || step.index)) {
            int one = step.any ? -1 : Integer.parseInt(step.name);
            for (int i = step.any ? 0 : one; i < (step.any ? array.size() : Math.min(one + 1, array.size())); i++) {
                if (last) {
                    array.set(i, TextNode.valueOf(REDACTED));
                    found = true;
                } else {
                    found |= replace(array.get(i), path, at + 1);
                }
            }
        } else if (node instanceof ObjectNode object && !step.index) {
            List<String> names = new ArrayList<>();
            if (step.any) {
                object.fieldNames().forEachRemaining(names::add);
            } else if (object.has(step.name)) {
                names.add(step.name);
            }
            for (String name : names) {
                if (last) {
                    object.put(name, REDACTED);
                    found = true;
                } else {
                    found |= replace(object.get(name), path, at + 1);
                }
            }
        }
        return found;
    }

    /** One step of a path: a name, an index, or all of them. Immutable. */
    private record Step(String name, boolean any, boolean index) {}
}
