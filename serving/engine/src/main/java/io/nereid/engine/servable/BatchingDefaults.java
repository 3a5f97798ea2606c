// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.servable;

import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ForwardingModel;
import io.nereid.backend.ModelLocation;
import io.nereid.engine.options.EngineOptions;
import io.nereid.repository.tfserving.BatchingParameters;
import io.nereid.spi.ModelConfig;
import io.nereid.spi.ModelConfig.Batching;
import io.nereid.spi.ModelConfig.Fit;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * How requests are joined for models whose configuration does not say it: by parameters of the whole server, or by a file
 * of the version. What a configuration says of batching stays. Immutable.
 */
public final class BatchingDefaults {
    /** The file of a version that says how its requests are joined. */
    static final String FILE = "batching_params.pbtxt";

    private static final String DEFAULT_MAX_BATCH_SIZE = "default-max-batch-size";

    private final @Nullable BatchingParameters global;
    private final boolean perModel;

    BatchingDefaults(EngineOptions options) {
        this.global = options.batching();
        this.perModel = options.perModelBatching();
    }

    /**
     * The parameters for a version; null for no batching, or for what the backend does by itself.
     *
     * @throws io.nereid.base.ServingException INVALID_ARGUMENT for a file of the version that cannot be read
     */
    public @Nullable BatchingParameters of(ModelLocation source) {
        if (!perModel) {
            return global;
        }
        Path file = source.versionDirectory().resolve(FILE);
        return Files.isRegularFile(file) ? BatchingParameters.read(file) : null;
    }

    /** What the backend is told, so that it takes as many rows as are joined. */
    public BackendContext context(BackendContext context, @Nullable BatchingParameters parameters) {
        if (parameters == null && !perModel) {
            return context;
        }
        Map<String, String> settings = new HashMap<>(context.settings());
        settings.put(
                DEFAULT_MAX_BATCH_SIZE,
                parameters == null ? "0" : Integer.toString(parameters.maxExecutionBatchSize()));
        return new BackendContext(
                context.cores(),
                context.scratch(),
                settings,
                context.autoComplete(),
                context.engine(),
                context.control(),
                context.backends());
    }

    /**
     * The model with these parameters, where they apply.
     *
     * @param stored its configuration before the backend completed it
     */
    public BackendModel apply(BackendModel model, ModelConfig stored, @Nullable BatchingParameters parameters) {
        ModelConfig config = model.config();
        if ((parameters == null && !perModel)
                || stored.batching() != null
                || !config.batched()
                || config.sequence() != null
                || config.decoupled()) {
            return model;
        }
        Batching batching = null;
        if (parameters != null) {
            batching = parameters.batching(config.maxBatchSize());
            if (model.traits().requests()) {
                // Such a model sees requests, not rows: nothing can be added to them, or cut off.
                batching = batching.withFit(
                        new Fit(List.of(), false, 0, batching.fit().maxEnqueuedBatches()));
            }
        }
        return new ForwardingModel(model, config.toBuilder().batching(batching).build());
    }
}
