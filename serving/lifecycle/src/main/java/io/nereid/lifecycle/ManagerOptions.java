// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle;

import java.time.Duration;

/**
 * How a manager works. Immutable.
 *
 * @param policy in which order versions come and go
 * @param loadThreads loads (with their warm-ups) at once
 * @param initialLoadThreads loads at once until models have settled for the first time ({@link Manager#settled}), if that
 *     is more; 0 for as many as later
 * @param loadNiceness by how much loads give way to serving, as Linux niceness, 0 (not at all) to 19. Only where the
 *     process may change the niceness of its threads back; else without effect
 * @param unloadThreads unloads at once
 * @param memoryLimitBytes most bytes that all versions together may take, by their estimates; 0 for no limit
 * @param loadRetries how often a failed load is tried again; a {@code Loader.load} that failed is then called again. What
 *     failed as INVALID_ARGUMENT, UNIMPLEMENTED or OUT_OF_RANGE is not: it would fail again
 * @param retryInterval time between two tries
 * @param forgetAfter how long an ended version stays in the index
 */
public record ManagerOptions(
        TransitionPolicy policy,
        int loadThreads,
        int initialLoadThreads,
        int loadNiceness,
        int unloadThreads,
        long memoryLimitBytes,
        int loadRetries,
        Duration retryInterval,
        Duration forgetAfter) {
    /**
     * All new versions of a serving model or none, four loads at once, also initially, that give way to serving, no memory
     * limit, no retries, ended versions shown for ten minutes.
     */
    public static final ManagerOptions DEFAULT = new ManagerOptions(
            TransitionPolicy.ALL_OR_NOTHING, 4, 0, 10, 2, 0, 0, Duration.ofSeconds(30), Duration.ofMinutes(10));

    /** These options with another policy. */
    public ManagerOptions withPolicy(TransitionPolicy newPolicy) {
        return new ManagerOptions(
                newPolicy,
                loadThreads,
                initialLoadThreads,
                loadNiceness,
                unloadThreads,
                memoryLimitBytes,
                loadRetries,
                retryInterval,
                forgetAfter);
    }

    /** These options with another number of load threads. */
    public ManagerOptions withLoadThreads(int threads) {
        return new ManagerOptions(
                policy,
                threads,
                initialLoadThreads,
                loadNiceness,
                unloadThreads,
                memoryLimitBytes,
                loadRetries,
                retryInterval,
                forgetAfter);
    }

    /** These options with more load threads until models have settled for the first time. */
    public ManagerOptions withInitialLoadThreads(int threads) {
        return new ManagerOptions(
                policy,
                loadThreads,
                threads,
                loadNiceness,
                unloadThreads,
                memoryLimitBytes,
                loadRetries,
                retryInterval,
                forgetAfter);
    }

    /** These options with loads that give way more, or less. */
    public ManagerOptions withLoadNiceness(int niceness) {
        return new ManagerOptions(
                policy,
                loadThreads,
                initialLoadThreads,
                niceness,
                unloadThreads,
                memoryLimitBytes,
                loadRetries,
                retryInterval,
                forgetAfter);
    }

    /** These options with another memory limit. */
    public ManagerOptions withMemoryLimitBytes(long bytes) {
        return new ManagerOptions(
                policy,
                loadThreads,
                initialLoadThreads,
                loadNiceness,
                unloadThreads,
                bytes,
                loadRetries,
                retryInterval,
                forgetAfter);
    }

    /** These options with retries. */
    public ManagerOptions withRetries(int retries, Duration interval) {
        return new ManagerOptions(
                policy,
                loadThreads,
                initialLoadThreads,
                loadNiceness,
                unloadThreads,
                memoryLimitBytes,
                retries,
                interval,
                forgetAfter);
    }

    /** These options with ended versions shown for another time. */
    public ManagerOptions withForgetAfter(Duration time) {
        return new ManagerOptions(
                policy,
                loadThreads,
                initialLoadThreads,
                loadNiceness,
                unloadThreads,
                memoryLimitBytes,
                loadRetries,
                retryInterval,
                time);
    }
}
