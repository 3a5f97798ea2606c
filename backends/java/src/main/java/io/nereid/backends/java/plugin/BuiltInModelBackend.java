// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.java.plugin;

import io.nereid.backend.Backend;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** A backend with a single built-in model, which does not need any files. Thread-safe: has no state. */
abstract class BuiltInModelBackend implements Backend {
    private final String name;

    BuiltInModelBackend(String name) {
        this.name = name;
    }

    @Override
    public final String name() {
        return name;
    }

    @Override
    public final List<String> platforms() {
        return List.of(name);
    }

    /** Returns an empty list, since the model does not need any files. */
    @Override
    public final List<String> defaultFiles() {
        return List.of();
    }

    @Override
    public final @Nullable String unavailableReason() {
        return null;
    }
}
