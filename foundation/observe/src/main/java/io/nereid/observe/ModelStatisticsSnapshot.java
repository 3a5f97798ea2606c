// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.observe;

import java.util.List;
import java.util.Map;

/**
 * Figures of one version since it was loaded, as in Triton's statistics extension. Immutable.
 *
 * @param model the model's name
 * @param version the version
 * @param lastInferenceMillis when the last request came, in milliseconds since 1970; 0 when none has
 * @param inferences rows that were computed; what the response cache answered does not count
 * @param executions runs of the model
 * @param success requests that were answered, and their time from arrival to answer
 * @param failure requests that failed
 * @param queue waiting
 * @param computeInput gathering inputs
 * @param computeInfer running the model
 * @param computeOutput handing out outputs
 * @param cacheHit answered by the response cache: looking up
 * @param cacheMiss not answered by it: looking up and keeping
 * @param batches runs by number of rows, ascending
 * @param responses of decoupled models: figures by the answer's number, from "0"
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
     * A count and the time that all of them took together.
     *
     * @param count how many
     * @param nanos how long, in nanoseconds
     */
    public record Total(long count, long nanos) {
        /** None yet. */
        public static final Total ZERO = new Total(0, 0);
    }

    /**
     * Runs of one size.
     *
     * @param size rows
     * @param computeInput gathering inputs
     * @param computeInfer running the model
     * @param computeOutput handing out outputs
     */
    public record Batch(long size, Total computeInput, Total computeInfer, Total computeOutput) {}

    /**
     * The answers of one number of a decoupled model.
     *
     * @param computeInfer from the request's start, or the answer before, to this answer
     * @param computeOutput handing it out
     * @param success answers
     * @param failure errors
     * @param empty ends without an answer
     * @param cancel requests cancelled when it was this answer's turn
     */
    public record Response(
            Total computeInfer, Total computeOutput, Total success, Total failure, Total empty, Total cancel) {}

    /**
     * Memory of one kind.
     *
     * @param type {@code CPU} or {@code GPU}
     * @param id the device
     * @param bytes how much
     */
    public record Memory(String type, long id, long bytes) {}
}
