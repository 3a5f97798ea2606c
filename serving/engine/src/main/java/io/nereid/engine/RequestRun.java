// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine;

import io.nereid.base.Clock;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * One run of a model that takes requests. It counts when the first of them is answered, so that whoever has an answer finds
 * its run counted. Thread-safe.
 */
final class RequestRun {
    private final int rows;
    private final ModelStatistics statistics;
    private final Clock clock;
    private final long from;
    private final AtomicBoolean counted = new AtomicBoolean();

    RequestRun(int rows, ModelStatistics statistics, Clock clock) {
        this.rows = rows;
        this.statistics = statistics;
        this.clock = clock;
        this.from = clock.nanos();
    }

    int rows() {
        return rows;
    }

    /** When it began. */
    long from() {
        return from;
    }

    /** A request is answered now, which is returned. */
    long answered() {
        long now = clock.nanos();
        if (counted.compareAndSet(false, true)) {
            statistics.executed(rows, 0, now - from, 0);
        }
        return now;
    }
}
