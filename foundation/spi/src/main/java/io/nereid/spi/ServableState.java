// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spi;

import org.jspecify.annotations.Nullable;

/**
 * The lifecycle state of one version. Immutable; the lifecycle manager publishes a new instance on every transition.
 *
 * @param id the version
 * @param phase the phase of the lifecycle
 * @param reason why the version failed or was unloaded; null when no reason is known
 * @param backend the backend's name; empty as long as it is unknown
 * @param loadNanos how long loading and warm-up took; 0 until they are done
 * @param memoryBytes the backend's estimate of the memory held; -1 when unknown
 */
public record ServableState(
        ServableId id, Phase phase, @Nullable String reason, String backend, long loadNanos, long memoryBytes) {
    /** The phases of a version, in the order in which it passes through them. */
    public enum Phase {
        /** Aspired; loading has not begun. */
        TRACKED,
        /** The backend loads the model. */
        LOADING,
        /** Warm-up requests run. */
        WARMING,
        /** The version takes requests. */
        AVAILABLE,
        /** The version takes no new requests; it unloads once the last request has ended. */
        DRAINING,
        /** The backend frees the model. */
        UNLOADING,
        /** The version is unloaded. */
        GONE,
        /** Loading failed; {@link ServableState#reason} holds the error. */
        FAILED
    }
}
