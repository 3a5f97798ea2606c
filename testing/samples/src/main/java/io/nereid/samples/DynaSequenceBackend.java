// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.samples;

import io.nereid.backends.java.BuiltInModel;
import io.nereid.samples.model.DynaSequenceModel;
import io.nereid.samples.model.SequenceSumModel;
import io.nereid.spi.config.ModelConfig;

/**
 * The backend {@code dyna_sequence}, as Triton's test backend: sums for each correlation id, see
 * {@link DynaSequenceModel}. Thread-safe: has no state.
 */
public final class DynaSequenceBackend extends SampleBackend {
    /** For {@link java.util.ServiceLoader}. */
    public DynaSequenceBackend() {
        super("dyna_sequence");
    }

    @Override
    BuiltInModel create(ModelConfig config) {
        return new DynaSequenceModel(SequenceSumModel.complete(config, "START", "END", "READY", "CORRID"));
    }
}
