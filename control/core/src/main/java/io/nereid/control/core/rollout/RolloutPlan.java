// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core.rollout;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.core.ObservedState;
import io.nereid.control.core.Revision;
import io.nereid.control.core.Route.Backend;
import io.nereid.control.core.Workload;
import io.nereid.control.core.WorkloadState;
import io.nereid.control.core.component.WorkloadPlan;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * The planned rollout.
 *
 * @param created the revision of the current specification; empty for none
 * @param ready whether that revision is the latest ready one and has not failed
 * @param state the state of that revision; after a rollback, of the one that replaces it
 * @param backend the targets of the traffic; null when no revision is ready
 * @param status the component's status, without URLs
 * @param rolledBack the reason why the newest revision was rolled back; null when it was not
 * @param canaries the canaries of {@code spec.canary}
 * @param canaryStates the states of the canaries by name
 * @param answering whether a revision with a share of the traffic is ready now
 */
public record RolloutPlan(
        WorkloadPlan plan,
        String created,
        boolean ready,
        WorkloadState state,
        @Nullable Backend backend,
        List<Workload> workloads,
        List<Revision> revisions,
        ObjectNode status,
        @Nullable String rolledBack,
        List<RolloutPlanner.CanaryShare> canaries,
        Map<String, WorkloadState> canaryStates,
        boolean answering,
        @Nullable Duration requeue) {
    /** The state of a canary. */
    public WorkloadState canaryState(RolloutPlanner.CanaryShare canary) {
        return Objects.requireNonNull(canaryStates.get(canary.name()));
    }

    /** Whether a canary is ready or scaled to zero. */
    public boolean canaryReady(RolloutPlanner.CanaryShare canary) {
        ObservedState.Phase phase = canaryState(canary).phase();
        return phase == ObservedState.Phase.READY || phase == ObservedState.Phase.STANDBY;
    }
}
