// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app;

import com.fasterxml.jackson.databind.JsonNode;
import io.nereid.app.ControlOptions.Named;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.time.Duration;
import java.util.function.Predicate;

/** Waits for what becomes of resources, all within one time. Confined to one thread. */
final class Waiter {
    private final ControlClient client;
    private final Duration limit;
    private final Clock clock = Clock.system();
    private final long due;

    Waiter(ControlClient client, Duration limit) {
        this.client = client;
        this.limit = limit;
        this.due = clock.nanos() + limit.toNanos();
    }

    /**
     * Waits until a resource is as wanted, or gone.
     *
     * @param what for the message when the time is up
     * @return false when it is gone
     * @throws ServingException DEADLINE_EXCEEDED
     */
    boolean until(Named named, String what, Predicate<JsonNode> wanted) {
        String collection = ControlClient.path(named.kind(), named.namespace(), null);
        while (true) {
            JsonNode found = client.find(named.path());
            if (found == null) {
                return false;
            }
            if (wanted.test(found)) {
                return true;
            }
            long left = due - clock.nanos();
            if (left <= 0) {
                throw ServingException.of(
                        ErrorCode.DEADLINE_EXCEEDED,
                        "timed out after " + limit.toSeconds() + " s waiting for the " + what + " of " + named.shown(),
                        "see how it is with: nereid describe " + named.kind().singular() + " " + named.name()
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
