// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spi;

import io.nereid.base.ServingException;
import io.nereid.tensor.Tensor;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * One validated request on its way through a servable. Whoever runs it ends it exactly once with {@link #complete} or
 * {@link #fail}, and afterwards never touches its inputs. Marks are set by the one thread that has the job.
 */
public interface InferenceJob {
    /** The request; inputs are in the model's order, optional ones left out. */
    InferenceRequest request();

    /** Rows: the first dimension of a batched model's inputs, else 1. */
    int batchSize();

    /** When waiting is pointless, in nanoseconds of the server's clock. */
    default long deadlineNanos() {
        return request().deadlineNanos();
    }

    /** Whether the client has gone away; a queue drops such a job with CANCELLED. By default there is no client. */
    default boolean cancelled() {
        return false;
    }

    /** Runs {@code action} when the client goes away, at once if it has; null takes an earlier action back. */
    default void onCancel(@Nullable Runnable action) {}

    /** The job waits from now on. */
    default void queued(long nanos) {}

    /** The job's batch begins to be gathered now. */
    default void started(long nanos) {}

    /** The model ran from {@code from} to {@code to} on a batch of {@code batchSize} rows. */
    default void ran(long from, long to, int batchSize) {}

    /** One answer of a decoupled model, as {@link #complete}, but more may follow. The job keeps its inputs. */
    void respond(List<Tensor> outputs, Map<String, Object> parameters);

    /**
     * The last answer: the requested outputs, or all, in any order; the job owns them from here on. The job drops its
     * inputs. Without outputs it says that nothing more follows (decoupled models only).
     */
    void complete(List<Tensor> outputs, Map<String, Object> parameters);

    /** The job came to nothing. The job drops its inputs. */
    void fail(ServingException e);
}
