// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.perf.load;

import org.jspecify.annotations.Nullable;

/**
 * How a load is measured. Immutable.
 *
 * @param warmupNanos time before the measurement, whose requests do not count
 * @param intervalNanos the length of a window
 * @param maxTrials the most windows until the measurement is stable
 * @param durationNanos the time to measure without a check of stability; null for the check
 * @param requests the number of requests to measure instead; null for a time
 * @param stability the check
 * @param percentile the percentile of the latency that must be stable; 0 for the mean
 * @param poisson whether the requests of an open loop come at random, else at equal distances
 * @param seed of what is random
 * @param maxInFlight the most requests in flight of an open loop
 */
public record LoadPlan(
        long warmupNanos,
        long intervalNanos,
        int maxTrials,
        @Nullable Long durationNanos,
        @Nullable Long requests,
        StabilityCheck stability,
        double percentile,
        boolean poisson,
        long seed,
        int maxInFlight) {
    /** Whether windows are measured until they agree. */
    boolean untilStable() {
        return durationNanos == null && requests == null;
    }
}
