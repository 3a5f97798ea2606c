// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.perf.load;

import java.util.Map;
import org.HdrHistogram.Histogram;
import org.jspecify.annotations.Nullable;

/**
 * What was measured at one load. Immutable, provided that callers do not write to the histograms.
 *
 * @param level the load
 * @param seconds the time that was measured
 * @param rate successful responses per second
 * @param latencies latencies of the successful requests, in nanoseconds
 * @param failed failed requests
 * @param unfinished requests without a response when the measurement was ended by force
 * @param failures failures by reason, warm-up included
 * @param stable whether the windows agreed; null when a fixed time was measured, without a check
 * @param windows the number of windows that were measured
 * @param delays how much later than due the requests were sent, in nanoseconds; null for a closed loop
 * @param server what the server counted; null where it cannot be read
 */
public record LoadResult(
        LoadLevel level,
        double seconds,
        double rate,
        Histogram latencies,
        long failed,
        long unfinished,
        Map<String, Long> failures,
        @Nullable Boolean stable,
        int windows,
        @Nullable Histogram delays,
        @Nullable ServerTimes server) {
    private static final double NANOS_PER_MILLI = 1e6;

    /** Successful requests. */
    public long succeeded() {
        return latencies.getTotalCount();
    }

    /** A percentile of the latency in milliseconds; NaN without a successful request. */
    public double percentileMillis(double percentile) {
        return succeeded() == 0 ? Double.NaN : latencies.getValueAtPercentile(percentile) / NANOS_PER_MILLI;
    }

    /** The mean latency in milliseconds; NaN without a successful request. */
    public double meanMillis() {
        return succeeded() == 0 ? Double.NaN : latencies.getMean() / NANOS_PER_MILLI;
    }

    /** The shortest latency in milliseconds; NaN without a successful request. */
    public double minMillis() {
        return succeeded() == 0 ? Double.NaN : latencies.getMinValue() / NANOS_PER_MILLI;
    }

    /** The longest latency in milliseconds; NaN without a successful request. */
    public double maxMillis() {
        return succeeded() == 0 ? Double.NaN : latencies.getMaxValue() / NANOS_PER_MILLI;
    }

    /** The failed share of the requests that ended; 0 without requests. */
    public double failedShare() {
        long ended = succeeded() + failed;
        return ended == 0 ? 0 : (double) failed / ended;
    }

    /** A percentile of how much later than due requests were sent, in milliseconds; NaN for a closed loop. */
    public double delayMillis(double percentile) {
        return delays == null || delays.getTotalCount() == 0
                ? Double.NaN
                : delays.getValueAtPercentile(percentile) / NANOS_PER_MILLI;
    }
}
