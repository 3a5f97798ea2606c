// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.java;

import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelLocation;
import io.nereid.spi.ModelConfig;

/**
 * Sum and difference, {@code backend: "add_sub"}: {@code INPUT0}, {@code INPUT1} to {@code OUTPUT0}, {@code OUTPUT1}.
 * Thread-safe: has no state.
 */
public final class AddSubBackend extends NamedBackend {
    /** For {@link java.util.ServiceLoader}. */
    public AddSubBackend() {
        super("add_sub");
    }

    @Override
    public BackendModel load(ModelLocation source, ModelConfig config, BackendContext context) {
        return BuiltIns.load("add_sub", name(), config, context);
    }
}
