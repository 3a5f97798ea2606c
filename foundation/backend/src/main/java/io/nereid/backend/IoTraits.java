// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backend;

/**
 * What the engine may assume of a model's runs. Immutable.
 *
 * @param alignment the byte boundary on which the inputs must start; 1 for none. The engine copies where needed
 * @param cancel whether {@link Invocation#cancel} stops a run
 * @param inline whether a run is known to take at most a few tens of microseconds, so that the thread that brought the
 *     request may do it; when false the engine measures and decides
 * @param requests whether the model takes requests rather than batches of tensors: {@link Invocation#execute} is called
 *     instead of {@link Invocation#run}. Decoupled models do, and those that want a request's parameters
 */
public record IoTraits(int alignment, boolean cancel, boolean inline, boolean requests) {
    /** For a model that takes batches of tensors. */
    public IoTraits(int alignment, boolean cancel, boolean inline) {
        this(alignment, cancel, inline, false);
    }
}
