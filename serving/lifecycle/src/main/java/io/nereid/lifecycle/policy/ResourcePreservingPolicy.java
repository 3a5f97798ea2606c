// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle.policy;

import io.nereid.spi.ServableState.Phase;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * TensorFlow Serving's {@code ResourcePreservingPolicy}: unloads the versions that are no longer aspired, waits until
 * they are gone, then loads the highest aspired version. Immutable.
 */
final class ResourcePreservingPolicy implements AspiredVersionPolicy {
    @Override
    public @Nullable Step next(List<VersionSnapshot> versions) {
        int highestNew = -1;
        boolean notAspiredLeft = false;
        for (int i = 0; i < versions.size(); i++) {
            VersionSnapshot v = versions.get(i);
            if (!v.aspired()) {
                if (v.phase() == Phase.AVAILABLE) {
                    return new Step(Step.Kind.UNLOAD, i);
                }
                notAspiredLeft |= v.phase() != Phase.GONE && v.phase() != Phase.FAILED;
            } else if (v.phase() == Phase.TRACKED
                    && (highestNew < 0 || v.version() > versions.get(highestNew).version())) {
                highestNew = i;
            }
        }
        return notAspiredLeft || highestNew < 0 ? null : new Step(Step.Kind.LOAD, highestNew);
    }

    @Override
    public boolean reloadsBeside() {
        return false;
    }

    @Override
    public boolean allOrNothing() {
        return false;
    }
}
