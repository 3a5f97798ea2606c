// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.java.plugin;

import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelLocation;
import io.nereid.backends.java.samples.IterativeSequenceModel;
import io.nereid.spi.config.ModelConfig;

/**
 * The backend {@code iterative_sequence}, as Triton's test backend for iterative sequences, see
 * {@link IterativeSequenceModel}. Thread-safe: has no state.
 */
public final class IterativeSequenceBackend extends BuiltInModelBackend {
    /** For {@link java.util.ServiceLoader}. */
    public IterativeSequenceBackend() {
        super("iterative_sequence");
    }

    @Override
    public BackendModel load(ModelLocation source, ModelConfig config, BackendContext context) {
        return BuiltInModels.load("iterative_sequence", name(), config, context);
    }
}
