// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport;

import java.util.concurrent.atomic.LongAdder;

/** Counters of one server since its start. Thread-safe; several reads are not one consistent snapshot. */
public final class TransportStats {
    private final LongAdder accepted = new LongAdder();
    private final LongAdder closed = new LongAdder();
    private final LongAdder started = new LongAdder();
    private final LongAdder finished = new LongAdder();
    private final LongAdder rejected = new LongAdder();
    private final LongAdder refused = new LongAdder();
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

    /** Requests rejected before a handler was called: malformed, too large, over the byte budget, without a route. */
    public long rejected() {
        return rejected.sum();
    }

    /** Connections to an address with TLS that did not complete a handshake. */
    public long failedHandshakes() {
        return failedHandshakes.sum();
    }

    /** Connections closed on arrival: more than the limit, or no file descriptor left. */
    public long refused() {
        return refused.sum();
    }

    public void connectionRefused() {
        refused.increment();
    }

    public void handshakeFailed() {
        failedHandshakes.increment();
    }

    public void connectionOpened() {
        accepted.increment();
    }

    public void connectionClosed() {
        closed.increment();
    }

    public void exchangeStarted() {
        started.increment();
    }

    public void exchangeFinished() {
        finished.increment();
    }

    public void requestRejected() {
        rejected.increment();
    }
}
