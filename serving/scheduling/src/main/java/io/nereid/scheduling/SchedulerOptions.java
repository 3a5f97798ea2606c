// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

import io.nereid.scheduling.admission.AdmissionControl;
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
 * @param admission what refuses jobs of models whose configuration does not limit the queue; null for nothing
 */
public record SchedulerOptions(
        int maxQueueSize,
        InlinePolicy inline,
        @Nullable BatchStrategy strategy,
        @Nullable RateLimiter limiter,
        int delayScheduler,
        int backlogDelayScheduler,
        @Nullable AdmissionControl admission) {
    /** At most 10,000 queued jobs; models whose measured runs are very short run on the submitting thread. */
    public static final SchedulerOptions DEFAULT = new SchedulerOptions(10_000, InlinePolicy.MEASURED);

    /** Options without a strategy, a rate limiter or delays. */
    public SchedulerOptions(int maxQueueSize, InlinePolicy inline) {
        this(maxQueueSize, inline, null, null, 0, 0, null);
    }

    /** Returns these options with another policy for runs on the submitting thread. */
    public SchedulerOptions withInline(InlinePolicy newInline) {
        return new SchedulerOptions(
                maxQueueSize, newInline, strategy, limiter, delayScheduler, backlogDelayScheduler, admission);
    }

    /** Returns these options with a custom batching strategy. */
    public SchedulerOptions withStrategy(@Nullable BatchStrategy newStrategy) {
        return new SchedulerOptions(
                maxQueueSize, inline, newStrategy, limiter, delayScheduler, backlogDelayScheduler, admission);
    }

    /** Returns these options with a rate limiter. */
    public SchedulerOptions withLimiter(@Nullable RateLimiter newLimiter) {
        return new SchedulerOptions(
                maxQueueSize, inline, strategy, newLimiter, delayScheduler, backlogDelayScheduler, admission);
    }

    /** Returns these options with the delays for tests. */
    public SchedulerOptions delayed(int untilQueued, int untilBacklog) {
        return new SchedulerOptions(maxQueueSize, inline, strategy, limiter, untilQueued, untilBacklog, admission);
    }

    /** Returns these options with an admission. */
    public SchedulerOptions withAdmission(@Nullable AdmissionControl newAdmission) {
        return new SchedulerOptions(
                maxQueueSize, inline, strategy, limiter, delayScheduler, backlogDelayScheduler, newAdmission);
    }
}
