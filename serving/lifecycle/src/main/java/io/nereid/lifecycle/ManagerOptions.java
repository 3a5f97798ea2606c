// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle;

import io.nereid.lifecycle.policy.AspiredVersionPolicy;
import java.time.Duration;

/**
 * Settings of a manager. Immutable.
 *
 * <pre>{@code
 * ManagerOptions options = ManagerOptions.DEFAULT.withLoadThreads(2).withMemoryLimitBytes(8L << 30);
 * }</pre>
 *
 * @param policy the order of loads and unloads in a version transition
 * @param loadThreads maximum number of concurrent loads, including warm-up
 * @param initialLoadThreads maximum number of concurrent loads until models have settled for the first time
 *     ({@link ServableManager#settled}), if that is more; 0 for {@code loadThreads}
 * @param loadNiceness Linux niceness that is added to loads so that they give way to requests, 0 (off) to 19. Has
 *     no effect where the process may not raise the priority of its threads again
 * @param unloadThreads maximum number of concurrent unloads
 * @param memoryLimitBytes memory limit of all versions together, by their estimates; 0 for no limit
 * @param loadRetries how often a failed load is retried, by another call of {@code Loader.load}. A load that failed
 *     with INVALID_ARGUMENT, UNIMPLEMENTED or OUT_OF_RANGE is not retried, since it would fail again
 * @param retryInterval time between two attempts
 * @param forgetAfter how long an ended version stays in the index
 */
public record ManagerOptions(
        AspiredVersionPolicy policy,
        int loadThreads,
        int initialLoadThreads,
        int loadNiceness,
        int unloadThreads,
        long memoryLimitBytes,
        int loadRetries,
        Duration retryInterval,
        Duration forgetAfter) {
    /**
     * New versions of an available model become available together or not at all; four concurrent loads, also
     * initially, with lower priority than requests; no memory limit; no retries; ended versions stay in the index for
     * ten minutes.
     */
    public static final ManagerOptions DEFAULT = new ManagerOptions(
            AspiredVersionPolicy.ALL_OR_NOTHING, 4, 0, 10, 2, 0, 0, Duration.ofSeconds(30), Duration.ofMinutes(10));

    /** Returns these options with another policy. */
    public ManagerOptions withPolicy(AspiredVersionPolicy newPolicy) {
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

    /** Returns these options with another number of load threads. */
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

    /** Returns these options with more load threads until models have settled for the first time. */
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

    /** Returns these options with another niceness of loads. */
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

    /** Returns these options with another memory limit. */
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

    /** Returns these options with retries of failed loads. */
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

    /** Returns these options with another time for which ended versions stay in the index. */
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
