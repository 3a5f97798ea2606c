// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.samples;

import io.nereid.backends.java.BuiltInModel;
import io.nereid.samples.model.SequenceModel;
import io.nereid.samples.model.SequenceSumModel;
import io.nereid.spi.config.ModelConfig;

/**
 * The backend {@code sequence}, as Triton's test backend for the direct strategy: sums for each slot, see
 * {@link SequenceModel}. Thread-safe: has no state.
 */
public final class SequenceBackend extends SampleBackend {
    /** For {@link java.util.ServiceLoader}. */
    public SequenceBackend() {
        super("sequence");
    }

    @Override
    BuiltInModel create(ModelConfig config) {
        return new SequenceModel(SequenceSumModel.complete(config, "START", "READY"));
    }
}
