// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.testing.fleet;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;

/**
 * Pods that each keep their own models by least recent use, as the strategies beside Nereid's have them. A copy with requests
 * in flight is not evicted.
 */
final class LruPods {
    /** One pod. */
    static final class Pod {
        final int number;

        /** Loaded models and when they were used last, the least recently used first. */
        final LinkedHashMap<Integer, Long> loaded = new LinkedHashMap<>(64, 0.75f, true);

        final Map<Integer, Integer> inFlight = new HashMap<>();
        final Deque<Integer> waiting = new ArrayDeque<>();
        final Set<Integer> coming = new HashSet<>();
        final Set<Integer> leaving = new HashSet<>();
        int loading;
        int requests;
        long used;
        boolean draining;

        Pod(int number) {
            this.number = number;
        }

        /** When its least recently used model was used last; now without models. */
        long oldest(long now) {
            for (long use : loaded.values()) {
                return use;
            }
            return now;
        }
    }

    private final FleetScenario scenario;
    private final FleetWorkload workload;
    final Map<Integer, Pod> pods = new LinkedHashMap<>();

    LruPods(FleetScenario scenario, FleetWorkload workload) {
        this.scenario = scenario;
        this.workload = workload;
    }

    boolean begin(Pod pod, int model, long now) {
        if (!pod.loaded.containsKey(model)) {
            return false;
        }
        pod.loaded.put(model, now);
        pod.inFlight.merge(model, 1, Integer::sum);
        pod.requests++;
        return true;
    }

    void end(int number, int model) {
        Pod pod = pods.get(number);
        if (pod != null) {
            pod.requests--;
            pod.inFlight.merge(model, -1, (a, b) -> a + b == 0 ? null : a + b);
        }
    }

    boolean want(Pod pod, int model) {
        if (pod.loaded.containsKey(model) || !pod.coming.add(model)) {
            return false;
        }
        pod.waiting.add(model);
        return true;
    }

    void loaded(Pod pod, int model, long used) {
        pod.loading--;
        pod.coming.remove(model);
        pod.loaded.put(model, used);
    }

    void unloaded(Pod pod, int model) {
        if (pod.leaving.remove(model)) {
            pod.used -= workload.bytes(model);
        }
    }

    void evict(Pod pod, int model, FleetStrategy.Orders orders) {
        if (pod.loaded.remove(model) != null) {
            pod.leaving.add(model);
            orders.unload(model, pod.number);
        }
    }

    /** Starts the loads that slots and memory permit; the least recently used idle models go for them. */
    void pump(FleetStrategy.Orders orders) {
        for (Pod pod : pods.values()) {
            while (pod.loading < scenario.slots() && !pod.waiting.isEmpty()) {
                int model = pod.waiting.element();
                long missing = pod.used + workload.bytes(model) - scenario.podBytes();
                for (int leaving : pod.leaving) {
                    missing -= workload.bytes(leaving);
                }
                Iterator<Integer> oldest = pod.loaded.keySet().iterator();
                while (missing > 0 && oldest.hasNext()) {
                    int victim = oldest.next();
                    if (!pod.inFlight.containsKey(victim)) {
                        oldest.remove();
                        pod.leaving.add(victim);
                        orders.unload(victim, pod.number);
                        missing -= workload.bytes(victim);
                    }
                }
                if (pod.used + workload.bytes(model) > scenario.podBytes()) {
                    break;
                }
                pod.waiting.remove();
                pod.used += workload.bytes(model);
                pod.loading++;
                orders.load(model, pod.number);
            }
        }
    }
}
