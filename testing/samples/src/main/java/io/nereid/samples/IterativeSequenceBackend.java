// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.samples;

import io.nereid.backends.java.BuiltInModel;
import io.nereid.samples.model.IterativeSequenceModel;
import io.nereid.spi.config.ModelConfig;

/**
 * The backend {@code iterative_sequence}, as Triton's test backend for iterative sequences, see
 * {@link IterativeSequenceModel}. Thread-safe: has no state.
 */
public final class IterativeSequenceBackend extends SampleBackend {
    /** For {@link java.util.ServiceLoader}. */
    public IterativeSequenceBackend() {
        super("iterative_sequence");
    }

    @Override
    BuiltInModel create(ModelConfig config) {
        return new IterativeSequenceModel(IterativeSequenceModel.complete(config));
    }
}
