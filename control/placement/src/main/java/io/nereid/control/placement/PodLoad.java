// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.placement;

import java.util.concurrent.atomic.AtomicInteger;

/** The requests in flight on one pod, in shares of its workers. Thread-safe. */
public final class PodLoad {
    private final String pod;
    private final double workers;
    private final AtomicInteger inFlight = new AtomicInteger();

    PodLoad(PooledPod pod) {
        this.pod = pod.name();
        this.workers = pod.workers();
    }

    /** The pod. */
    public String pod() {
        return pod;
    }

    /** The requests in flight. */
    public int inFlight() {
        return inFlight.get();
    }

    double utilisation() {
        return inFlight.get() / workers;
    }

    void begin() {
        inFlight.incrementAndGet();
    }

    void end() {
        inFlight.decrementAndGet();
    }
}
