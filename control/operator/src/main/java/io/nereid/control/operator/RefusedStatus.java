// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.operator.objects.ObjectApplier.Refusal;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.Locale;

/**
 * The status of a service with an object that the API server does not take: the component's condition and Ready are False
 * with the reason {@code ReconcileFailed} and the API server's words, as KServe says it. Stateless.
 */
final class RefusedStatus {
    static final String REASON = "ReconcileFailed";

    private RefusedStatus() {}

    /** The message of the conditions and of the event. */
    static String message(Refusal refusal) {
        return "fails to reconcile " + component(refusal) + ": " + refusal.message();
    }

    /** The component that an object belongs to; routes have none. */
    private static String component(Refusal refusal) {
        JsonNode metadata = refusal.object().path("metadata");
        if (refusal.object().path("kind").asText().equals("OpenTelemetryCollector")) {
            // It has no labels, as with KServe.
            String name = metadata.path("name").asText();
            return name.substring(name.lastIndexOf('-') + 1);
        }
        return metadata.path("labels").path("component").asText("ingress");
    }

    /**
     * Returns a status with the refusal.
     *
     * @param planned the status without it
     * @param before the last status, whose equal conditions keep their times
     */
    static ObjectNode of(ObjectNode planned, JsonNode before, Refusal refusal, Instant now) {
        ObjectNode status = planned.deepCopy();
        String component = component(refusal);
        String type = component.substring(0, 1).toUpperCase(Locale.ROOT) + component.substring(1) + "Ready";
        ArrayNode conditions = status.withArrayProperty("conditions");
        set(conditions, type, before, message(refusal), now);
        set(conditions, "Ready", before, message(refusal), now);
        return status;
    }

    private static void set(ArrayNode conditions, String type, JsonNode before, String message, Instant now) {
        ObjectNode condition = null;
        for (JsonNode one : conditions) {
            if (one.path("type").asText().equals(type)) {
                condition = (ObjectNode) one;
            }
        }
        if (condition == null) {
            condition = conditions.addObject().put("type", type);
        }
        String since = now.truncatedTo(ChronoUnit.SECONDS).toString();
        for (JsonNode old : before.path("conditions")) {
            if (old.path("type").asText().equals(type)
                    && old.path("message").asText().equals(message)) {
                since = old.path("lastTransitionTime").asText(since);
            }
        }
        condition.put("status", "False").put("reason", REASON).put("message", message);
        condition.put("lastTransitionTime", since);
    }
}
