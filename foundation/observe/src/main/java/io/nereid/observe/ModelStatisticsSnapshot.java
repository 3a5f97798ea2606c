// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.observe;

import java.util.List;
import java.util.Map;

/**
 * The statistics of one version since it was loaded, as in Triton's statistics extension. Immutable: a copy of the
 * counters at one moment, which were not read atomically together.
 *
 * @param model the model's name
 * @param version the version
 * @param lastInferenceMillis arrival of the last request, in milliseconds since 1970; 0 without a request
 * @param inferences rows that were computed, without those that the response cache answered
 * @param executions runs of the model
 * @param success successful requests, and their time from arrival to response
 * @param failure failed requests
 * @param queue time in the queue
 * @param computeInput time to gather inputs
 * @param computeInfer time to run the model
 * @param computeOutput time to split outputs
 * @param cacheHit requests answered by the response cache: time of the lookup
 * @param cacheMiss requests not answered by it: time of the lookup and the insertion
 * @param batches runs by number of rows, ascending
 * @param responses for decoupled models: statistics by the response's index, from "0"
 * @param memory memory held
 */
public record ModelStatisticsSnapshot(
        String model,
        long version,
        long lastInferenceMillis,
        long inferences,
        long executions,
        Total success,
        Total failure,
        Total queue,
        Total computeInput,
        Total computeInfer,
        Total computeOutput,
        Total cacheHit,
        Total cacheMiss,
        List<Batch> batches,
        Map<String, Response> responses,
        List<Memory> memory) {
    /**
     * A count and a total duration.
     *
     * @param count number of events
     * @param nanos sum of their durations, in nanoseconds
     */
    public record Total(long count, long nanos) {
        /** No events. */
        public static final Total ZERO = new Total(0, 0);
    }

    /**
     * Statistics of the runs of one batch size.
     *
     * @param size number of rows
     * @param computeInput time to gather inputs
     * @param computeInfer time to run the model
     * @param computeOutput time to split outputs
     */
    public record Batch(long size, Total computeInput, Total computeInfer, Total computeOutput) {}

    /**
     * Statistics of the responses of one index of a decoupled model.
     *
     * @param computeInfer time from the request's start, or from the previous response, to this one
     * @param computeOutput time to deliver the response
     * @param success responses
     * @param failure errors
     * @param empty ends of the stream without a response
     * @param cancel requests that were cancelled while this response was due
     */
    public record Response(
            Total computeInfer, Total computeOutput, Total success, Total failure, Total empty, Total cancel) {}

    /**
     * Memory of one kind.
     *
     * @param type {@code CPU} or {@code GPU}
     * @param id the device
     * @param bytes size in bytes
     */
    public record Memory(String type, long id, long bytes) {}
}
