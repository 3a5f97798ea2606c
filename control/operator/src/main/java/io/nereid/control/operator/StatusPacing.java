// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.MissingNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Decides when a status is written. While a service starts, its Deployment passes through states that clients do not wait for
 * and that each would cost a write; such a status is held back for some seconds, and written only if it still holds then.
 * What clients wait for is written at once: the first status, the one of a new generation, readiness and its loss, and
 * every failure. Thread-safe.
 */
final class StatusPacing {
    private static final Duration PACE = Duration.ofSeconds(15);
    private static final int MAX_KNOWN = 10_000;

    /** When a status of each service was last written, by uid. */
    private final Map<String, Instant> written = new LinkedHashMap<>(16, 0.75f, true) {
        @Override
        protected boolean removeEldestEntry(Map.Entry<String, Instant> eldest) {
            return size() > MAX_KNOWN;
        }
    };

    /** Returns how long to wait until the status may be written; zero for writing it now. */
    synchronized Duration wait(String uid, JsonNode before, ObjectNode status, Instant now) {
        Instant last = written.get(uid);
        if (last != null && isPassing(before, status)) {
            Duration left = Duration.between(now, last.plus(PACE));
            if (!left.isNegative() && !left.isZero()) {
                return left;
            }
        }
        if (!status.equals(before)) {
            written.put(uid, now);
        }
        return Duration.ZERO;
    }

    private static boolean isPassing(JsonNode before, ObjectNode status) {
        return before.isObject()
                && before.path("observedGeneration").asLong()
                        == status.path("observedGeneration").asLong()
                && !ready(before)
                && !ready(status)
                && before.path("modelStatus")
                        .path("lastFailureInfo")
                        .equals(status.path("modelStatus").path("lastFailureInfo"))
                && before.path("modelStatus")
                        .path("transitionStatus")
                        .equals(status.path("modelStatus").path("transitionStatus"));
    }

    private static boolean ready(JsonNode status) {
        return condition(status, "Ready").path("status").asText().equals("True");
    }

    private static JsonNode condition(JsonNode status, String type) {
        for (JsonNode condition : status.path("conditions")) {
            if (condition.path("type").asText().equals(type)) {
                return condition;
            }
        }
        return MissingNode.getInstance();
    }
}
