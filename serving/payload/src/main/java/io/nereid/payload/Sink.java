// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.payload;

import java.util.List;
import java.util.concurrent.CompletionStage;

/** Where events go. Thread-safe; the calling thread may be held up. */
interface Sink {
    /**
     * Sends events, of which there is one where {@link #batches} is false.
     *
     * @return fails with INVALID_ARGUMENT, UNAUTHENTICATED, PERMISSION_DENIED or NOT_FOUND when sending them again would be
     *     of no use
     */
    CompletionStage<Void> send(List<Outgoing> events);

    /** Whether several may be sent together. */
    boolean batches();
}
