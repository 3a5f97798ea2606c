// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport;

import java.util.concurrent.atomic.LongAdder;

/** Counters of one server since its start. Thread-safe; a read is a moment's view, not a snapshot of all counters. */
public final class TransportStats {
    private final LongAdder accepted = new LongAdder();
    private final LongAdder closed = new LongAdder();
    private final LongAdder started = new LongAdder();
    private final LongAdder finished = new LongAdder();
    private final LongAdder rejected = new LongAdder();
    private final LongAdder failedHandshakes = new LongAdder();

    TransportStats() {}

    /** Connections accepted so far. */
    public long accepted() {
        return accepted.sum();
    }

    /** Connections open now. */
    public long connections() {
        return Math.max(0, -closed.sum() + accepted.sum());
    }

    /** HTTP exchanges and gRPC calls handed to a handler so far. */
    public long exchanges() {
        return started.sum();
    }

    /** HTTP exchanges and gRPC calls that a handler has not answered yet. */
    public long inFlight() {
        return Math.max(0, -finished.sum() + started.sum());
    }

    /** Requests refused before a handler saw them: malformed, too large, over the byte budget. */
    public long rejected() {
        return rejected.sum();
    }

    /** Connections to an encrypted address that did not come to speak TLS. */
    public long failedHandshakes() {
        return failedHandshakes.sum();
    }

    void handshakeFailed() {
        failedHandshakes.increment();
    }

    void connectionOpened() {
        accepted.increment();
    }

    void connectionClosed() {
        closed.increment();
    }

    void exchangeStarted() {
        started.increment();
    }

    void exchangeFinished() {
        finished.increment();
    }

    void requestRejected() {
        rejected.increment();
    }
}
