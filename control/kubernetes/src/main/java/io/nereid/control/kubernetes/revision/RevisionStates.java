// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.revision;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.core.ObservedState.Failure;
import io.nereid.control.core.ObservedState.Phase;
import io.nereid.control.core.ObservedState.Traffic;
import io.nereid.control.core.WorkloadState;
import io.nereid.control.kubernetes.cluster.Trees;
import io.nereid.control.kubernetes.pod.ContainerFailure;
import java.time.DateTimeException;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Judges the state of a revision by its Deployment and its pods. Stateless. */
public final class RevisionStates {
    private RevisionStates() {}

    /** The number of replicas that a Deployment shall have. */
    public static int desired(ObjectNode deployment) {
        return deployment.path("spec").path("replicas").asInt(1);
    }

    /** The number of its pods that take requests. */
    public static int ready(ObjectNode deployment) {
        return deployment.path("status").path("readyReplicas").asInt(0);
    }

    /** Whether a pod is ready and does not end. */
    public static boolean isReady(ObjectNode pod) {
        return !pod.path("metadata").hasNonNull("deletionTimestamp") && Trees.isTrue(pod, "Ready");
    }

    /**
     * The state of a revision.
     *
     * @param deployment its Deployment
     * @param pods its pods
     * @param waking whether it starts again after it was at zero, which does not make its service unready
     * @param traffic statistics of its recent requests
     */
    public static WorkloadState of(
            ObjectNode deployment, Collection<ObjectNode> pods, boolean waking, Traffic traffic) {
        int desired = desired(deployment);
        int ready = ready(deployment);
        if (ready > 0) {
            return new WorkloadState(Phase.READY, ready, desired, null, traffic);
        }
        if (desired == 0) {
            return new WorkloadState(Phase.STANDBY, 0, 0, null, traffic);
        }
        Failure failure = failure(deployment, pods);
        if (failure != null) {
            return new WorkloadState(Phase.FAILED, 0, desired, failure, traffic);
        }
        Phase phase = waking ? Phase.STANDBY : pods.isEmpty() ? Phase.PENDING : Phase.LOADING;
        return new WorkloadState(phase, 0, desired, null, traffic);
    }

    /**
     * The state of a revision whose model is in a pool. When the operator has just started, a pool may not know the model yet; one
     * that was ready before is served, if need be after a load.
     *
     * @param state what the pool knows
     * @param readyBefore whether the revision is the last one that was ready, by the status of its service
     */
    public static WorkloadState pooled(WorkloadState state, boolean readyBefore) {
        return state.phase() == Phase.PENDING && readyBefore
                ? new WorkloadState(Phase.STANDBY, state.replicas(), state.desired(), null, state.traffic())
                : state;
    }

    private static @Nullable Failure failure(ObjectNode deployment, Collection<ObjectNode> pods) {
        List<ObjectNode> newest = new ArrayList<>(pods);
        newest.sort(Comparator.comparing((ObjectNode pod) ->
                        pod.path("metadata").path("creationTimestamp").asText(""))
                .reversed());
        for (ObjectNode pod : newest) {
            if (pod.path("metadata").hasNonNull("deletionTimestamp")) {
                continue;
            }
            Failure failure = failure(pod);
            if (failure != null) {
                return failure;
            }
        }
        for (JsonNode condition : deployment.path("status").path("conditions")) {
            String type = condition.path("type").asText();
            String status = condition.path("status").asText();
            if (type.equals("ReplicaFailure") && status.equals("True")
                    || type.equals("Progressing") && status.equals("False")) {
                return new Failure(
                        "RuntimeUnhealthy",
                        condition
                                .path("message")
                                .asText(condition.path("reason").asText()),
                        time(condition.path("lastTransitionTime").asText(""), deployment),
                        null);
            }
        }
        return null;
    }

    private static @Nullable Failure failure(ObjectNode pod) {
        for (String containers : List.of("initContainerStatuses", "containerStatuses")) {
            for (JsonNode container : pod.path("status").path(containers)) {
                ContainerFailure found = ContainerFailure.of(container);
                if (found != null) {
                    String message = found.message().isEmpty()
                            ? "container " + container.path("name").asText() + " ended with an error and no message"
                            : found.message();
                    return new Failure("ModelLoadFailed", message, time(found.time(), pod), found.exitCode());
                }
            }
        }
        return null;
    }

    /** The time, or that at which the object was made: it must be the same with every observation. */
    private static Instant time(String text, ObjectNode object) {
        for (String one :
                List.of(text, object.path("metadata").path("creationTimestamp").asText(""))) {
            try {
                if (!one.isEmpty()) {
                    return Instant.parse(one);
                }
            } catch (DateTimeException e) {
                // the other one
            }
        }
        return Instant.EPOCH;
    }
}
