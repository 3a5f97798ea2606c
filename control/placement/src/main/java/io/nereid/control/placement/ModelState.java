// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.placement;

import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

/** What the placement knows about one model. Confined to the owner of the {@link PoolPlacement}. */
final class ModelState {
    final PooledModel model;
    final long place;
    final ModelUsage usage;
    final ModelDemand demand;

    /** Open copies by pod. */
    final Map<String, ModelCopy> copies = new TreeMap<>();

    /** Loads that wait, by pod. */
    final Map<String, LoadTask> waiting = new TreeMap<>();

    /** Pods that load it now. */
    final Set<String> loading = new TreeSet<>();

    /** Pods on which a load has failed, and when. */
    final Map<String, Long> failures = new HashMap<>();

    long bytes;
    int desired = 1;

    ModelState(PooledModel model, long place, PlacementSettings settings, long now) {
        this.model = model;
        this.place = place;
        this.bytes = model.declaredBytes();
        // Never used so far: older than any window.
        this.usage = new ModelUsage(now - 2 * settings.inUse().toNanos());
        this.demand = new ModelDemand(settings.fast(), settings.slow());
    }

    String name() {
        return model.name();
    }

    boolean isOn(String pod) {
        return copies.containsKey(pod) || waiting.containsKey(pod) || loading.contains(pod);
    }

    /** Copies that exist or will soon. */
    int coming() {
        return copies.size() + waiting.size() + loading.size();
    }

    boolean inUse(long now, PlacementSettings settings) {
        return model.pinned() || now - usage.lastUsed() <= settings.inUse().toNanos();
    }

    /** The load of one copy. */
    double share() {
        return demand.fastLoad() / Math.max(1, coming());
    }
}
