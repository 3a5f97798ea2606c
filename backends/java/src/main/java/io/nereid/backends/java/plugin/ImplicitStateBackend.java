// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.java.plugin;

import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelLocation;
import io.nereid.backends.java.samples.ImplicitStateModel;
import io.nereid.spi.config.ModelConfig;

/**
 * The backend {@code implicit_state}, as Triton's test backend for implicit state management, see
 * {@link ImplicitStateModel}. Thread-safe: has no state.
 */
public final class ImplicitStateBackend extends BuiltInModelBackend {
    /** For {@link java.util.ServiceLoader}. */
    public ImplicitStateBackend() {
        super("implicit_state");
    }

    @Override
    public BackendModel load(ModelLocation source, ModelConfig config, BackendContext context) {
        return BuiltInModels.load("implicit_state", name(), config, context);
    }
}
