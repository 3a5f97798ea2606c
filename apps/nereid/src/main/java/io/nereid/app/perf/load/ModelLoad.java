// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.perf.load;

/** A running load. Used by one thread; its requests end on any. */
interface ModelLoad {
    /** Begins to send, on threads of its own where it needs them. */
    void start();

    /** Sends no more. Requests in flight end later. */
    void stop();

    /** Whether no request is in flight, and none will be sent. */
    boolean ended();
}
