// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.java;

import io.nereid.backend.Backend;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** A backend with one built-in model, which needs no file. Thread-safe: has no state. */
abstract class NamedBackend implements Backend {
    private final String name;

    NamedBackend(String name) {
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

    /** None: the model needs no file. */
    @Override
    public final List<String> defaultFiles() {
        return List.of();
    }

    @Override
    public final @Nullable String unavailable() {
        return null;
    }
}
