// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.servable;

import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ForwardingModel;
import io.nereid.backend.ModelLocation;
import io.nereid.repository.tfserving.BatchingParameters;
import io.nereid.spi.config.BatchSizePolicy;
import io.nereid.spi.config.DynamicBatching;
import io.nereid.spi.config.ModelConfig;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * The batching of models whose configuration does not define it: from parameters of the server, or from a file of the
 * version. A configuration's own batching settings always take precedence. Immutable.
 */
public final class BatchingDefaults {
    /** The file of a version with its batching parameters. */
    static final String FILE = "batching_params.pbtxt";

    /** The backends of graphs without state, whose default batch size is Triton's for a model without configuration. */
    private static final Set<String> STATELESS = Set.of("onnxruntime", "paddle", "mxnet", "caffe2");

    private static final int MOST_ROWS = 1 << 20;

    private static final String DEFAULT_MAX_BATCH_SIZE = "default-max-batch-size";

    private final @Nullable BatchingParameters global;
    private final boolean perModel;
    private final boolean splitUnconfigured;

    /**
     * Creates the defaults.
     *
     * @param global parameters of the server; null for the models' own defaults
     * @param perModel whether the file of a version replaces {@code global}; a model without that file is not batched
     * @param splitUnconfigured whether requests beyond a backend's own default batch size are split
     */
    BatchingDefaults(@Nullable BatchingParameters global, boolean perModel, boolean splitUnconfigured) {
        this.global = global;
        this.perModel = perModel;
        this.splitUnconfigured = splitUnconfigured;
    }

    /**
     * Returns the parameters for a version; null for no batching, or for the backend's own defaults.
     *
     * @throws io.nereid.base.ServingException INVALID_ARGUMENT when the version's file cannot be read
     */
    public @Nullable BatchingParameters of(ModelLocation source) {
        if (!perModel) {
            return global;
        }
        Path file = source.versionDirectory().resolve(FILE);
        return Files.isRegularFile(file) ? BatchingParameters.read(file) : null;
    }

    /** Returns a context that sets the backend's default batch size to that of the parameters. */
    public BackendContext context(BackendContext context, @Nullable BatchingParameters parameters) {
        if (parameters == null && !perModel) {
            return context;
        }
        Map<String, String> settings = new HashMap<>(context.settings());
        settings.put(
                DEFAULT_MAX_BATCH_SIZE,
                parameters == null ? "0" : Integer.toString(parameters.maxExecutionBatchSize()));
        return context.withSettings(settings);
    }

    /**
     * Returns the model with these parameters, where they apply.
     *
     * @param stored the configuration before the backend completed it
     * @param context what the backend loaded the model with
     */
    public BackendModel apply(
            BackendModel model,
            ModelLocation source,
            ModelConfig stored,
            BackendContext context,
            @Nullable BatchingParameters parameters) {
        ModelConfig config = model.config();
        DynamicBatching own = config.batching();
        if (splitUnconfigured
                && parameters == null
                && !perModel
                && own != null
                && own.batchSizePolicy().equals(BatchSizePolicy.NONE)
                && config.batched()
                && config.sequence() == null
                && STATELESS.contains(config.backend())
                && !context.settings().containsKey(DEFAULT_MAX_BATCH_SIZE)
                && !configured(source, stored)) {
            BatchSizePolicy split = new BatchSizePolicy(List.of(), false, MOST_ROWS, 0);
            return new ForwardingModel(
                    model,
                    config.toBuilder().batching(own.withBatchSizePolicy(split)).build());
        }
        if ((parameters == null && !perModel)
                || stored.batching() != null
                || !config.batched()
                || config.sequence() != null
                || config.decoupled()) {
            return model;
        }
        DynamicBatching batching = null;
        if (parameters != null) {
            batching = parameters.batching(config.maxBatchSize());
            if (model.traits().takesRequests()) {
                // the model gets single requests, not rows: they can neither be padded nor split
                batching = batching.withBatchSizePolicy(new BatchSizePolicy(
                        List.of(), false, 0, batching.batchSizePolicy().maxEnqueuedBatches()));
            }
        }
        return new ForwardingModel(model, config.toBuilder().batching(batching).build());
    }

    /** Whether someone wrote a configuration, in the model's directory or in the request that loads it. */
    private static boolean configured(ModelLocation source, ModelConfig stored) {
        Path directory = source.modelDirectory();
        return stored.maxBatchSize() >= 0
                || stored.batching() != null
                || !stored.inputs().isEmpty()
                || !stored.outputs().isEmpty()
                || Files.exists(directory.resolve("config.pbtxt"))
                || Files.isDirectory(directory.resolve("configs"));
    }
}
