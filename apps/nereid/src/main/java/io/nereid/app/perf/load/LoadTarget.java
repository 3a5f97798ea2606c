// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.perf.load;

import org.jspecify.annotations.Nullable;

/** A model that requests are sent to. Thread-safe. */
public interface LoadTarget extends AutoCloseable {
    /**
     * Sends a request; the end of it is reported once, on any thread, the calling one included.
     *
     * @param index which of the samples is sent, in turn: any number from 0
     */
    void send(int index, Completion completion);

    /** Whether {@link #send} may run the model on the calling thread, so that requests in parallel need threads of their own. */
    boolean runsOnCaller();

    /** The statistics of the model, as the server counts them; null where they cannot be read. */
    @Nullable ServerTimes serverTimes();

    @Override
    void close();

    /** Receives the end of a request. */
    @FunctionalInterface
    interface Completion {
        /**
         * Reports the end.
         *
         * @param failure why the request failed; null for success
         */
        void done(@Nullable String failure);
    }
}
