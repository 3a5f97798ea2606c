// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * The conditions of a status, by type. A condition that stays as it was keeps the time of its last change. Confined to one call
 * of the planner.
 */
final class Conditions {
    static final String TRUE = "True";
    static final String FALSE = "False";
    static final String UNKNOWN = "Unknown";

    private final Map<String, ObjectNode> all = new TreeMap<>();
    private final JsonNode before;
    private final Instant now;

    /** No conditions yet; {@code before} is the status that was written last. */
    Conditions(JsonNode before, Instant now) {
        this.before = before.path("conditions");
        this.now = now;
    }

    /** RFC 3339 in whole seconds. */
    static String time(Instant instant) {
        return instant.truncatedTo(ChronoUnit.SECONDS).toString();
    }

    void set(String type, String status, @Nullable String reason, @Nullable String message) {
        set(type, status, reason, message, null);
    }

    /** An advisory condition says something without a part in whether the service is ready. */
    void advise(String type, String status, String reason, String message) {
        set(type, status, reason, message, "Info");
    }

    private void set(
            String type, String status, @Nullable String reason, @Nullable String message, @Nullable String severity) {
        ObjectNode condition = JsonNodeFactory.instance.objectNode();
        JsonNode last = last(type);
        condition.put(
                "lastTransitionTime",
                last != null
                                && last.path("status").asText().equals(status)
                                && last.path("reason").asText().equals(reason == null ? "" : reason)
                        ? last.path("lastTransitionTime").asText()
                        : time(now));
        if (message != null && !message.isEmpty()) {
            condition.put("message", message);
        }
        if (reason != null && !reason.isEmpty()) {
            condition.put("reason", reason);
        }
        if (severity != null) {
            condition.put("severity", severity);
        }
        condition.put("status", status);
        condition.put("type", type);
        all.put(type, condition);
    }

    private @Nullable JsonNode last(String type) {
        for (JsonNode one : before) {
            if (one.path("type").asText().equals(type)) {
                return one;
            }
        }
        return null;
    }

    /** What the condition was before; empty when it was not there. */
    String statusBefore(String type) {
        JsonNode last = last(type);
        return last == null ? "" : last.path("status").asText();
    }

    /** What it said before; empty for nothing. */
    String messageBefore(String type) {
        JsonNode last = last(type);
        return last == null ? "" : last.path("message").asText();
    }

    /** What it says; empty for nothing. */
    String message(String type) {
        ObjectNode condition = all.get(type);
        return condition == null ? "" : condition.path("message").asText();
    }

    String reason(String type) {
        ObjectNode condition = all.get(type);
        return condition == null ? "" : condition.path("reason").asText();
    }

    String status(String type) {
        ObjectNode condition = all.get(type);
        return condition == null ? "" : condition.path("status").asText();
    }

    /** Sets a condition that is true when all these are, and otherwise tells what the first other one says. */
    void all(String type, Iterable<String> parts) {
        ObjectNode worst = null;
        for (String part : parts) {
            ObjectNode one = all.get(part);
            if (one == null || one.path("status").asText().equals(TRUE)) {
                continue;
            }
            if (worst == null
                    || (worst.path("status").asText().equals(UNKNOWN)
                            && one.path("status").asText().equals(FALSE))) {
                worst = one;
            }
        }
        if (worst == null) {
            set(type, TRUE, null, null);
        } else {
            set(
                    type,
                    worst.path("status").asText(),
                    worst.path("reason").asText(null),
                    worst.path("message").asText(null));
        }
    }

    ArrayNode tree() {
        ArrayNode tree = JsonNodeFactory.instance.arrayNode();
        all.values().forEach(tree::add);
        return tree;
    }
}
