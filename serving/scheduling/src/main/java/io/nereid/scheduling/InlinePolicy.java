// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

/**
 * When {@link Scheduler#submit} runs a job on the calling thread instead of a pool thread. This saves the thread
 * switch, which costs more than the run of a very small model. It happens only when the queue is empty, an instance is
 * free, and neither a queue delay nor a batching strategy is configured. Immutable.
 */
public enum InlinePolicy {
    /** Never: the submitting thread must not compute. */
    NEVER,
    /** While measured runs take a few tens of microseconds. */
    MEASURED,
    /** Always: the model is known to have very short runs. */
    ALWAYS
}
