// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.java;

import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelLocation;
import io.nereid.spi.ModelConfig;

/** Triton's decoupled example, {@code backend: "repeat"}: the elements of {@code IN} one by one, see {@link RepeatModel}. Thread-safe: has no state. */
public final class RepeatBackend extends NamedBackend {
    /** For {@link java.util.ServiceLoader}. */
    public RepeatBackend() {
        super("repeat");
    }

    @Override
    public BackendModel load(ModelLocation source, ModelConfig config, BackendContext context) {
        return BuiltIns.load("repeat", name(), config, context);
    }
}
