// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle.policy;

import io.nereid.spi.ServableState.Phase;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * TensorFlow Serving's {@code AvailabilityPreservingPolicy}. Unloads a version that is no longer aspired if an aspired
 * version is available, if no version is aspired, or if several such versions are available; otherwise loads the
 * highest aspired version. One old version thus stays available until a new one has loaded. Immutable.
 */
final class AvailabilityPreservingPolicy implements AspiredVersionPolicy {
    @Override
    public @Nullable Step next(List<VersionSnapshot> versions) {
        int lowestNotAspired = -1;
        int highestNew = -1;
        int notAspired = 0;
        boolean anyAspired = false;
        boolean aspiredAvailable = false;
        for (int i = 0; i < versions.size(); i++) {
            VersionSnapshot v = versions.get(i);
            boolean available = v.phase() == Phase.AVAILABLE;
            if (v.aspired()) {
                anyAspired = true;
                aspiredAvailable |= available;
                if (v.phase() == Phase.TRACKED
                        && (highestNew < 0
                                || v.version() > versions.get(highestNew).version())) {
                    highestNew = i;
                }
            } else if (available) {
                notAspired++;
                if (lowestNotAspired < 0
                        || v.version() < versions.get(lowestNotAspired).version()) {
                    lowestNotAspired = i;
                }
            }
        }
        if (lowestNotAspired >= 0 && (!anyAspired || aspiredAvailable || notAspired > 1)) {
            return new Step(Step.Kind.UNLOAD, lowestNotAspired);
        }
        return highestNew < 0 ? null : new Step(Step.Kind.LOAD, highestNew);
    }

    @Override
    public boolean reloadsBeside() {
        return true;
    }

    @Override
    public boolean allOrNothing() {
        return false;
    }
}
