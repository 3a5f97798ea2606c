// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spi;

import java.util.List;

/**
 * Makes one version servable. Cheap to construct. Called by the manager's pools, one call at a time, in this order:
 * {@code estimate → load → warm → unload}; {@code unload} also follows a failed {@code load} or {@code warm}, and
 * nothing follows {@code unload}. Where retries are configured, a failed {@code load} is called again before that.
 */
public interface Loader {
    /** The version. */
    ServableId id();

    /** Changes whenever a reload would give something else (files, configuration). */
    String fingerprint();

    /** Name of the backend, as far as it is known without loading; else empty. */
    String backend();

    /** Bytes of memory that loading will take at most; 0 when unknown. Cheap. */
    long estimateBytes();

    /**
     * Names of models that must have settled before {@link #load} is called: an ensemble's steps. A change of what is
     * available of them makes the version be loaded anew.
     */
    default List<String> dependencies() {
        return List.of();
    }

    /**
     * Takes over, while serving, what {@code next} says differently, without loading anything; false when that takes a
     * reload, with nothing changed. Afterwards {@link #fingerprint} is that of {@code next}, which is dropped.
     */
    default boolean adopt(Loader next) {
        return false;
    }

    /**
     * An unused loader of the same version, to load it anew after what it depends on has changed. Asked only of loaders
     * with {@link #dependencies}, on any thread, also while this one serves or after its end; cheap.
     */
    default Loader again() {
        throw new UnsupportedOperationException(id() + " has dependencies but cannot be loaded anew");
    }

    /** Loads; may take long. What it throws becomes the reason of the failure. */
    Servable load();

    /** Runs the warm-up requests through the loaded servable; may take long. */
    void warm();

    /** Frees everything. Called once, when no request is under way; must not throw. */
    void unload();
}
