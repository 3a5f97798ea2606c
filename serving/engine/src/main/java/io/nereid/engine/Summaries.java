// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine;

import io.nereid.base.Clock;

/** Quantiles of a model's times over the last minute. Thread-safe, lock-free. */
final class Summaries {
    final Quantiles request;
    final Quantiles queue;
    final Quantiles computeInput;
    final Quantiles computeInfer;
    final Quantiles computeOutput;
    final Quantiles cacheHit;
    final Quantiles cacheMiss;

    Summaries(Clock clock) {
        request = new Quantiles(clock);
        queue = new Quantiles(clock);
        computeInput = new Quantiles(clock);
        computeInfer = new Quantiles(clock);
        computeOutput = new Quantiles(clock);
        cacheHit = new Quantiles(clock);
        cacheMiss = new Quantiles(clock);
    }

    void record(long requestNanos, long queueNanos, long inputNanos, long runNanos, long outputNanos) {
        request.record(requestNanos);
        queue.record(queueNanos);
        computeInput.record(inputNanos);
        computeInfer.record(runNanos);
        computeOutput.record(outputNanos);
    }
}
