// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.statistics;

import io.nereid.base.Clock;

/** Latency quantiles of a model over the last minute. Thread-safe, lock-free. */
public final class LatencySummaries {
    public final SlidingQuantiles request;
    public final SlidingQuantiles queue;
    public final SlidingQuantiles computeInput;
    public final SlidingQuantiles computeInfer;
    public final SlidingQuantiles computeOutput;
    public final SlidingQuantiles cacheHit;
    public final SlidingQuantiles cacheMiss;

    LatencySummaries(Clock clock) {
        request = new SlidingQuantiles(clock);
        queue = new SlidingQuantiles(clock);
        computeInput = new SlidingQuantiles(clock);
        computeInfer = new SlidingQuantiles(clock);
        computeOutput = new SlidingQuantiles(clock);
        cacheHit = new SlidingQuantiles(clock);
        cacheMiss = new SlidingQuantiles(clock);
    }

    void record(long requestNanos, long queueNanos, long inputNanos, long runNanos, long outputNanos) {
        request.record(requestNanos);
        queue.record(queueNanos);
        computeInput.record(inputNanos);
        computeInfer.record(runNanos);
        computeOutput.record(outputNanos);
    }
}
