// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.samples;

import io.nereid.backends.java.BuiltInModel;
import io.nereid.samples.model.RepeatModel;
import io.nereid.spi.config.ModelConfig;

/**
 * The backend {@code repeat}, as Triton's example of a decoupled model: returns the elements of {@code IN} one by one,
 * see {@link RepeatModel}. Thread-safe: has no state.
 */
public final class RepeatBackend extends SampleBackend {
    /** For {@link java.util.ServiceLoader}. */
    public RepeatBackend() {
        super("repeat");
    }

    @Override
    BuiltInModel create(ModelConfig config) {
        return new RepeatModel(RepeatModel.complete(config));
    }
}
