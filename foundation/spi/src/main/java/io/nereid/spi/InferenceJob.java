// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spi;

import io.nereid.base.ServingException;
import io.nereid.tensor.Tensor;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * A validated request in a servable's queue. The servable that has accepted it ends it exactly once with
 * {@link #complete} or {@link #fail} and does not touch its inputs afterwards. The methods that record timestamps are
 * called only by the thread that currently processes the job; {@link #cancelled} and {@link #onCancel} are
 * thread-safe.
 */
public interface InferenceJob {
    /**
     * The request. Its inputs are in the model's order, without optional inputs that the client left out; shapes include
     * the batch dimension where the model is batched.
     */
    InferenceRequest request();

    /** Number of rows: the first dimension of the inputs of a batched model, else 1. */
    int batchSize();

    /** The time after which the response is useless, in nanoseconds of the server's clock. */
    default long deadlineNanos() {
        return request().deadlineNanos();
    }

    /**
     * Whether the client has cancelled the request; a queue then drops the job with CANCELLED. Jobs without a client
     * return false.
     */
    default boolean cancelled() {
        return false;
    }

    /**
     * Whether a queue may refuse the job because of overload. False for a part of a request that has been accepted, such
     * as a step of an ensemble.
     */
    default boolean refusable() {
        return true;
    }

    /**
     * Registers the action that runs when the client cancels the request; it runs at once when the client already has.
     * Null removes the previous action.
     */
    default void onCancel(@Nullable Runnable action) {}

    /**
     * Whether the job takes an output in the memory of a GPU, for a reader that runs there. False for all that reads outputs on
     * processors, such as clients, caches and sequences.
     *
     * @param output the name of the output
     * @param device the ordinal of the GPU
     */
    default boolean keepsOnDevice(String output, int device) {
        return false;
    }

    /** Records that the job has entered a queue. */
    default void queued(long nanos) {}

    /** When the job entered the queue, in nanoseconds of the server's clock; 0 for a job that does not record it. */
    default long queuedNanos() {
        return 0;
    }

    /** Records that the job's batch has left the queue and its inputs are being gathered. */
    default void started(long nanos) {}

    /** Records that the model ran from {@code from} to {@code to} on a batch of {@code batchSize} rows. */
    default void ran(long from, long to, int batchSize) {}

    /**
     * Sends one response of a decoupled model, after which more may follow. The job owns the outputs; it keeps its
     * inputs. Shapes include the batch dimension where the model is batched.
     */
    void respond(List<Tensor> outputs, Map<String, Object> parameters);

    /**
     * Sends the last response and ends the job, which then closes its inputs. Without outputs it only ends the stream
     * of a decoupled model.
     *
     * @param outputs the requested outputs, or all outputs, in any order, with the batch dimension where the model is
     *     batched; the job owns them from here on
     * @param parameters response parameters; values are Boolean, Long, Double or String
     */
    void complete(List<Tensor> outputs, Map<String, Object> parameters);

    /** Ends the job with an error and closes its inputs. */
    void fail(ServingException e);
}
