// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spi.config;

import java.time.Duration;
import java.util.List;

/**
 * Settings of the sequence batcher. Immutable.
 *
 * @param strategy how sequences share the instances
 * @param maxIdle how long a sequence may be idle before it ends
 * @param controls control tensors, which show the model the position of a request in its sequence
 * @param states implicit state tensors, which the server carries from one request of a sequence to the next
 * @param iterative whether the model may reschedule a request
 */
public record SequenceBatching(
        Strategy strategy,
        Duration maxIdle,
        List<SequenceControl> controls,
        List<SequenceStateConfig> states,
        boolean iterative) {
    /** How sequences share the instances. */
    public sealed interface Strategy {}

    /**
     * Direct strategy: every sequence occupies a slot (a row of the batch) of one instance. Immutable.
     *
     * @param maxQueueDelay how long a batch may wait for more of its slots to have a request
     * @param minimumSlotUtilization fraction of the slots, 0 to 1, from which on a batch runs without waiting
     */
    public record Direct(Duration maxQueueDelay, double minimumSlotUtilization) implements Strategy {}

    /**
     * Oldest strategy: every sequence is bound to one instance, which batches requests of different sequences,
     * oldest first. Immutable.
     *
     * @param maxCandidates the most sequences of one instance at once; 0 for as many as the batch has rows
     * @param preferredSizes as in {@link DynamicBatching}
     * @param maxQueueDelay as in {@link DynamicBatching}
     * @param preserveOrdering as in {@link DynamicBatching}
     */
    public record Oldest(
            int maxCandidates, List<Integer> preferredSizes, Duration maxQueueDelay, boolean preserveOrdering)
            implements Strategy {}
}
