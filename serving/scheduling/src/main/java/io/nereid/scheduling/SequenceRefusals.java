// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.InferenceJob;

/** What the sequence batcher says when it refuses or drops a request, beside {@link Refusals}. Immutable. */
final class SequenceRefusals {
    private final String model;

    SequenceRefusals(String model) {
        this.model = model;
    }

    ServingException batchSize() {
        return ServingException.invalidArgument("inference request to model '" + model
                + "' must specify batch-size 1 due to requirements of sequence batcher");
    }

    ServingException noId() {
        return ServingException.invalidArgument(
                "inference request to model '" + model + "' must specify a non-zero or non-empty correlation ID");
    }

    ServingException notStarted(Object id) {
        return ServingException.invalidArgument("inference request for sequence " + show(id) + " to model '" + model
                + "' must specify the START flag on the first request of the sequence");
    }

    ServingException notIterative() {
        return ServingException.of(
                ErrorCode.FAILED_PRECONDITION,
                "model '" + model + "' asks to see a request again, but its sequences are not iterative",
                "set iterative_sequence: true in its sequence_batching");
    }

    /** For what is queued behind a request that was cancelled or came too late. */
    static ServingException broken(InferenceJob job) {
        return ServingException.of(
                ErrorCode.CANCELLED,
                Refusals.prefix(job) + "Request was cancelled with an earlier request of its sequence");
    }

    static ServingException backlogTimeout(InferenceJob job) {
        return ServingException.of(
                ErrorCode.UNAVAILABLE, Refusals.prefix(job) + "timeout of the corresponding sequence has been expired");
    }

    /** An id as people write it. */
    static String show(Object id) {
        return id instanceof Long n ? Long.toUnsignedString(n) : id.toString();
    }
}
