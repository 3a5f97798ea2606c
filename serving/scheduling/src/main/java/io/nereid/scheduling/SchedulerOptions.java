// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

import org.jspecify.annotations.Nullable;

/**
 * What is said about a queue beside its model's configuration. Immutable, but for the strategy and the limiter.
 *
 * @param maxQueueSize most jobs that may wait for a model whose configuration sets no limit
 * @param inline whether runs may happen on the submitting thread
 * @param strategy the model's own batching rule, which its scheduler closes at the end; null for none
 * @param limiter grants runs their resources, across models; null when runs are not limited that way
 * @param delayScheduler for tests: nothing runs before so many jobs have waited at once; 0 for off
 * @param backlogDelayScheduler for tests: as {@code delayScheduler}, for the backlog of the sequence batcher
 */
public record SchedulerOptions(
        int maxQueueSize,
        Inline inline,
        @Nullable BatchStrategy strategy,
        @Nullable RateLimiter limiter,
        int delayScheduler,
        int backlogDelayScheduler) {
    /** Ten thousand waiting jobs, and models that prove tiny run on the caller's thread. */
    public static final SchedulerOptions DEFAULT = new SchedulerOptions(10_000, Inline.MEASURED);

    /** No strategy, no limiter, no delays. */
    public SchedulerOptions(int maxQueueSize, Inline inline) {
        this(maxQueueSize, inline, null, null, 0, 0);
    }

    /** These options with a strategy. */
    public SchedulerOptions withStrategy(@Nullable BatchStrategy newStrategy) {
        return new SchedulerOptions(maxQueueSize, inline, newStrategy, limiter, delayScheduler, backlogDelayScheduler);
    }

    /** These options with a limiter. */
    public SchedulerOptions withLimiter(@Nullable RateLimiter newLimiter) {
        return new SchedulerOptions(maxQueueSize, inline, strategy, newLimiter, delayScheduler, backlogDelayScheduler);
    }

    /** These options with the delays for tests. */
    public SchedulerOptions delayed(int untilQueued, int untilBacklog) {
        return new SchedulerOptions(maxQueueSize, inline, strategy, limiter, untilQueued, untilBacklog);
    }

    /**
     * When {@link Scheduler#submit} runs a job itself rather than hand it to the pool. It only ever does so when nothing
     * waits, an instance is free, and neither a queue delay nor a strategy is configured.
     */
    public enum Inline {
        /** Never: the submitting thread must not compute. */
        NEVER,
        /** While measured runs take a few tens of microseconds. */
        MEASURED,
        /** Always: the model is known to be tiny. */
        ALWAYS
    }
}
