// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.java;

import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelLocation;
import io.nereid.spi.ModelConfig;

/** Triton's test model of iterative sequences, {@code backend: "iterative_sequence"}, see {@link CountdownModel}. Thread-safe: has no state. */
public final class IterativeSequenceBackend extends NamedBackend {
    /** For {@link java.util.ServiceLoader}. */
    public IterativeSequenceBackend() {
        super("iterative_sequence");
    }

    @Override
    public BackendModel load(ModelLocation source, ModelConfig config, BackendContext context) {
        return BuiltIns.load("iterative_sequence", name(), config, context);
    }
}
