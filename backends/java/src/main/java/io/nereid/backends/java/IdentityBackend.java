// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.java;

import io.nereid.backend.Backend;
import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelSource;
import io.nereid.spi.ModelConfig;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Triton's name for the built-in identity model: {@code backend: "identity"}. Thread-safe: has no state. */
public final class IdentityBackend implements Backend {
    /** For {@link java.util.ServiceLoader}. */
    public IdentityBackend() {}

    @Override
    public String name() {
        return "identity";
    }

    @Override
    public List<String> platforms() {
        return List.of("identity");
    }

    /** None: the model needs no file. */
    @Override
    public List<String> defaultFiles() {
        return List.of();
    }

    @Override
    public @Nullable String unavailable() {
        return null;
    }

    @Override
    public BackendModel load(ModelSource source, ModelConfig config, BackendContext context) {
        return JavaBackend.loadIdentity(config, "identity", name());
    }
}
