// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine;

import io.nereid.backend.BackendModel;
import io.nereid.base.Clock;
import io.nereid.scheduling.DevicePool;
import io.nereid.spi.ServableId;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** Makes servables on the one device pool, and knows those whose figures are shown. Thread-safe. */
final class Servables {
    private final DevicePool pool;
    private final int maxQueueSize;
    private final Clock clock;
    private final Set<EngineServable> shown = ConcurrentHashMap.newKeySet();

    Servables(DevicePool pool, int maxQueueSize, Clock clock) {
        this.pool = pool;
        this.maxQueueSize = maxQueueSize;
        this.clock = clock;
    }

    ModelServable make(ServableId id, BackendModel model) {
        return new ModelServable(id, model, pool, maxQueueSize, clock);
    }

    Clock clock() {
        return clock;
    }

    void show(EngineServable servable) {
        shown.add(servable);
    }

    void hide(EngineServable servable) {
        shown.remove(servable);
    }

    /** By name and version. */
    Collection<EngineServable> shown() {
        List<EngineServable> all = new java.util.ArrayList<>(shown);
        all.sort(Comparator.comparing(s -> s.metadata().id()));
        return all;
    }
}
