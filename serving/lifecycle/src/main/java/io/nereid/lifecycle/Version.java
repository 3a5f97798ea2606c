// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle;

import io.nereid.spi.Loader;
import io.nereid.spi.ServableId;
import io.nereid.spi.ServableState;
import io.nereid.spi.ServableState.Phase;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** One load of one version, from first mention to its end. Confined to the deciding thread, but for {@code unwanted}. */
final class Version {
    final ServableId id;
    final @Nullable Loader loader;

    /** Models that must have settled before it is loaded. */
    final List<String> dependencies;

    /** Changes when it adopts another's. */
    String fingerprint;

    Phase phase = Phase.TRACKED;
    boolean aspired = true;

    @Nullable String reason;

    long loadNanos;
    long memoryBytes = -1;

    /** Attempts begun; handed along with the version from thread to thread, as is {@link #touched}. */
    int attempts;

    /** Whether its loader was asked to load, so that it must be asked to unload. */
    boolean touched;

    @Nullable Live live;

    /** Its next self, being loaded beside it. */
    @Nullable Version successor;

    /** The version that this one is to succeed. */
    @Nullable Version predecessor;

    /** Its last successor, if that failed and was not replaced since. */
    @Nullable Version refused;

    /** Loaded and warm, but not shown before the other new versions of its model are. */
    boolean staged;

    /** Loaded anew only because of what it depends on. */
    boolean renewal;

    /** Failed because it depends on itself in the end. */
    boolean circular;

    /** Whether a dependency that nobody has mentioned may still be mentioned. */
    boolean expectsUnknown;

    /** What was available of its dependencies when its loading began; null before that. */
    @Nullable List<Object> basis;

    /** Read by the load pool: give up at the next chance. */
    volatile boolean unwanted;

    Version(ServableId id, @Nullable Loader loader) {
        this.id = id;
        this.loader = loader;
        this.fingerprint = loader == null ? "" : loader.fingerprint();
        this.dependencies = Dependencies.of(loader);
    }

    /** Whether a successor with this fingerprint failed. */
    boolean refused(String other) {
        return refused != null && refused.fingerprint.equals(other);
    }

    boolean ended() {
        return phase == Phase.GONE || phase == Phase.FAILED;
    }

    boolean loads() {
        return phase == Phase.LOADING || phase == Phase.WARMING;
    }

    ServableState state() {
        return new ServableState(id, phase, reason, loader == null ? "" : loader.backend(), loadNanos, memoryBytes);
    }
}
