// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.placement;

/**
 * What a pod shall do. Immutable. The caller carries it out and reports the end to {@link PoolPlacement}.
 *
 * @param kind load or unload
 * @param model the model
 * @param pod the pod
 * @param bytes the memory that is reserved for the load, or that the unload frees
 */
public record PlacementAction(Kind kind, String model, String pod, long bytes) {
    /** The two actions. */
    public enum Kind {
        /** Load the model; ends with {@link PoolPlacement#loaded} or {@link PoolPlacement#loadFailed}. */
        LOAD,
        /** Unload the model; ends with {@link PoolPlacement#unloaded}. */
        UNLOAD
    }
}
