// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.tune;

/**
 * What was measured of a configuration at one load. Immutable.
 *
 * @param variant the configuration
 * @param concurrency requests in flight at the same time
 * @param rate successful requests per second
 * @param latencyMillis the latency of the objective, in milliseconds; NaN without a successful request
 * @param failed failed requests
 */
record VariantResult(ConfigVariant variant, int concurrency, double rate, double latencyMillis, long failed) {
    /** Whether every request succeeded, within the limit. */
    boolean keeps(double limitMillis) {
        return failed == 0 && latencyMillis <= limitMillis;
    }
}
