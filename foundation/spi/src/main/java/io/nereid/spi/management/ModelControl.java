// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spi.management;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.ModelRef;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;

/**
 * The model control API of the server: health, the list of models, loading and unloading. Implementations are
 * thread-safe.
 */
public interface ModelControl {
    /** Whether the process works (liveness). */
    boolean live();

    /**
     * Whether the server can take requests (readiness): it has started, is not shutting down, and every aspired model
     * is available.
     */
    boolean ready();

    /**
     * Whether a model (any version, or the referenced one) is available.
     *
     * @throws io.nereid.base.ServingException NOT_FOUND for an unknown model or version
     */
    boolean ready(ModelRef model);

    /**
     * Returns every known model: the versions with their states, and the models of the repository that were never
     * loaded.
     */
    List<ModelStatus> index();

    /**
     * Loads or reloads a model from the repository. Completes when the model is available. Fails with
     * INVALID_ARGUMENT, NOT_FOUND or FAILED_PRECONDITION when it cannot be loaded; an older version then continues to
     * serve.
     */
    default CompletionStage<Void> load(String model) {
        return load(model, LoadOptions.NONE);
    }

    /** As {@link #load(String)}, with another configuration or other files than those of the repository. */
    CompletionStage<Void> load(String model, LoadOptions options);

    /** Unloads every version of a model. Completes when no version is available; requests in flight still finish. */
    default CompletionStage<Void> unload(String model) {
        return unload(model, false);
    }

    /**
     * As {@link #unload(String)}.
     *
     * @param dependents whether to unload also the models that were loaded only because this ensemble is made of them
     */
    CompletionStage<Void> unload(String model, boolean dependents);

    /**
     * Replaces the list of models ({@code --model_config_file}); models that it omits are unloaded. The whole list is
     * validated before anything changes. Completes when the new models are available or have failed, or when the wait
     * for them has timed out, which the result reports.
     *
     * @param models the complete new list
     * @param dryRun whether to only report the changes, without applying them
     * @return the changes by model; fails with INVALID_ARGUMENT or FAILED_PRECONDITION for an invalid list, which
     *     changes nothing
     */
    default CompletionStage<List<ModelListChange>> configure(List<ModelListEntry> models, boolean dryRun) {
        return CompletableFuture.failedStage(
                ServingException.of(ErrorCode.UNIMPLEMENTED, "this server has no list of models to replace"));
    }
}
