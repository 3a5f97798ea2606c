// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

import io.nereid.base.Code;
import io.nereid.base.ServingException;
import io.nereid.spi.InferenceJob;

/** What a queue answers to jobs that it does not run, in the words that clients know. Has no state. */
final class Refusals {
    private Refusals() {}

    /** The job's own deadline has passed. */
    static ServingException late(InferenceJob job) {
        return ServingException.of(Code.DEADLINE_EXCEEDED, prefix(job) + "Request timeout expired");
    }

    /** The job has waited as long as its queue lets it. */
    static ServingException timedOut(InferenceJob job) {
        return ServingException.of(Code.UNAVAILABLE, prefix(job) + "Request timeout expired");
    }

    static ServingException cancelled(InferenceJob job) {
        return ServingException.of(Code.CANCELLED, prefix(job) + "Request was cancelled by its client");
    }

    static ServingException full(InferenceJob job, String model, int waiting) {
        return ServingException.of(
                Code.UNAVAILABLE,
                prefix(job) + "Exceeds maximum queue size",
                "model '" + model + "' has " + waiting + " requests waiting; try again later");
    }

    static ServingException closed(InferenceJob job) {
        return ServingException.of(
                Code.UNAVAILABLE,
                prefix(job) + "Server is stopping, scheduler for model has stopped accepting new inference requests");
    }

    /** The request's id before the text, when there is one. */
    static String prefix(InferenceJob job) {
        String id = job.request().id();
        return id.isEmpty() ? "" : "[request id: " + id + "] ";
    }
}
