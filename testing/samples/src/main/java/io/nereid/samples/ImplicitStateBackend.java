// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.samples;

import io.nereid.backends.java.BuiltInModel;
import io.nereid.samples.model.ImplicitStateModel;
import io.nereid.spi.config.ModelConfig;

/**
 * The backend {@code implicit_state}, as Triton's test backend for implicit state management, see
 * {@link ImplicitStateModel}. Thread-safe: has no state.
 */
public final class ImplicitStateBackend extends SampleBackend {
    /** For {@link java.util.ServiceLoader}. */
    public ImplicitStateBackend() {
        super("implicit_state");
    }

    @Override
    BuiltInModel create(ModelConfig config) {
        return new ImplicitStateModel(ImplicitStateModel.complete(config));
    }
}
