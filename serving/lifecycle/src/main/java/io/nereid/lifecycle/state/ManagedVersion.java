// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle.state;

import io.nereid.lifecycle.serving.LiveServable;
import io.nereid.spi.Loader;
import io.nereid.spi.ServableId;
import io.nereid.spi.ServableState;
import io.nereid.spi.ServableState.Phase;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A version under management, from the list that first aspired it to its end (TensorFlow Serving:
 * {@code LoaderHarness}). A reload creates a second object with the same id, the successor. Confined to the manager
 * thread, except for {@link #cancelled}, which is thread-safe, and for {@link #attempts} and {@link #loadCalled}, which
 * belong to the thread that loads while a load is in progress.
 */
public final class ManagedVersion {
    public final ServableId id;
    public final @Nullable Loader loader;

    /** Names of the models that must settle before it is loaded. */
    public final List<String> dependencies;

    /** Changes when the loader adopts a new configuration without a reload. */
    public String fingerprint;

    public Phase phase = Phase.TRACKED;
    public boolean aspired = true;

    public @Nullable String reason;

    public long loadNanos;
    public long memoryBytes = -1;

    /** Number of attempts to load that have started. */
    public int attempts;

    /** Whether {@code Loader.load} was called, so that {@code unload} must be called too. */
    public boolean loadCalled;

    public @Nullable LiveServable live;

    /** Its reload in progress. */
    public @Nullable ManagedVersion successor;

    /** The available version that this reload will replace. */
    public @Nullable ManagedVersion predecessor;

    /** Its last reload, if that failed and was not replaced since. */
    public @Nullable ManagedVersion failedReload;

    /** Loaded and warmed up, but waiting for the other new versions of its model. */
    public boolean staged;

    /** Reloaded only because its dependencies have changed. */
    public boolean renewal;

    /** Failed because it depends on itself, directly or indirectly. */
    public boolean circular;

    /** Whether an unknown dependency may still be announced by a source. */
    public boolean expectsUnknown;

    /** The available versions of its dependencies when its load began; null before that. */
    public @Nullable List<Object> basis;

    /** Read by load threads: stop the load at the next opportunity. */
    public volatile boolean cancelled;

    public ManagedVersion(ServableId id, @Nullable Loader loader) {
        this.id = id;
        this.loader = loader;
        this.fingerprint = loader == null ? "" : loader.fingerprint();
        this.dependencies = ModelDependencies.of(loader);
    }

    /** Returns whether a reload with this fingerprint failed. */
    public boolean failedToReload(String other) {
        return failedReload != null && failedReload.fingerprint.equals(other);
    }

    public boolean ended() {
        return phase == Phase.GONE || phase == Phase.FAILED;
    }

    public boolean loads() {
        return phase == Phase.LOADING || phase == Phase.WARMING;
    }

    public ServableState state() {
        return new ServableState(id, phase, reason, loader == null ? "" : loader.backend(), loadNanos, memoryBytes);
    }
}
