// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.java.plugin;

import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelLocation;
import io.nereid.backends.java.samples.RepeatModel;
import io.nereid.spi.config.ModelConfig;

/**
 * The backend {@code repeat}, as Triton's example of a decoupled model: returns the elements of {@code IN} one by one,
 * see {@link RepeatModel}. Thread-safe: has no state.
 */
public final class RepeatBackend extends BuiltInModelBackend {
    /** For {@link java.util.ServiceLoader}. */
    public RepeatBackend() {
        super("repeat");
    }

    @Override
    public BackendModel load(ModelLocation source, ModelConfig config, BackendContext context) {
        return BuiltInModels.load("repeat", name(), config, context);
    }
}
