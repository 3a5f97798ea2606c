// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.java.plugin;

import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelLocation;
import io.nereid.backends.java.samples.DynaSequenceModel;
import io.nereid.spi.config.ModelConfig;

/**
 * The backend {@code dyna_sequence}, as Triton's test backend: sums for each correlation id, see
 * {@link DynaSequenceModel}. Thread-safe: has no state.
 */
public final class DynaSequenceBackend extends BuiltInModelBackend {
    /** For {@link java.util.ServiceLoader}. */
    public DynaSequenceBackend() {
        super("dyna_sequence");
    }

    @Override
    public BackendModel load(ModelLocation source, ModelConfig config, BackendContext context) {
        return BuiltInModels.load("dyna_sequence", name(), config, context);
    }
}
