// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle;

import io.nereid.spi.Loader;
import io.nereid.spi.ServableId;
import io.nereid.spi.ServableState;
import io.nereid.spi.ServableState.Phase;
import org.jspecify.annotations.Nullable;

/** One load of one version, from first mention to its end. Confined to the deciding thread, but for {@code unwanted}. */
final class Version {
    final ServableId id;
    final @Nullable Loader loader;
    final String fingerprint;
    Phase phase = Phase.TRACKED;
    boolean aspired = true;

    @Nullable String reason;

    long loadNanos;
    long memoryBytes = -1;

    /** Bytes booked in the ledger; handed along with the version from thread to thread. */
    long booked;

    int attempts;

    @Nullable Live live;

    /** Its next self, being loaded beside it. */
    @Nullable Version successor;

    /** The version that this one is to succeed. */
    @Nullable Version predecessor;

    /** Fingerprint of the last successor that failed. */
    @Nullable String rejected;

    /** Read by the load pool: give up at the next chance. */
    volatile boolean unwanted;

    Version(ServableId id, @Nullable Loader loader) {
        this.id = id;
        this.loader = loader;
        this.fingerprint = loader == null ? "" : loader.fingerprint();
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
