// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle;

import java.time.Duration;

/**
 * How a manager works. Immutable.
 *
 * @param policy in which order versions come and go
 * @param loadThreads loads (with their warm-ups) at once
 * @param unloadThreads unloads at once
 * @param memoryLimitBytes most bytes that all versions together may take, by their estimates; 0 for no limit
 * @param loadRetries how often a failed load is tried again; a {@code Loader.load} that failed is then called again
 * @param retryInterval time between two tries
 * @param forgetAfter how long an ended version stays in the index
 */
public record ManagerOptions(
        TransitionPolicy policy,
        int loadThreads,
        int unloadThreads,
        long memoryLimitBytes,
        int loadRetries,
        Duration retryInterval,
        Duration forgetAfter) {
    /** All new versions of a serving model or none, four loads at once, no memory limit, no retries, ended versions shown for ten minutes. */
    public static final ManagerOptions DEFAULT = new ManagerOptions(
            TransitionPolicy.ALL_OR_NOTHING, 4, 2, 0, 0, Duration.ofSeconds(30), Duration.ofMinutes(10));

    /** These options with another policy. */
    public ManagerOptions withPolicy(TransitionPolicy newPolicy) {
        return new ManagerOptions(
                newPolicy, loadThreads, unloadThreads, memoryLimitBytes, loadRetries, retryInterval, forgetAfter);
    }

    /** These options with another number of load threads. */
    public ManagerOptions withLoadThreads(int threads) {
        return new ManagerOptions(
                policy, threads, unloadThreads, memoryLimitBytes, loadRetries, retryInterval, forgetAfter);
    }

    /** These options with another memory limit. */
    public ManagerOptions withMemoryLimitBytes(long bytes) {
        return new ManagerOptions(policy, loadThreads, unloadThreads, bytes, loadRetries, retryInterval, forgetAfter);
    }

    /** These options with retries. */
    public ManagerOptions withRetries(int retries, Duration interval) {
        return new ManagerOptions(policy, loadThreads, unloadThreads, memoryLimitBytes, retries, interval, forgetAfter);
    }
}
