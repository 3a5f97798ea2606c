// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.execution;

import io.nereid.base.Clock;
import io.nereid.engine.statistics.ModelStatistics;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * One run of a model that takes requests. It counts when the first of them is answered, so that whoever has an answer finds
 * its run counted. Thread-safe.
 */
public final class RequestExecution {
    private final int rows;
    private final ModelStatistics statistics;
    private final Clock clock;
    private final long from;
    private final Map<String, Object> parameters;
    private final AtomicBoolean counted = new AtomicBoolean();

    /**
     * @param parameters what every answer of the run says beside what the model says
     */
    public RequestExecution(int rows, ModelStatistics statistics, Clock clock, Map<String, Object> parameters) {
        this.rows = rows;
        this.statistics = statistics;
        this.clock = clock;
        this.parameters = parameters;
        this.from = clock.nanos();
    }

    /** The parameters of an answer to which the model gave these. */
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
