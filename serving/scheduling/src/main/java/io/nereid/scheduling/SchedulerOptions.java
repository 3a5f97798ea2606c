// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

import io.nereid.scheduling.execution.RateLimiter;
import org.jspecify.annotations.Nullable;

/**
 * Settings of a scheduler that are not part of the model's configuration. Immutable, except for the strategy and the
 * rate limiter that it refers to.
 *
 * @param maxQueueSize maximum number of queued jobs of a model whose configuration sets no limit
 * @param inline whether runs may execute on the submitting thread
 * @param strategy the custom batching strategy of the model, which its scheduler closes at the end; null for none
 * @param limiter the rate limiter that all models share; null for unlimited runs
 * @param delayScheduler for tests: runs start only after so many jobs have been queued at once; 0 for off (Triton:
 *     {@code TRITONSERVER_DELAY_SCHEDULER})
 * @param backlogDelayScheduler for tests: like {@code delayScheduler}, for the backlog of the sequence batcher (Triton:
 *     {@code TRITONSERVER_BACKLOG_DELAY_SCHEDULER})
 */
public record SchedulerOptions(
        int maxQueueSize,
        Inline inline,
        @Nullable BatchStrategy strategy,
        @Nullable RateLimiter limiter,
        int delayScheduler,
        int backlogDelayScheduler) {
    /** At most 10,000 queued jobs; models whose measured runs are very short run on the submitting thread. */
    public static final SchedulerOptions DEFAULT = new SchedulerOptions(10_000, Inline.MEASURED);

    /** Options without a strategy, a rate limiter or delays. */
    public SchedulerOptions(int maxQueueSize, Inline inline) {
        this(maxQueueSize, inline, null, null, 0, 0);
    }

    /** Returns these options with a custom batching strategy. */
    public SchedulerOptions withStrategy(@Nullable BatchStrategy newStrategy) {
        return new SchedulerOptions(maxQueueSize, inline, newStrategy, limiter, delayScheduler, backlogDelayScheduler);
    }

    /** Returns these options with a rate limiter. */
    public SchedulerOptions withLimiter(@Nullable RateLimiter newLimiter) {
        return new SchedulerOptions(maxQueueSize, inline, strategy, newLimiter, delayScheduler, backlogDelayScheduler);
    }

    /** Returns these options with the delays for tests. */
    public SchedulerOptions delayed(int untilQueued, int untilBacklog) {
        return new SchedulerOptions(maxQueueSize, inline, strategy, limiter, untilQueued, untilBacklog);
    }

    /**
     * When {@code Scheduler.submit} runs a job on the calling thread instead of a pool thread. This saves the thread
     * switch, which costs more than the run of a very small model. It happens only when the queue is empty, an instance
     * is free, and neither a queue delay nor a batching strategy is configured.
     */
    public enum Inline {
        /** Never: the submitting thread must not compute. */
        NEVER,
        /** While measured runs take a few tens of microseconds. */
        MEASURED,
        /** Always: the model is known to have very short runs. */
        ALWAYS
    }
}
