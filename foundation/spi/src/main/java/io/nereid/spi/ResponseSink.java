// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spi;

import io.nereid.base.ServingException;

/**
 * Receives the responses to one request: any number of {@link #next} calls, of which the final one has {@code last}
 * true, or one {@link #fail}; no call follows. A last response without outputs carries no result: it only ends the
 * stream of a decoupled model. Called on any thread, one call at a time. Implementations must not block, because the
 * caller is often the thread that runs the model.
 *
 * <pre>{@code
 * final class FutureSink implements ResponseSink {             // for models with one response
 *     final CompletableFuture<InferenceResponse> future = new CompletableFuture<>();
 *
 *     public void next(InferenceResponse response, boolean last) {
 *         future.complete(response);                            // the consumer closes it
 *     }
 *
 *     public void fail(ServingException e) {
 *         future.completeExceptionally(e);
 *     }
 * }
 * }</pre>
 */
public interface ResponseSink {
    /**
     * Receives one response. The sink owns its outputs and closes them when it has read them.
     *
     * @param last whether no further response follows
     */
    void next(InferenceResponse response, boolean last);

    /** The request has failed; no further call follows. */
    void fail(ServingException e);
}
