// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

/** Why a batch ended where it did. */
public enum BatchCut {
    /** The model takes one request at a time. */
    SINGLE,
    /** Nothing waited, and the request ran on the thread that brought it. */
    INLINE,
    /** A preferred size was reached, or the next request would have passed the largest of them. */
    PREFERRED_SIZE,
    /** It is as large as the model takes, or the next request would have made it larger. */
    MAX_SIZE,
    /** The next request has other shapes. */
    SHAPE,
    /** The oldest request had waited for the queue delay, and no preferred size had been reached. */
    DELAY,
    /** An instance was free and nothing else waited. */
    NO_MORE,
    /** A custom batching strategy ended it. */
    STRATEGY,
    /** One row for each place of the sequence batcher that had a request. */
    SEQUENCE,
    /** The scheduler is being closed. */
    CLOSING
}
