// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.options;

/**
 * Delayed start of queues, for tests that need predictable batches. Immutable.
 *
 * @param scheduler a model's first run waits until this many requests are queued; 0 for no delay
 * @param backlog the same for the backlog of the sequence batcher
 */
public record DelayOptions(int scheduler, int backlog) {
    /** No delay. */
    public static final DelayOptions NONE = new DelayOptions(0, 0);
}
