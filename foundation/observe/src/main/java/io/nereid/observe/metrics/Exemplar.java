// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.observe.metrics;

/**
 * One traced request as an example of what a bucket or a counter counts. Immutable.
 *
 * @param traceId identifies the request's trace; written only up to {@link #MAX_TRACE_ID} characters
 * @param value what the request added, in the metric's unit
 */
public record Exemplar(String traceId, double value) {
    /** OpenMetrics limits the names and values of an exemplar's labels to 128 characters together. */
    static final int MAX_TRACE_ID = 128 - "trace_id".length();
}
