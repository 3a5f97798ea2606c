// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spi;

/** A handle on a request in flight. Thread-safe. */
public interface InferenceCall {
    /**
     * Cancels the request: a queued request is removed from its queue, a running one is interrupted where the
     * backend supports that. The sink still ends, with CANCELLED unless the response was faster. Idempotent.
     */
    void cancel();
}
