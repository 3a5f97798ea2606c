// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.java.plugin;

import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelLocation;
import io.nereid.backends.java.samples.AddSubModel;
import io.nereid.spi.config.ModelConfig;

/**
 * The backend {@code add_sub}: computes the sum {@code OUTPUT0} and the difference {@code OUTPUT1} of {@code INPUT0}
 * and {@code INPUT1}, see {@link AddSubModel}. Thread-safe: has no state.
 */
public final class AddSubBackend extends BuiltInModelBackend {
    /** For {@link java.util.ServiceLoader}. */
    public AddSubBackend() {
        super("add_sub");
    }

    @Override
    public BackendModel load(ModelLocation source, ModelConfig config, BackendContext context) {
        return BuiltInModels.load("add_sub", name(), config, context);
    }
}
