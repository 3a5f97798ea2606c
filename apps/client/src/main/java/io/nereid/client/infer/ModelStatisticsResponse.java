// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.client.infer;

import java.util.Map;

/**
 * The statistics of a version since it was loaded. Immutable.
 *
 * @param name the model
 * @param version its version
 * @param lastInferenceMillis the time of the last inference, in milliseconds since the epoch; 0 for none
 * @param inferenceCount the rows inferred
 * @param executionCount the batches run
 * @param durations totals by name: {@code success}, {@code fail}, {@code queue}, {@code compute_input},
 *     {@code compute_infer}, {@code compute_output}, {@code cache_hit}, {@code cache_miss}
 */
public record ModelStatisticsResponse(
        String name,
        String version,
        long lastInferenceMillis,
        long inferenceCount,
        long executionCount,
        Map<String, Total> durations) {
    public ModelStatisticsResponse {
        durations = Map.copyOf(durations);
    }

    /**
     * A number of events and their time together. Immutable.
     *
     * @param count the events
     * @param nanos their nanoseconds together
     */
    public record Total(long count, long nanos) {}
}
