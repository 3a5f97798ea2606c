// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.java.plugin;

import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelLocation;
import io.nereid.backends.java.samples.SquareModel;
import io.nereid.spi.config.ModelConfig;

/**
 * The backend {@code square}, as Triton's example of a decoupled model: returns {@code IN} responses, see
 * {@link SquareModel}. Thread-safe: has no state.
 */
public final class SquareBackend extends BuiltInModelBackend {
    /** For {@link java.util.ServiceLoader}. */
    public SquareBackend() {
        super("square");
    }

    @Override
    public BackendModel load(ModelLocation source, ModelConfig config, BackendContext context) {
        return BuiltInModels.load("square", name(), config, context);
    }
}
