// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.pool;

import io.nereid.control.core.ObservedState.Failure;
import io.nereid.control.core.ObservedState.Phase;
import io.nereid.control.core.ObservedState.Traffic;
import io.nereid.control.core.WorkloadState;
import io.nereid.control.kubernetes.cluster.Owner;
import io.nereid.control.kubernetes.pool.SharedForms.SharedModel;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * A service whose model is in a pool, or a TrainedModel of a service whose models are. Its fields are the {@link ModelPool}'s and confined to its thread; the state may be
 * read by any thread.
 */
final class PooledService {
    final Owner owner;

    /** The name of the InferenceService; that of the owner, unless it is a TrainedModel. */
    final String service;

    Set<String> revisions;
    SharedModel model;

    /** Whether it was loaded once, so that the next request may load it again. */
    boolean proven;

    /** Why its last load has failed; null after a success. */
    @Nullable Failure failure;

    /** What it waits for; null for nothing. */
    @Nullable Failure waiting;

    /** Requests a second, as the gateways reported them last. */
    double rate;

    /** When it had a request last, in nanoseconds of the clock; only with {@link #used}. */
    long usedAt;

    boolean used;

    /** When a failed load is tried again, in nanoseconds of the clock. */
    long retryAt;

    int loading;

    int unloading;

    /** Whether the pods of the model are still to be written. */
    boolean unpublished;

    private volatile WorkloadState state = new WorkloadState(Phase.PENDING, 0, 1, null, Traffic.NONE);

    PooledService(Owner owner, Set<String> revisions, SharedModel model) {
        this(owner, owner.name(), revisions, model);
    }

    PooledService(Owner owner, String service, Set<String> revisions, SharedModel model) {
        this.owner = owner;
        this.service = service;
        this.revisions = Set.copyOf(revisions);
        this.model = model;
    }

    /** The name of the model in the pods. */
    String name() {
        return owner.name();
    }

    /** The state for the planner. */
    WorkloadState state() {
        return state;
    }

    /** Takes the state from the fields; returns whether it has changed. */
    boolean update(int copies) {
        Phase phase;
        Failure why = failure;
        if (why != null) {
            phase = Phase.FAILED;
        } else if (copies > 0) {
            phase = Phase.READY;
        } else if (proven) {
            phase = Phase.STANDBY;
        } else if (loading > 0) {
            phase = Phase.LOADING;
        } else {
            why = waiting;
            phase = why == null ? Phase.PENDING : Phase.FAILED;
        }
        WorkloadState now = new WorkloadState(phase, copies, Math.max(1, copies), why, Traffic.NONE);
        boolean changed = !now.equals(state);
        state = now;
        return changed;
    }
}
