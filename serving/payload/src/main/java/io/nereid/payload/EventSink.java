// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.payload;

import java.util.List;
import java.util.concurrent.CompletionStage;

/** Sends events to their destination. Thread-safe; {@link #send} may block the calling thread. */
interface EventSink {
    /**
     * Sends events; exactly one when {@link #batches} is false.
     *
     * @return fails with INVALID_ARGUMENT, UNAUTHENTICATED, PERMISSION_DENIED or NOT_FOUND when a retry cannot succeed
     */
    CompletionStage<Void> send(List<RedactedEvent> events);

    /** Whether several events can be sent together. */
    boolean batches();
}
