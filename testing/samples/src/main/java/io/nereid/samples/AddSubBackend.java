// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.samples;

import io.nereid.backends.java.BuiltInModel;
import io.nereid.samples.model.AddSubModel;
import io.nereid.spi.config.ModelConfig;

/**
 * The backend {@code add_sub}: computes the sum {@code OUTPUT0} and the difference {@code OUTPUT1} of {@code INPUT0}
 * and {@code INPUT1}, see {@link AddSubModel}. Thread-safe: has no state.
 */
public final class AddSubBackend extends SampleBackend {
    /** For {@link java.util.ServiceLoader}. */
    public AddSubBackend() {
        super("add_sub");
    }

    @Override
    BuiltInModel create(ModelConfig config) {
        return new AddSubModel(AddSubModel.complete(config));
    }
}
