// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.pool;

import io.nereid.control.core.ObservedState.Phase;
import io.nereid.control.core.ObservedState.Traffic;
import io.nereid.control.core.Workload;
import io.nereid.control.core.WorkloadState;
import io.nereid.control.kubernetes.cluster.Owner;
import io.nereid.control.kubernetes.pool.SharedForms.SharedModel;

/**
 * A service without a model, whose TrainedModels are models of a pool: it is ready when the pool has a pod. Thread-safe;
 * the state is written by one thread.
 */
final class PooledParent {
    final Owner service;
    final Workload workload;
    final SharedModel model;

    /** Whether the pool had a pod before, so that the service stays ready while it gets another one. */
    private volatile boolean proven;

    private volatile WorkloadState state;

    /** @param model the pool, without a storage URI */
    PooledParent(Owner service, Workload workload, SharedModel model, boolean proven) {
        this.service = service;
        this.workload = workload;
        this.model = model;
        this.proven = proven;
        this.state = state(proven, 0);
    }

    private static WorkloadState state(boolean proven, int pods) {
        Phase phase = pods > 0 ? Phase.READY : proven ? Phase.STANDBY : Phase.PENDING;
        return new WorkloadState(phase, Math.min(1, pods), 1, null, Traffic.NONE);
    }

    boolean isOf(String namespace, String pool) {
        return service.namespace().equals(namespace) && model.pool().equals(pool);
    }

    /** Whether it had a pod. */
    boolean isProven() {
        return proven;
    }

    /** The state for the planner. */
    WorkloadState state() {
        return state;
    }

    /** Takes the number of the pool's pods that serve; returns whether the state has changed. */
    boolean update(int pods) {
        proven |= pods > 0;
        WorkloadState now = state(proven, pods);
        boolean changed = !now.equals(state);
        state = now;
        return changed;
    }
}
