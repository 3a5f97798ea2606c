// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.control;

import com.fasterxml.jackson.databind.JsonNode;
import io.nereid.app.client.ServerClient;
import io.nereid.app.control.ControlOptions.Named;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.time.Duration;
import java.util.function.Predicate;

/** Waits for conditions of resources, all within one time limit. Confined to one thread. */
final class ConditionWaiter {
    private final ControlClient client;
    private final Duration limit;
    private final Clock clock = Clock.system();
    private final long due;

    ConditionWaiter(ControlClient client, Duration limit) {
        this.client = client;
        this.limit = limit;
        this.due = clock.nanos() + limit.toNanos();
    }

    /**
     * Waits until a resource meets a condition or is deleted.
     *
     * @param what the condition, for the message of a timeout
     * @return false when the resource has been deleted
     * @throws ServingException DEADLINE_EXCEEDED after the time limit
     */
    boolean until(Named named, String what, Predicate<JsonNode> condition) {
        String collection = ControlClient.path(named.kind(), named.namespace(), null);
        while (true) {
            JsonNode found = client.find(named.path());
            if (found == null) {
                return false;
            }
            if (condition.test(found)) {
                return true;
            }
            long left = due - clock.nanos();
            if (left <= 0) {
                throw ServingException.of(
                        ErrorCode.DEADLINE_EXCEEDED,
                        "timed out after " + limit.toSeconds() + " s waiting for the " + what + " of " + named.shown(),
                        "see its status with: nereid describe " + named.kind().singular() + " " + named.name()
                                + (named.namespace().isEmpty() ? "" : " -n " + named.namespace()));
            }
            long seconds = Math.max(1, (left + 999_999_999L) / 1_000_000_000L);
            try {
                client.watch(
                        collection + "?watch=true&timeoutSeconds=" + seconds + "&fieldSelector=metadata.name%3D"
                                + ServerClient.segment(named.name()) + "&resourceVersion="
                                + found.path("metadata").path("resourceVersion").asText("0"),
                        false,
                        event -> false);
            } catch (ServingException e) {
                if (e.code() != ErrorCode.OUT_OF_RANGE) {
                    throw e;
                }
            }
        }
    }
}
