// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spi.config;

import java.time.Duration;
import java.util.List;
import java.util.Map;

/**
 * Settings of the dynamic batcher. Immutable.
 *
 * @param preferredSizes batch sizes to aim for, ascending; empty for the maximum only
 * @param maxQueueDelay how long a request may wait for further requests to fill the batch
 * @param preserveOrdering whether responses are sent in the order of the requests
 * @param priorityLevels number of priority levels, where 1 is served first; 0 for one queue without levels
 * @param defaultPriority the level of a request that has none, or one that does not exist
 * @param levelQueues limits of single levels; the other levels use {@link ModelConfig#queue}
 * @param batchSizePolicy padding and splitting of batches
 */
public record DynamicBatching(
        List<Integer> preferredSizes,
        Duration maxQueueDelay,
        boolean preserveOrdering,
        long priorityLevels,
        long defaultPriority,
        Map<Long, QueuePolicy> levelQueues,
        BatchSizePolicy batchSizePolicy) {
    /**
     * The parameter of a model ({@link ModelConfig#parameters}) that switches the anticipation of requests {@code on}, which
     * is the default, or {@code off}.
     */
    public static final String ANTICIPATION = "batching_anticipation";

    /** Batches the requests that are waiting, without any delay. */
    public static final DynamicBatching EAGER = new DynamicBatching(List.of(), Duration.ZERO, false);

    /** Settings without priority levels. */
    public DynamicBatching(List<Integer> preferredSizes, Duration maxQueueDelay, boolean preserveOrdering) {
        this(preferredSizes, maxQueueDelay, preserveOrdering, 0, 0, Map.of());
    }

    /** Settings without padding and splitting. */
    public DynamicBatching(
            List<Integer> preferredSizes,
            Duration maxQueueDelay,
            boolean preserveOrdering,
            long priorityLevels,
            long defaultPriority,
            Map<Long, QueuePolicy> levelQueues) {
        this(
                preferredSizes,
                maxQueueDelay,
                preserveOrdering,
                priorityLevels,
                defaultPriority,
                levelQueues,
                BatchSizePolicy.NONE);
    }

    /** Returns these settings with other padding and splitting. */
    public DynamicBatching withBatchSizePolicy(BatchSizePolicy newPolicy) {
        return new DynamicBatching(
                preferredSizes,
                maxQueueDelay,
                preserveOrdering,
                priorityLevels,
                defaultPriority,
                levelQueues,
                newPolicy);
    }
}
