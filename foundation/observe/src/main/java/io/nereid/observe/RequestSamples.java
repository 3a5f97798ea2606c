// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.observe;

import java.util.List;

/**
 * Slow and failed requests of one version, kept as samples: times and ids, never tensors. Immutable.
 *
 * @param model the model's name
 * @param version the version
 * @param thresholdNanos a request that took at least this long is kept; {@link Long#MAX_VALUE} while that is not known
 * @param slow the latest slow requests, newest first
 * @param slowest the slowest requests since the version was loaded, slowest first
 * @param failed the latest failed requests, newest first
 */
public record RequestSamples(
        String model,
        long version,
        long thresholdNanos,
        List<SlowRequest> slow,
        List<SlowRequest> slowest,
        List<FailedRequest> failed) {
    /**
     * A slow request. Times are in nanoseconds.
     *
     * @param id the client's id for it; empty when the client gave none
     * @param endMillis when it ended, in milliseconds since 1970
     * @param totalNanos from its arrival to its end in the engine
     * @param queueNanos in the queue
     * @param inputNanos to gather the inputs
     * @param computeNanos in the model
     * @param outputNanos to split the outputs
     * @param rows its rows
     * @param cacheHit whether the response cache answered it
     */
    public record SlowRequest(
            String id,
            long endMillis,
            long totalNanos,
            long queueNanos,
            long inputNanos,
            long computeNanos,
            long outputNanos,
            int rows,
            boolean cacheHit) {}

    /**
     * A failed request.
     *
     * @param id the client's id for it; empty when the client gave none
     * @param endMillis when it ended, in milliseconds since 1970
     * @param totalNanos from its arrival to its end in the engine
     * @param code the name of the error code
     * @param message the beginning of the error's message
     */
    public record FailedRequest(String id, long endMillis, long totalNanos, String code, String message) {}
}
