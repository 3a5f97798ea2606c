// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.java;

import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelLocation;
import io.nereid.spi.ModelConfig;

/** Triton's test model of sequences with ids, {@code backend: "dyna_sequence"}: sums by id, see {@link IdSums}. Thread-safe: has no state. */
public final class DynaSequenceBackend extends NamedBackend {
    /** For {@link java.util.ServiceLoader}. */
    public DynaSequenceBackend() {
        super("dyna_sequence");
    }

    @Override
    public BackendModel load(ModelLocation source, ModelConfig config, BackendContext context) {
        return BuiltIns.load("dyna_sequence", name(), config, context);
    }
}
