// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spi;

import org.jspecify.annotations.Nullable;

/**
 * Where one version stands. Immutable; published by the manager on every step.
 *
 * @param id the version
 * @param phase where it stands
 * @param reason why it failed or is gone; null when there is nothing to tell
 * @param backend the backend's name, or empty before it is known
 * @param loadNanos how long load and warm-up took; 0 until then
 * @param memoryBytes the backend's own estimate of memory held; -1 when unknown
 */
public record ServableState(
        ServableId id, Phase phase, @Nullable String reason, String backend, long loadNanos, long memoryBytes) {
    /** The phases of a version, in the order of its life. */
    public enum Phase {
        /** Aspired, not yet begun. */
        TRACKED,
        /** The backend reads the model. */
        LOADING,
        /** Warm-up requests run. */
        WARMING,
        /** Handles are given out. */
        AVAILABLE,
        /** No new handles; waits for the last one. */
        DRAINING,
        /** The backend gives the model's memory back. */
        UNLOADING,
        /** Ended. */
        GONE,
        /** Ended in an error; the reason is kept. */
        FAILED
    }
}
