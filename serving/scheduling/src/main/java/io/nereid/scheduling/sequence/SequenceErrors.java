// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.sequence;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.scheduling.batcher.QueueErrors;
import io.nereid.spi.InferenceJob;

/**
 * The errors of requests that the sequence batcher rejects or removes, in addition to {@link QueueErrors}. Immutable.
 */
public final class SequenceErrors {
    private final String model;

    SequenceErrors(String model) {
        this.model = model;
    }

    public ServingException batchSize() {
        return ServingException.invalidArgument("inference request to model '" + model
                + "' must specify batch-size 1 due to requirements of sequence batcher");
    }

    public ServingException noId() {
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
                "model '" + model + "' rescheduled a request, but its sequences are not iterative",
                "set iterative_sequence: true in its sequence_batching");
    }

    /** For requests that follow a cancelled or late request of the same sequence. */
    static ServingException broken(InferenceJob job) {
        return ServingException.of(
                ErrorCode.CANCELLED,
                QueueErrors.prefix(job) + "Request was cancelled with an earlier request of its sequence");
    }

    static ServingException backlogTimeout(InferenceJob job) {
        return ServingException.of(
                ErrorCode.UNAVAILABLE,
                QueueErrors.prefix(job) + "timeout of the corresponding sequence has been expired");
    }

    /** Returns a correlation id as text; numbers are unsigned. */
    static String show(Object id) {
        return id instanceof Long n ? Long.toUnsignedString(n) : id.toString();
    }
}
