// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.java;

import io.nereid.backend.Backend;
import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelLocation;
import io.nereid.spi.config.ModelConfig;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * The backend {@code pooling}: computes the embedding of a sentence as the mean of its token vectors, see
 * {@link MeanPoolModel}. Thread-safe: has no state.
 */
public final class PoolingBackend implements Backend {
    static final String NAME = "pooling";

    /** For {@link java.util.ServiceLoader}. */
    public PoolingBackend() {}

    @Override
    public String name() {
        return NAME;
    }

    @Override
    public List<String> platforms() {
        return List.of(NAME);
    }

    /** Returns an empty list, since the model does not need any files. */
    @Override
    public List<String> defaultFiles() {
        return List.of();
    }

    @Override
    public Optional<Set<String>> settingNames() {
        return Optional.of(Set.of("default-max-batch-size"));
    }

    @Override
    public @Nullable String unavailableReason() {
        return null;
    }

    @Override
    public BackendModel load(ModelLocation source, ModelConfig config, BackendContext context) {
        return load(NAME, config, context);
    }

    /** Loads the model for a backend of this module, whose name is given. */
    static BackendModel load(String backend, ModelConfig config, BackendContext context) {
        MeanPoolModel model = MeanPoolModel.of(config, context.settings(), context.autoComplete());
        return new LoadedJavaModel(model.config(), backend, backend, model, SimulatedDelays.read(config), () -> {});
    }
}
