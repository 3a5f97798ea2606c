// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spi;

import java.util.List;

/**
 * Loads and unloads one version, as in TensorFlow Serving. Cheap to construct. The lifecycle manager calls it on its
 * threads, one call at a time, in this order: {@code estimateBytes → load → warm → unload}. It calls {@code unload}
 * also after a failed {@code load} or {@code warm}, and nothing after {@code unload}. Where retries are configured, it
 * calls a failed {@code load} again before that.
 */
public interface Loader {
    /** The version that this loader loads. */
    ServableId id();

    /**
     * A value that differs when loading again would give another result, because files or configuration have changed.
     */
    String fingerprint();

    /** The backend's name as far as it is known before loading; else empty. */
    String backend();

    /** Upper estimate of the memory that loading will take, in bytes; 0 when unknown. Cheap. */
    long estimateBytes();

    /**
     * Names of the models that must be available or have failed before {@link #load} is called: an ensemble's
     * composing models. When their available versions change, the manager reloads this version.
     */
    default List<String> dependencies() {
        return List.of();
    }

    /**
     * Updates the loaded version in place with what {@code next} changes, without loading anything. Returns false, and
     * changes nothing, when the change needs a reload. After true, {@link #fingerprint} equals that of {@code next},
     * which the caller discards.
     */
    default boolean updateInPlace(Loader next) {
        return false;
    }

    /**
     * Returns an unused loader of the same version, for a reload after a dependency has changed. Called only on
     * loaders with {@link #dependencies}, on any thread, also while this loader's version serves or after it was
     * unloaded. Cheap.
     */
    default Loader newLoader() {
        throw new UnsupportedOperationException(id() + " has dependencies but cannot be loaded anew");
    }

    /** Loads the version; may take long. An exception becomes the reason of the failure. */
    Servable load();

    /** Runs the warm-up requests through the loaded servable; may take long. */
    void warm();

    /** Frees everything. Called once, when no request is in flight; must not throw. */
    void unload();
}
