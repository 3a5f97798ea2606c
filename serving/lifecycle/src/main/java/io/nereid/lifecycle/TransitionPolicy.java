// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle;

import io.nereid.spi.ServableState.Phase;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Which single step comes next for one model. Implementations are pure and stateless: they are asked after every change,
 * also while steps are under way.
 */
public interface TransitionPolicy {
    /** Loads the new before it gives up the old: no gap in service, two versions in memory for a while. */
    TransitionPolicy AVAILABILITY_PRESERVING = new AvailabilityPreserving();

    /**
     * As {@link #AVAILABILITY_PRESERVING}, and what is new of a model that serves takes over together: only when all of it
     * has loaded. When one version fails, all new ones are dropped and the old ones go on.
     */
    TransitionPolicy ALL_OR_NOTHING = new AllOrNothing();

    /** Gives up the old before it loads the new: a gap in service, never two versions in memory. */
    TransitionPolicy RESOURCE_PRESERVING = new ResourcePreserving();

    /** The next step for a model whose versions stand like this, in any order; null for none. */
    @Nullable Step next(List<VersionSnapshot> versions);

    /** Whether a changed version is loaded while its former self still serves. */
    boolean reloadsBeside();

    /** Whether new versions of a model that serves are shown together or not at all. */
    boolean allOrNothing();

    /**
     * How one version stands. Immutable.
     *
     * @param version its number
     * @param phase its phase
     * @param aspired whether the source wants it
     */
    record VersionSnapshot(long version, Phase phase, boolean aspired) {}

    /**
     * One step. Immutable.
     *
     * @param kind what to do
     * @param index with which of the versions given
     */
    record Step(Kind kind, int index) {
        /** The steps there are. */
        public enum Kind {
            /** Load a version that is TRACKED. */
            LOAD,
            /** Drain and unload a version that is AVAILABLE. */
            UNLOAD
        }
    }
}
