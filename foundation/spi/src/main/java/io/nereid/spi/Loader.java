// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spi;

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

    /** Loads; may take long. What it throws becomes the reason of the failure. */
    Servable load();

    /** Runs the warm-up requests through the loaded servable; may take long. */
    void warm();

    /** Frees everything. Called once, when no request is under way; must not throw. */
    void unload();
}
