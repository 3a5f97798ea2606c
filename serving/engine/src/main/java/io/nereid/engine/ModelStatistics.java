// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine;

import io.nereid.base.Code;
import io.nereid.spi.ServableId;
import java.util.concurrent.atomic.LongAdder;

/** What one version has done since it was loaded. Times in nanoseconds. Thread-safe, lock-free. */
final class ModelStatistics {
    /** Why requests failed, under the names that dashboards know. */
    enum Failure {
        REJECTED,
        CANCELED,
        BACKEND,
        OTHER;

        static Failure of(Code code) {
            return switch (code) {
                case CANCELLED -> CANCELED;
                case UNAVAILABLE, RESOURCE_EXHAUSTED, DEADLINE_EXCEEDED -> REJECTED;
                case INTERNAL, UNKNOWN, DATA_LOSS -> BACKEND;
                default -> OTHER;
            };
        }
    }

    final ServableId id;
    final LongAdder success = new LongAdder();
    final LongAdder[] failures = new LongAdder[Failure.values().length];
    final LongAdder inferences = new LongAdder();
    final LongAdder executions = new LongAdder();
    final LongAdder inFlight = new LongAdder();
    final LongAdder computeInput = new LongAdder();
    final LongAdder computeOutput = new LongAdder();
    final Histogram request = new Histogram(Histogram.DURATIONS);
    final Histogram queue = new Histogram(Histogram.DURATIONS);
    final Histogram compute = new Histogram(Histogram.DURATIONS);
    final Histogram batchSizes = new Histogram(Histogram.SIZES);

    ModelStatistics(ServableId id) {
        this.id = id;
        for (int i = 0; i < failures.length; i++) {
            failures[i] = new LongAdder();
        }
    }

    void succeeded(long requestNanos, long queueNanos, long inputNanos, long runNanos, long outputNanos, int rows) {
        success.increment();
        inferences.add(rows);
        request.record(requestNanos);
        queue.record(queueNanos);
        compute.record(runNanos);
        computeInput.add(inputNanos);
        computeOutput.add(outputNanos);
    }

    void failed(Code code) {
        failures[Failure.of(code).ordinal()].increment();
    }

    void executed(int rows) {
        executions.increment();
        batchSizes.record(rows);
    }
}
