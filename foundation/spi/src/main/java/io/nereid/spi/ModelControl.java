// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spi;

import java.util.List;
import java.util.concurrent.CompletionStage;

/** The door for control: which models there are, loading and unloading them. Implementations are thread-safe. */
public interface ModelControl {
    /** Whether the process works at all. */
    boolean live();

    /** Whether requests are welcome: started, not shutting down, and every wanted model answers. */
    boolean ready();

    /**
     * Whether a model (any version, or the one named) answers.
     *
     * @throws io.nereid.base.ServingException NOT_FOUND for a model or version nobody knows
     */
    boolean ready(ModelRef model);

    /** Every known model: versions with their states, and names in the repository that were never loaded. */
    List<ModelStatus> index();

    /**
     * Loads or reloads a model from the repository. Completes when it answers; fails with INVALID_ARGUMENT,
     * NOT_FOUND or FAILED_PRECONDITION when that cannot be, an old version going on to serve.
     */
    CompletionStage<Void> load(String model);

    /** Unloads every version of a model. Completes when none is available; requests under way still finish. */
    CompletionStage<Void> unload(String model);

    /**
     * One model's states.
     *
     * @param model its name
     * @param versions by descending version; empty when it was never loaded
     */
    record ModelStatus(String model, List<ServableState> versions) {}
}
