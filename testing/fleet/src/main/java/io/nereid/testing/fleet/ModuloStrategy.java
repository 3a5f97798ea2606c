// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.testing.fleet;

import java.util.ArrayList;
import java.util.List;

/** Plain caches: the pod of a model is its hash modulo the number of pods, and each pod keeps the least recently used. */
final class ModuloStrategy implements FleetStrategy {
    private final LruPods caches;
    private final List<LruPods.Pod> ring = new ArrayList<>();

    ModuloStrategy(FleetScenario scenario, FleetWorkload workload) {
        this.caches = new LruPods(scenario, workload);
    }

    @Override
    public String name() {
        return "LRU, hash modulo pods";
    }

    @Override
    public void joined(int pod, long now) {
        LruPods.Pod added = new LruPods.Pod(pod);
        caches.pods.put(pod, added);
        ring.add(added);
    }

    @Override
    public void lost(int pod, long now) {
        ring.remove(caches.pods.remove(pod));
    }

    @Override
    public void drain(int pod, long now) {
        LruPods.Pod leaving = caches.pods.get(pod);
        if (leaving != null) {
            leaving.draining = true;
            leaving.waiting.clear();
            ring.remove(leaving);
        }
    }

    @Override
    public boolean drained(int pod) {
        LruPods.Pod leaving = caches.pods.get(pod);
        return leaving == null || leaving.requests == 0;
    }

    @Override
    public int route(int model, long random, long now) {
        LruPods.Pod pod = home(model);
        return caches.begin(pod, model, now) ? pod.number : -1;
    }

    @Override
    public void missed(int model, long now) {
        caches.want(home(model), model);
    }

    @Override
    public void done(int model, int pod, long busyNanos, long now) {
        caches.end(pod, model);
    }

    @Override
    public void loaded(int model, int pod, long now) {
        LruPods.Pod on = caches.pods.get(pod);
        if (on != null) {
            caches.loaded(on, model, now);
        }
    }

    @Override
    public void unloaded(int model, int pod, long now) {
        LruPods.Pod on = caches.pods.get(pod);
        if (on != null) {
            caches.unloaded(on, model);
        }
    }

    @Override
    public void tick(long now) {}

    @Override
    public void orders(Orders orders, long now) {
        caches.pump(orders);
    }

    @Override
    public long used(int pod) {
        LruPods.Pod on = caches.pods.get(pod);
        return on == null ? 0 : on.used;
    }

    private LruPods.Pod home(int model) {
        long h = (model + 1) * 0x9e3779b97f4a7c15L;
        h = (h ^ (h >>> 32)) * 0xbf58476d1ce4e5b9L;
        return ring.get((int) Long.remainderUnsigned(h ^ (h >>> 29), ring.size()));
    }
}
