// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle.policy;

import io.nereid.spi.ServableState.Phase;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Decides the next load or unload of one model during a version transition (TensorFlow Serving:
 * {@code AspiredVersionPolicy}). Implementations are pure functions without state: the manager calls them after every
 * change, also while earlier loads and unloads are in progress.
 *
 * <pre>{@code
 * ManagerOptions options = ManagerOptions.DEFAULT.withPolicy(AspiredVersionPolicy.RESOURCE_PRESERVING);
 * }</pre>
 */
public interface AspiredVersionPolicy {
    /**
     * Loads the new version before it unloads the old one: no gap in availability, but two versions in memory for a
     * while.
     */
    AspiredVersionPolicy AVAILABILITY_PRESERVING = new AvailabilityPreservingPolicy();

    /**
     * Like {@link #AVAILABILITY_PRESERVING}, but the new versions of an available model become available together, when
     * all of them have loaded. If one of them fails, all new versions are dropped and the old ones stay available.
     */
    AspiredVersionPolicy ALL_OR_NOTHING = new AllOrNothingPolicy();

    /** Unloads the old version before it loads the new one: a gap in availability, but never two versions in memory. */
    AspiredVersionPolicy RESOURCE_PRESERVING = new ResourcePreservingPolicy();

    /** Returns the next step for a model with these versions, which are in any order; null for no step. */
    @Nullable Step next(List<VersionSnapshot> versions);

    /** Returns whether a changed version is reloaded while the loaded one stays available. */
    boolean reloadsBeside();

    /** Returns whether the new versions of an available model become available together or not at all. */
    boolean allOrNothing();

    /**
     * The state of one version. Immutable.
     *
     * @param version its number
     * @param phase its phase
     * @param aspired whether the source aspires it
     */
    record VersionSnapshot(long version, Phase phase, boolean aspired) {}

    /**
     * A load or an unload. Immutable.
     *
     * @param kind what to do
     * @param index the version, as an index into the given list
     */
    record Step(Kind kind, int index) {
        /** The kind of a step. */
        public enum Kind {
            /** Load a version that is TRACKED. */
            LOAD,
            /** Drain and unload a version that is AVAILABLE. */
            UNLOAD
        }
    }
}
