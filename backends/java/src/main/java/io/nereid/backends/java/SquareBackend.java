// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.java;

import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelLocation;
import io.nereid.spi.ModelConfig;

/** Triton's decoupled example, {@code backend: "square"}: as many answers as {@code IN} says, see {@link SquareModel}. Thread-safe: has no state. */
public final class SquareBackend extends NamedBackend {
    /** For {@link java.util.ServiceLoader}. */
    public SquareBackend() {
        super("square");
    }

    @Override
    public BackendModel load(ModelLocation source, ModelConfig config, BackendContext context) {
        return BuiltIns.load("square", name(), config, context);
    }
}
