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
 * Decides when a status is written. While a service starts, its Deployment passes through states that clients do not wait
 * for and that each would cost a write, and the watches of Deployments and of pods report the same event one after the
 * other. Such a status is held back, and written only if it still holds then. What clients wait for is written at once:
 * the first status, the one of a new generation, readiness as soon as the model is loaded, its loss, and every failure.
 * Thread-safe.
 */
final class StatusPacing {
    /** How long details are held back after a write. */
    private static final Duration PACE = Duration.ofSeconds(15);

    /** How long a Deployment may be ahead of its pods. */
    private static final Duration SETTLING = Duration.ofSeconds(2);

    private static final Duration AGAIN = Duration.ofMillis(200);
    private static final int MAX_KNOWN = 10_000;

    /** When a status of each service was last written, by uid. */
    private final Map<String, Instant> written = known();

    /** Since when a service is ready whose model is not loaded yet, by uid. */
    private final Map<String, Instant> settling = known();

    private static Map<String, Instant> known() {
        return new LinkedHashMap<>(16, 0.75f, true) {
            @Override
            protected boolean removeEldestEntry(Map.Entry<String, Instant> eldest) {
                return size() > MAX_KNOWN;
            }
        };
    }

    /** Returns how long to wait until the status may be written; zero for writing it now. */
    synchronized Duration wait(String uid, JsonNode before, ObjectNode status, Instant now) {
        boolean details = isDetail(before, status);
        Instant last = written.get(uid);
        if (details && last != null && ready(before) == ready(status)) {
            Duration left = Duration.between(now, last.plus(PACE));
            if (!left.isNegative() && !left.isZero()) {
                return left;
            }
        }
        if (details && !ready(before) && ready(status) && !isLoaded(status)) {
            Instant since = settling.computeIfAbsent(uid, key -> now);
            if (now.isBefore(since.plus(SETTLING))) {
                return AGAIN;
            }
        }
        settling.remove(uid);
        if (!status.equals(before)) {
            written.put(uid, now);
        }
        return Duration.ZERO;
    }

    /** Whether a status is of the same generation as the one before, and has no failure that it does not have. */
    private static boolean isDetail(JsonNode before, ObjectNode status) {
        return before.isObject()
                && before.path("observedGeneration").asLong()
                        == status.path("observedGeneration").asLong()
                && before.path("modelStatus")
                        .path("lastFailureInfo")
                        .equals(status.path("modelStatus").path("lastFailureInfo"));
    }

    private static boolean isLoaded(JsonNode status) {
        return status.path("modelStatus")
                .path("states")
                .path("activeModelState")
                .asText()
                .equals("Loaded");
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
