// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.java;

import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelLocation;
import io.nereid.spi.ModelConfig;

/** A test model of states that the server carries, {@code backend: "implicit_state"}, see {@link StateSums}. Thread-safe: has no state. */
public final class ImplicitStateBackend extends NamedBackend {
    /** For {@link java.util.ServiceLoader}. */
    public ImplicitStateBackend() {
        super("implicit_state");
    }

    @Override
    public BackendModel load(ModelLocation source, ModelConfig config, BackendContext context) {
        return BuiltIns.load("implicit_state", name(), config, context);
    }
}
