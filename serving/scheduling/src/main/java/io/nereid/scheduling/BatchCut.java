// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

/** Why a batch ended where it did. */
public enum BatchCut {
    /** The model takes one request at a time. */
    SINGLE,
    /** Nothing waited: the request ran on the thread that brought it. */
    INLINE,
    /** A preferred size was reached. */
    PREFERRED_SIZE,
    /** The next request would have made it larger than the model takes. */
    MAX_SIZE,
    /** The next request has other shapes. */
    SHAPE,
    /** The oldest request had waited for the queue delay. */
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
