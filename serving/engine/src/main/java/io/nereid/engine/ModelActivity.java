// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine;

import io.nereid.base.Experimental;
import io.nereid.engine.servable.EngineServable;
import io.nereid.engine.statistics.Histogram;
import io.nereid.engine.statistics.ModelStatistics;
import io.nereid.observe.ModelStatisticsSnapshot;

/**
 * What one version does at a moment, for those who watch a server live. Immutable, but for the array, which belongs to
 * the receiver.
 *
 * @param statistics the counters since the version was loaded
 * @param queued requests that wait for an instance
 * @param inFlight requests accepted and not yet completed
 * @param latencyCounts successful requests by their time from arrival to response: as many as there are
 *     {@link #latencyBounds bounds}, and one for the slower ones
 */
@Experimental
public record ModelActivity(ModelStatisticsSnapshot statistics, long queued, long inFlight, long[] latencyCounts) {
    /** Reads the counters of a version. */
    static ModelActivity of(EngineServable servable) {
        ModelStatistics statistics = servable.statistics();
        long[] counts = new long[statistics.request.bounds().length + 1];
        for (int i = 0; i < counts.length; i++) {
            counts[i] = statistics.request.count(i);
        }
        return new ModelActivity(servable.report(), servable.queued(), statistics.inFlight(), counts);
    }

    /** The upper bounds of the latencies that are counted, in nanoseconds, ascending. */
    public static long[] latencyBounds() {
        return Histogram.durationBounds();
    }
}
