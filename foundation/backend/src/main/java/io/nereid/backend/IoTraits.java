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
 * @param tabular whether the model takes tables, which clients may send in any of the ways that are common for them: numbers
 *     of any type for FP32 and FP64, the only input under any name or, where its columns have names
 *     ({@code feature_names}), as one input for each, columns as {@code [n]} or {@code [n,1]}. The engine makes of them
 *     what the configuration says
 * @param waits whether a run is spent waiting: for another process, or for other models of this server. Such runs have
 *     threads of their own, as many as instances, lest models that wait for others keep these from running
 */
public record IoTraits(
        int alignment, boolean cancel, boolean inline, boolean requests, boolean tabular, boolean waits) {
    /** For a model that computes by itself. */
    public IoTraits(int alignment, boolean cancel, boolean inline, boolean requests, boolean tabular) {
        this(alignment, cancel, inline, requests, tabular, false);
    }

    /** For a model that takes its inputs as the configuration says. */
    public IoTraits(int alignment, boolean cancel, boolean inline, boolean requests) {
        this(alignment, cancel, inline, requests, false, false);
    }

    /** For a model that takes batches of tensors. */
    public IoTraits(int alignment, boolean cancel, boolean inline) {
        this(alignment, cancel, inline, false, false, false);
    }
}
