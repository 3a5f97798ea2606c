// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core.status;

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
 * The conditions of a status by type, as in Kubernetes. {@code lastTransitionTime} changes only when status or reason
 * of a condition change, so that planning again with the same input gives an equal status. Confined to one call of the
 * planner.
 */
public final class Conditions {
    public static final String TRUE = "True";
    public static final String FALSE = "False";
    public static final String UNKNOWN = "Unknown";

    private final Map<String, ObjectNode> all = new TreeMap<>();
    private final JsonNode before;
    private final Instant now;

    /** Starts without conditions; {@code before} is the last written status. */
    public Conditions(JsonNode before, Instant now) {
        this.before = before.path("conditions");
        this.now = now;
    }

    /** The time in RFC 3339 with whole seconds. */
    public static String time(Instant instant) {
        return instant.truncatedTo(ChronoUnit.SECONDS).toString();
    }

    public void set(String type, String status, @Nullable String reason, @Nullable String message) {
        set(type, status, reason, message, null);
    }

    /** Sets an advisory condition, which does not affect readiness. */
    public void advise(String type, String status, String reason, String message) {
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

    /** The status of the condition in the last status; empty if it did not exist. */
    public String statusBefore(String type) {
        JsonNode last = last(type);
        return last == null ? "" : last.path("status").asText();
    }

    /** The message of the condition in the last status; empty for none. */
    public String messageBefore(String type) {
        JsonNode last = last(type);
        return last == null ? "" : last.path("message").asText();
    }

    /** The message of the condition; empty for none. */
    public String message(String type) {
        ObjectNode condition = all.get(type);
        return condition == null ? "" : condition.path("message").asText();
    }

    public String reason(String type) {
        ObjectNode condition = all.get(type);
        return condition == null ? "" : condition.path("reason").asText();
    }

    public String status(String type) {
        ObjectNode condition = all.get(type);
        return condition == null ? "" : condition.path("status").asText();
    }

    /**
     * Sets a condition that is true when all {@code parts} are. Otherwise it has the status, reason and message of the
     * first false part, or of the first unknown one when none is false.
     */
    public void all(String type, Iterable<String> parts) {
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

    public ArrayNode tree() {
        ArrayNode tree = JsonNodeFactory.instance.arrayNode();
        all.values().forEach(tree::add);
        return tree;
    }
}
