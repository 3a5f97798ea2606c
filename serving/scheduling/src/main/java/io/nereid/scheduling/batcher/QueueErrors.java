// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.batcher;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.scheduling.admission.QueueAdmission;
import io.nereid.spi.InferenceJob;

/**
 * The errors of jobs that a queue rejects or removes, with the messages of Triton and TensorFlow Serving, which clients
 * match on. Has no state.
 *
 * <p>A passed deadline is DEADLINE_EXCEEDED, as gRPC clients expect, whatever else is in the batch. TensorFlow Serving
 * returns RESOURCE_EXHAUSTED when every job of a batch is late, which would ask the client to send less.
 */
public final class QueueErrors {
    private QueueErrors() {}

    /** The job's own deadline has passed. */
    public static ServingException late(InferenceJob job) {
        return ServingException.of(ErrorCode.DEADLINE_EXCEEDED, prefix(job) + "Request timeout expired");
    }

    /** The job has waited longer than the queue policy allows. */
    static ServingException timedOut(InferenceJob job) {
        return ServingException.of(ErrorCode.UNAVAILABLE, prefix(job) + "Request timeout expired");
    }

    /**
     * The error of a job that was removed while it waited, by its state.
     *
     * @param queued the jobs in the queue
     * @param retryNanos the time after which a refused job may be sent again
     */
    static ServingException removed(QueuedJob e, String model, int queued, long retryNanos) {
        return switch (e.state) {
            case TIMED_OUT -> timedOut(e.job);
            case REFUSED -> QueueAdmission.refusal(prefix(e.job), model, queued, retryNanos);
            default -> late(e.job);
        };
    }

    public static ServingException cancelled(InferenceJob job) {
        return ServingException.of(ErrorCode.CANCELLED, prefix(job) + "Request was cancelled by its client");
    }

    public static ServingException full(InferenceJob job, String model, int waiting) {
        return ServingException.of(
                ErrorCode.UNAVAILABLE,
                prefix(job) + "Exceeds maximum queue size",
                "model '" + model + "' has " + waiting + " requests waiting; try again later");
    }

    /** The queue holds the maximum number of batches. */
    static ServingException enqueued(InferenceJob job, int batches, int most) {
        return ServingException.of(
                ErrorCode.UNAVAILABLE,
                prefix(job)
                        + "The batch scheduling queue to which this task was submitted is full; currently " + batches
                        + " batches enqueued and max_enqueued_batches is " + most);
    }

    /** The request has more rows than allowed, even for requests that are split. */
    static ServingException tooLarge(InferenceJob job, int most) {
        return ServingException.invalidArgument(
                prefix(job) + "Task size " + job.batchSize() + " is larger than maximum input batch size " + most);
    }

    public static ServingException closed(InferenceJob job) {
        return ServingException.of(
                ErrorCode.UNAVAILABLE,
                prefix(job) + "Server is stopping, scheduler for model has stopped accepting new inference requests");
    }

    /** Returns the prefix with the request id; empty if the request has no id. */
    public static String prefix(InferenceJob job) {
        String id = job.request().id();
        return id.isEmpty() ? "" : "[request id: " + id + "] ";
    }
}
