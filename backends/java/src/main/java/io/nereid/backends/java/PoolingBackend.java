// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.java;

import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelLocation;
import io.nereid.spi.ModelConfig;

/** A sentence's vector from those of its tokens, {@code backend: "pooling"}, see {@link MeanPoolModel}. Thread-safe: has no state. */
public final class PoolingBackend extends NamedBackend {
    /** For {@link java.util.ServiceLoader}. */
    public PoolingBackend() {
        super("pooling");
    }

    @Override
    public BackendModel load(ModelLocation source, ModelConfig config, BackendContext context) {
        return BuiltIns.load("pooling", name(), config, context);
    }
}
