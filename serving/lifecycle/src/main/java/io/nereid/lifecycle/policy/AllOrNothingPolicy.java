// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle.policy;

import io.nereid.spi.ServableState.Phase;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Loads all aspired versions, highest first, and unloads the versions that are no longer aspired only when all aspired
 * ones are available. Immutable.
 */
final class AllOrNothingPolicy implements AspiredVersionPolicy {
    @Override
    public @Nullable Step next(List<VersionSnapshot> versions) {
        int lowestNotAspired = -1;
        int highestNew = -1;
        boolean allAvailable = true;
        for (int i = 0; i < versions.size(); i++) {
            VersionSnapshot v = versions.get(i);
            if (v.aspired()) {
                allAvailable &= v.phase() == Phase.AVAILABLE;
                if (v.phase() == Phase.TRACKED
                        && (highestNew < 0
                                || v.version() > versions.get(highestNew).version())) {
                    highestNew = i;
                }
            } else if (v.phase() == Phase.AVAILABLE
                    && (lowestNotAspired < 0
                            || v.version() < versions.get(lowestNotAspired).version())) {
                lowestNotAspired = i;
            }
        }
        if (highestNew >= 0) {
            return new Step(Step.Kind.LOAD, highestNew);
        }
        return lowestNotAspired < 0 || !allAvailable ? null : new Step(Step.Kind.UNLOAD, lowestNotAspired);
    }

    @Override
    public boolean reloadsBeside() {
        return true;
    }

    @Override
    public boolean allOrNothing() {
        return true;
    }
}
