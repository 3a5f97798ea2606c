// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

/** A job of an iterative sequence, as {@link BatchRunner#run} gets it. */
public interface Reschedulable {
    /**
     * Ends the job for this run and brings it to a later one; called instead of {@code complete} or {@code fail}, on any
     * thread. When its client has gone away, it is over instead. When the model's sequences are not iterative, it fails
     * with FAILED_PRECONDITION.
     */
    void reschedule();
}
