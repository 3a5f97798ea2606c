// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

/**
 * What the server says about every queue. Immutable.
 *
 * @param maxQueueSize most jobs that may wait for a model whose configuration sets no limit
 * @param inline whether runs may happen on the submitting thread
 */
public record SchedulerOptions(int maxQueueSize, Inline inline) {
    /** Ten thousand waiting jobs, and models that prove tiny run on the caller's thread. */
    public static final SchedulerOptions DEFAULT = new SchedulerOptions(10_000, Inline.MEASURED);

    /**
     * When {@link Scheduler#submit} runs a job itself rather than hand it to the pool. It only ever does so when nothing
     * waits, an instance is free, no queue delay is configured, and answers need no ordering across instances.
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
