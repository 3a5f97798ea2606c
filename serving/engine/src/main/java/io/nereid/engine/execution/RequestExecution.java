// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.execution;

import io.nereid.base.Clock;
import io.nereid.engine.statistics.ModelStatistics;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * One run of a model that takes requests. The run is counted when its first request is answered, so that a client that
 * has a response also finds the run in the statistics. Thread-safe.
 */
public final class RequestExecution {
    private final int rows;
    private final ModelStatistics statistics;
    private final Clock clock;
    private final long from;
    private final Map<String, Object> parameters;
    private final AtomicBoolean counted = new AtomicBoolean();

    /**
     * Creates the record of a run that starts now.
     *
     * @param parameters response parameters that are common to the run
     */
    public RequestExecution(int rows, ModelStatistics statistics, Clock clock, Map<String, Object> parameters) {
        this.rows = rows;
        this.statistics = statistics;
        this.clock = clock;
        this.parameters = parameters;
        this.from = clock.nanos();
    }

    /** Merges the model's response parameters with those of the run. */
    Map<String, Object> parameters(Map<String, Object> own) {
        if (parameters.isEmpty() || own.isEmpty()) {
            return own.isEmpty() ? parameters : own;
        }
        Map<String, Object> all = new HashMap<>(parameters);
        all.putAll(own);
        return all;
    }

    int rows() {
        return rows;
    }

    /** The start time of the run. */
    long from() {
        return from;
    }

    /** Records that a request is answered and returns the current time. */
    long answered() {
        long now = clock.nanos();
        if (counted.compareAndSet(false, true)) {
            statistics.executed(rows, 0, now - from, 0);
        }
        return now;
    }
}
