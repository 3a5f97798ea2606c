// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.samples;

import io.nereid.backends.java.BuiltInModel;
import io.nereid.samples.model.SquareModel;
import io.nereid.spi.config.ModelConfig;

/**
 * The backend {@code square}, as Triton's example of a decoupled model: returns {@code IN} responses, see
 * {@link SquareModel}. Thread-safe: has no state.
 */
public final class SquareBackend extends SampleBackend {
    /** For {@link java.util.ServiceLoader}. */
    public SquareBackend() {
        super("square");
    }

    @Override
    BuiltInModel create(ModelConfig config) {
        return new SquareModel(SquareModel.complete(config));
    }
}
