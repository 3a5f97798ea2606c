// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.placement;

import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;

/** What the placement knows about one pod. Confined to the owner of the {@link PoolPlacement}. */
final class PodState {
    final PooledPod pod;
    final PodMemory memory;
    final PodLoad load;

    /** Loads that wait, the most urgent first. */
    final TreeSet<LoadTask> queue = new TreeSet<>();

    /** Closed copies whose last requests have not ended yet. */
    final List<ModelCopy> retiring = new ArrayList<>();

    int loading;

    /** The bytes of the loads that wait. */
    long promised;

    boolean draining;

    /** When the drain began. */
    long drainingSince;

    /** Busy workers that the models of this pod ask for; set by each tick, and raised by each placement in between. */
    double demand;

    /** When the least recently used of its copies was used, as an age; set by each tick. 0 when nothing can be evicted. */
    long age;

    PodState(PooledPod pod) {
        this.pod = pod;
        this.memory = new PodMemory(pod.memoryBytes());
        this.load = new PodLoad(pod);
    }

    String name() {
        return pod.name();
    }

    /** The bytes that are used, or will be by the loads that wait. */
    long committed() {
        return memory.used() + promised;
    }

    /** Whether a model fits without an eviction. */
    boolean hasFree(long bytes) {
        return memory.limit() - committed() >= bytes;
    }

    /** Loads that run or wait. */
    int pending() {
        return loading + queue.size();
    }
}
