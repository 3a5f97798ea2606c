// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.java;

import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelLocation;
import io.nereid.spi.ModelConfig;

/** Triton's test model of direct sequences, {@code backend: "sequence"}: sums by slot, see {@link SlotSums}. Thread-safe: has no state. */
public final class SequenceBackend extends NamedBackend {
    /** For {@link java.util.ServiceLoader}. */
    public SequenceBackend() {
        super("sequence");
    }

    @Override
    public BackendModel load(ModelLocation source, ModelConfig config, BackendContext context) {
        return BuiltIns.load("sequence", name(), config, context);
    }
}
