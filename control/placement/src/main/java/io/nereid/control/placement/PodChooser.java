// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.placement;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.util.Comparator;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Chooses the pod for a load: the first one on the ring that is within the bounds. Four loads are bounded: requests, memory,
 * waiting loads, and the age of what would be evicted. Confined to the owner of the {@link PoolPlacement}.
 */
final class PodChooser {
    /** Below these shares of a pod imbalance does no harm, and stability counts more. */
    private static final double IDLE_SHARE = 0.2;

    private final PlacementSettings settings;
    private final HashRing.LoadBound bound;
    private final Map<String, PodState> pods;
    private HashRing ring;
    private double workers;
    private double memory;
    private double demand;
    private double pending;
    private double used;
    private long age;

    PodChooser(PlacementSettings settings, Map<String, PodState> pods) {
        this.settings = settings;
        this.bound = new HashRing.LoadBound(settings.excess());
        this.pods = pods;
        this.ring = HashRing.of(Map.of(), settings.seed());
    }

    HashRing ring() {
        return ring;
    }

    void ring(HashRing changed) {
        ring = changed;
    }

    /** The age of what is evicted, over the pods whose memory is full; {@link Long#MAX_VALUE} when none is full. */
    long age() {
        return age;
    }

    /** The mean load in busy workers that one worker has. */
    double utilisation() {
        return workers == 0 ? 0 : demand / workers;
    }

    /** The share of the pool's memory that is used. */
    double fill() {
        return memory == 0 ? 0 : used / memory;
    }

    /** Takes the sums over all pods that do not drain. */
    void refresh(long now) {
        workers = 0;
        memory = 0;
        demand = 0;
        pending = 0;
        used = 0;
        double ages = 0;
        int full = 0;
        for (PodState pod : pods.values()) {
            if (pod.draining) {
                continue;
            }
            workers += pod.pod.workers();
            memory += pod.memory.limit();
            demand += pod.demand;
            pending += pod.pending();
            used += pod.committed();
            Long oldest = pod.memory.oldestUse();
            pod.age = oldest == null ? 0 : Math.max(0, now - oldest);
            if (isFull(pod) && oldest != null) {
                ages += pod.age;
                full++;
            }
        }
        age = full == 0 ? Long.MAX_VALUE : (long) (ages / full);
    }

    /** Counts a load that was given to a pod since the last {@link #refresh}. */
    void given(PodState pod, ModelState model) {
        pod.demand += model.share();
        demand += model.share();
        pending++;
        if (pod.memory.free() >= model.bytes) {
            used += model.bytes;
        }
    }

    /**
     * The pod for another copy of a model, or null when it fits on none now.
     *
     * @param except a pod that is not chosen
     * @param before copies that were used since then may not be evicted for it; null for no such limit
     */
    @Nullable PodState choose(ModelState model, long now, @Nullable String except, @Nullable Long before) {
        String bounded = ring.first(model.place, name -> {
            PodState pod = pods.get(name);
            return pod != null && !name.equals(except) && bounded(pod, model) && can(pod, model, now, before);
        });
        if (bounded != null) {
            return pods.get(bounded);
        }
        // All are beyond a bound, for example because one model asks for more than the average pod has.
        return pods.values().stream()
                .filter(pod -> !pod.name().equals(except) && can(pod, model, now, before))
                .min(Comparator.comparingDouble((PodState pod) -> (double) pod.pending() / pod.pod.loadSlots())
                        .thenComparingLong(pod -> pod.hasFree(model.bytes) ? Long.MIN_VALUE : -pod.age)
                        .thenComparingDouble(pod -> pod.demand / pod.pod.workers())
                        .thenComparingDouble(pod -> (double) pod.committed() / pod.memory.limit())
                        .thenComparing(PodState::name))
                .orElse(null);
    }

    /** The refusal of a model that {@link #choose} finds no pod for. */
    ServingException refused(ModelState model) {
        PodState best = pods.values().stream()
                .filter(pod -> !pod.draining)
                .max(Comparator.comparingLong((PodState pod) -> pod.memory.attainable(null)))
                .orElse(null);
        return ServingException.of(
                ErrorCode.RESOURCE_EXHAUSTED,
                "model '" + model.name() + "' needs " + model.bytes + " bytes, and none of "
                        + ring.pods().size()
                        + " pods can free that"
                        + (best == null ? "" : "; the best, '" + best.name() + "', has " + best.memory.describe()),
                "raise the memory of the pods or their number, or unpin models");
    }

    /** Whether a pod can have the model at all. */
    private boolean can(PodState pod, ModelState model, long now, @Nullable Long before) {
        if (pod.draining
                || model.isOn(pod.name())
                || pod.memory.holds(model.name())
                || model.bytes > pod.memory.limit()) {
            return false;
        }
        Long failed = model.failures.get(pod.name());
        if (failed != null && now - failed < settings.retryFailed().toNanos()) {
            return false;
        }
        return pod.memory.free() >= model.bytes || pod.memory.attainable(before) >= model.bytes;
    }

    private boolean bounded(PodState pod, ModelState model) {
        PooledPod p = pod.pod;
        double share = p.workers() / workers;
        if (pod.pending() + 1 > bound.limit(pending + 1, share, 1, p.loadSlots())) {
            return false;
        }
        double asked = model.share();
        if (pod.demand + asked > bound.limit(demand + asked, share, 1, IDLE_SHARE * p.workers())) {
            return false;
        }
        if (pod.hasFree(model.bytes)) {
            double bytes = pod.committed() + model.bytes;
            return bytes
                    <= bound.limit(used + model.bytes, pod.memory.limit(), memory, IDLE_SHARE * pod.memory.limit());
        }
        // Full pods are even when what they evict is of one age: a pod that evicts younger copies has too many in use.
        return age == Long.MAX_VALUE || pod.age >= age / (1 + settings.excess());
    }

    private static boolean isFull(PodState pod) {
        return pod.memory.free() < pod.memory.limit() / 20;
    }
}
