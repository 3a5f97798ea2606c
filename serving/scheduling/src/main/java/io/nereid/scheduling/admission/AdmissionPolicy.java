// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.admission;

/**
 * Decides which requests a queue accepts, and how long an accepted one may wait. The queue reports what happens to it,
 * in the order in which it happens, and enforces the decisions; it knows nothing about their reasons. A policy belongs
 * to one queue, whose lock guards it. Its methods are quick and make no calls.
 *
 * <p>Times are nanoseconds of the queue's clock; {@link #NEVER} is a time that does not come.
 */
public interface AdmissionPolicy {
    /** No deadline, no limit. */
    long NEVER = Long.MAX_VALUE;

    /**
     * A request arrives that may be refused; returns whether it is accepted.
     *
     * @param ahead requests that will run before it
     * @param deadline of the request; {@link #NEVER} for none
     */
    boolean admits(long now, int ahead, long deadline);

    /**
     * Requests were taken from the queue for a run.
     *
     * @param waited how long the first of them has waited
     * @param left requests that still wait
     * @return whether the queue must now refuse those waiting requests that exceed {@link #keep}
     */
    boolean taken(long now, int count, long waited, int left);

    /** Requests were removed from the queue without a run: cancelled, timed out or refused. */
    void removed(int count);

    /** A run has ended. */
    void ran(long nanos);

    /** Returns the most requests that may still wait after {@link #taken} has returned true, the newest ones. */
    int keep();

    /** Returns how long an accepted request may wait; {@link #NEVER} while there is no limit. */
    long waitLimit();

    /** Returns the time after which a refused request may be sent again, in nanoseconds. */
    long retryNanos();

    /** Returns whether requests are refused now, for the log. */
    boolean refuses();

    /** Returns for the log why requests are refused, as the end of a sentence about the queue. */
    String reason();
}
