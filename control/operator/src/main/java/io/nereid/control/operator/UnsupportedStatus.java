// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Instant;
import java.time.temporal.ChronoUnit;

/** The status of a resource that this operator does not carry out. Stateless. */
final class UnsupportedStatus {
    private UnsupportedStatus() {}

    /**
     * Returns a status with the condition Ready False alone.
     *
     * @param before the last status; a condition that says the same keeps its time
     * @param reason one word
     */
    static ObjectNode of(JsonNode before, String reason, String message, Instant now) {
        ObjectNode status = JsonNodeFactory.instance.objectNode();
        ObjectNode condition = status.putArray("conditions").addObject();
        condition
                .put("type", "Ready")
                .put("status", "False")
                .put("reason", reason)
                .put("message", message);
        String since = now.truncatedTo(ChronoUnit.SECONDS).toString();
        for (JsonNode old : before.path("conditions")) {
            if (old.path("type").asText().equals("Ready")
                    && old.path("status").asText().equals("False")
                    && old.path("message").asText().equals(message)) {
                since = old.path("lastTransitionTime").asText(since);
            }
        }
        condition.put("lastTransitionTime", since);
        return status;
    }
}
