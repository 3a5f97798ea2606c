// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.InferenceJob;

/**
 * What a queue answers to jobs that it does not run, in the words that clients know. Has no state.
 *
 * <p>A deadline belongs to a job, not to its batch, so one that has passed is DEADLINE_EXCEEDED whatever else is in the
 * batch, as gRPC clients expect; TensorFlow Serving's RESOURCE_EXHAUSTED for a batch of which every job is late would
 * tell its client to send less.
 */
final class Refusals {
    private Refusals() {}

    /** The job's own deadline has passed. */
    static ServingException late(InferenceJob job) {
        return ServingException.of(ErrorCode.DEADLINE_EXCEEDED, prefix(job) + "Request timeout expired");
    }

    /** The job has waited as long as its queue lets it. */
    static ServingException timedOut(InferenceJob job) {
        return ServingException.of(ErrorCode.UNAVAILABLE, prefix(job) + "Request timeout expired");
    }

    static ServingException cancelled(InferenceJob job) {
        return ServingException.of(ErrorCode.CANCELLED, prefix(job) + "Request was cancelled by its client");
    }

    static ServingException full(InferenceJob job, String model, int waiting) {
        return ServingException.of(
                ErrorCode.UNAVAILABLE,
                prefix(job) + "Exceeds maximum queue size",
                "model '" + model + "' has " + waiting + " requests waiting; try again later");
    }

    /** The queue holds as many batches as it may. */
    static ServingException enqueued(InferenceJob job, int batches, int most) {
        return ServingException.of(
                ErrorCode.UNAVAILABLE,
                prefix(job)
                        + "The batch scheduling queue to which this task was submitted is full; currently " + batches
                        + " batches enqueued and max_enqueued_batches is " + most);
    }

    /** The request has more rows than the model takes, even in parts. */
    static ServingException tooLarge(InferenceJob job, int most) {
        return ServingException.invalidArgument(
                prefix(job) + "Task size " + job.batchSize() + " is larger than maximum input batch size " + most);
    }

    static ServingException closed(InferenceJob job) {
        return ServingException.of(
                ErrorCode.UNAVAILABLE,
                prefix(job) + "Server is stopping, scheduler for model has stopped accepting new inference requests");
    }

    /** The request's id before the text, when there is one. */
    static String prefix(InferenceJob job) {
        String id = job.request().id();
        return id.isEmpty() ? "" : "[request id: " + id + "] ";
    }
}
