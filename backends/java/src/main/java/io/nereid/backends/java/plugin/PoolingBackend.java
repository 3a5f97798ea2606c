// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.java.plugin;

import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelLocation;
import io.nereid.backends.java.MeanPoolModel;
import io.nereid.spi.config.ModelConfig;

/**
 * The backend {@code pooling}: computes the embedding of a sentence as the mean of its token vectors, see
 * {@link MeanPoolModel}. Thread-safe: has no state.
 */
public final class PoolingBackend extends BuiltInModelBackend {
    /** For {@link java.util.ServiceLoader}. */
    public PoolingBackend() {
        super("pooling");
    }

    @Override
    public BackendModel load(ModelLocation source, ModelConfig config, BackendContext context) {
        return BuiltInModels.load("pooling", name(), config, context);
    }
}
