// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.java.plugin;

import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelLocation;
import io.nereid.backends.java.samples.SequenceModel;
import io.nereid.spi.config.ModelConfig;

/**
 * The backend {@code sequence}, as Triton's test backend for the direct strategy: sums for each slot, see
 * {@link SequenceModel}. Thread-safe: has no state.
 */
public final class SequenceBackend extends BuiltInModelBackend {
    /** For {@link java.util.ServiceLoader}. */
    public SequenceBackend() {
        super("sequence");
    }

    @Override
    public BackendModel load(ModelLocation source, ModelConfig config, BackendContext context) {
        return BuiltInModels.load("sequence", name(), config, context);
    }
}
