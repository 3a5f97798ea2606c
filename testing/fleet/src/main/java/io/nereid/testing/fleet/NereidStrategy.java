// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.testing.fleet;

import io.nereid.control.placement.ModelCopy;
import io.nereid.control.placement.PlacementAction;
import io.nereid.control.placement.PlacementSettings;
import io.nereid.control.placement.PodFigures;
import io.nereid.control.placement.PoolPlacement;
import io.nereid.control.placement.PooledModel;
import io.nereid.control.placement.PooledPod;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.Map;

/** {@link PoolPlacement}, the classes that serve. */
final class NereidStrategy implements FleetStrategy {
    private final FleetScenario scenario;
    private final FleetWorkload workload;
    private final PoolPlacement placement;
    private final String[] names;
    private final Map<String, Integer> numbers = new HashMap<>();
    private final Map<Long, Deque<ModelCopy>> taken = new HashMap<>();

    NereidStrategy(FleetScenario scenario, FleetWorkload workload, PlacementSettings settings) {
        this.scenario = scenario;
        this.workload = workload;
        this.placement = new PoolPlacement(settings);
        this.names = new String[scenario.models()];
        for (int i = 0; i < names.length; i++) {
            names[i] = "model-" + i;
            numbers.put(names[i], i);
            placement.add(new PooledModel(names[i], workload.bytes(i), false), 0);
        }
    }

    @Override
    public String name() {
        return "Nereid";
    }

    @Override
    public void joined(int pod, long now) {
        placement.join(new PooledPod(pod(pod), scenario.podBytes(), scenario.workers(), scenario.slots()), now);
    }

    @Override
    public void lost(int pod, long now) {
        placement.lost(pod(pod), now);
    }

    @Override
    public void drain(int pod, long now) {
        placement.drain(pod(pod), now);
    }

    @Override
    public boolean drained(int pod) {
        return placement.isDrained(pod(pod));
    }

    @Override
    public int route(int model, long random, long now) {
        ModelCopy copy = placement.table().acquire(names[model], random, now);
        if (copy == null) {
            return -1;
        }
        int pod = number(copy.pod());
        taken.computeIfAbsent(key(model, pod), k -> new ArrayDeque<>()).add(copy);
        return pod;
    }

    @Override
    public void missed(int model, long now) {
        placement.request(names[model], now);
    }

    @Override
    public void done(int model, int pod, long busyNanos, long now) {
        Deque<ModelCopy> copies = taken.get(key(model, pod));
        if (copies != null) {
            copies.remove().release(busyNanos);
            if (copies.isEmpty()) {
                taken.remove(key(model, pod));
            }
        }
    }

    @Override
    public void loaded(int model, int pod, long now) {
        PodFigures figures = placement.figures(pod(pod));
        if (figures != null) {
            placement.loaded(names[model], pod(pod), workload.bytes(model), now);
        }
    }

    @Override
    public void unloaded(int model, int pod, long now) {
        placement.unloaded(names[model], pod(pod), now);
    }

    @Override
    public void tick(long now) {
        placement.tick(now);
    }

    @Override
    public void orders(Orders orders, long now) {
        for (PlacementAction action : placement.actions(now)) {
            Integer model = numbers.get(action.model());
            if (model != null && action.kind() == PlacementAction.Kind.LOAD) {
                orders.load(model, number(action.pod()));
            } else if (model != null) {
                orders.unload(model, number(action.pod()));
            }
        }
    }

    @Override
    public long used(int pod) {
        PodFigures figures = placement.figures(pod(pod));
        return figures == null ? 0 : figures.usedBytes();
    }

    private static long key(int model, int pod) {
        return (long) model << 32 | pod;
    }

    private static String pod(int number) {
        return "pod-" + number;
    }

    private static int number(String pod) {
        return Integer.parseInt(pod.substring("pod-".length()));
    }
}
