// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

/** Why a batch was closed with the jobs that it has. Immutable. */
public enum BatchCloseReason {
    /** The model takes one request at a time. */
    SINGLE,
    /** The queue was empty, and the request ran on the submitting thread. */
    INLINE,
    /** A preferred size was reached, or the next request would have exceeded the largest preferred size. */
    PREFERRED_SIZE,
    /** The batch has the model's maximum size, or the next request would have exceeded it. */
    MAX_SIZE,
    /** The batch has the size that the latency objective of the model allows, or the next request would have exceeded it. */
    OBJECTIVE,
    /** The next request has other shapes or inputs. */
    SHAPE,
    /** Requests of other lengths waited, but to pad with them would have taken longer than another run. */
    LENGTH,
    /** The oldest request had waited for the maximum queue delay, and no preferred size was reached. */
    DELAY,
    /** An instance was free, no other request waited, and none was expected in time. */
    NO_MORE,
    /** A custom batching strategy closed it. */
    STRATEGY,
    /** A batch of the direct sequence batcher: one row for each slot up to the last one with a request. */
    SEQUENCE,
    /** The scheduler is being closed. */
    CLOSING
}
