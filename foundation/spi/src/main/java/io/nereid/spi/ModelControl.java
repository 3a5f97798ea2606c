// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spi;

import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletionStage;
import org.jspecify.annotations.Nullable;

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
    default CompletionStage<Void> load(String model) {
        return load(model, LoadOptions.NONE);
    }

    /** As {@link #load(String)}, with another configuration or other files than the repository's. */
    CompletionStage<Void> load(String model, LoadOptions options);

    /** Unloads every version of a model. Completes when none is available; requests under way still finish. */
    default CompletionStage<Void> unload(String model) {
        return unload(model, false);
    }

    /**
     * As {@link #unload(String)}.
     *
     * @param dependents whether the models that were loaded only because this one is made of them go too
     */
    CompletionStage<Void> unload(String model, boolean dependents);

    /**
     * What a load request may replace. Immutable.
     *
     * @param config the configuration as JSON, instead of the stored one; null for the stored one
     * @param files contents by path inside the model's directory, instead of the stored files; empty for these.
     *     They need a {@code config}
     */
    record LoadOptions(@Nullable String config, Map<String, byte[]> files) {
        /** What is stored. */
        public static final LoadOptions NONE = new LoadOptions(null, Map.of());
    }

    /**
     * One model's states.
     *
     * @param model its name
     * @param versions by descending version; empty when it was never loaded
     */
    record ModelStatus(String model, List<ServableState> versions) {}
}
