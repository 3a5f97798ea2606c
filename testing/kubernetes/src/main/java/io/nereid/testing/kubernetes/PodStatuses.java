// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.testing.kubernetes;

import io.fabric8.kubernetes.api.model.Container;
import io.fabric8.kubernetes.api.model.ContainerStatus;
import io.fabric8.kubernetes.api.model.ContainerStatusBuilder;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.PodCondition;
import io.fabric8.kubernetes.api.model.PodConditionBuilder;
import io.fabric8.kubernetes.api.model.PodStatus;
import io.fabric8.kubernetes.api.model.PodStatusBuilder;
import io.nereid.base.Clock;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;

/** Statuses of pods as a kubelet reports them. Stateless. */
public final class PodStatuses {
    private PodStatuses() {}

    /** All init containers have ended, all containers run and are ready. */
    public static PodStatus ready(Pod pod, String address) {
        return running(pod, address, true);
    }

    /** All init containers have ended and all containers run; whether they are ready is given. */
    public static PodStatus running(Pod pod, String address, boolean ready) {
        List<ContainerStatus> inits = new ArrayList<>();
        for (Container container : pod.getSpec().getInitContainers()) {
            ContainerStatusBuilder status = status(container);
            if ("Always".equals(container.getRestartPolicy())) {
                inits.add(running(status, ready));
            } else {
                inits.add(status.withReady(true)
                        .withNewState()
                        .withNewTerminated()
                        .withExitCode(0)
                        .withReason("Completed")
                        .withStartedAt(now())
                        .withFinishedAt(now())
                        .endTerminated()
                        .endState()
                        .build());
            }
        }
        List<ContainerStatus> containers = new ArrayList<>();
        for (Container container : pod.getSpec().getContainers()) {
            containers.add(running(status(container), ready));
        }
        return base(pod, address, "Running", true, ready)
                .withInitContainerStatuses(inits)
                .withContainerStatuses(containers)
                .build();
    }

    /**
     * A container waits, as one whose image is missing or that crashes again and again.
     *
     * @param reason such as {@code ImagePullBackOff} or {@code CrashLoopBackOff}
     */
    public static PodStatus waiting(Pod pod, String address, String reason, String message) {
        List<ContainerStatus> containers = new ArrayList<>();
        for (Container container : pod.getSpec().getContainers()) {
            containers.add(status(container)
                    .withReady(false)
                    .withStarted(false)
                    .withNewState()
                    .withNewWaiting(message, reason)
                    .endState()
                    .build());
        }
        return base(pod, address, "Pending", true, false)
                .withContainerStatuses(containers)
                .build();
    }

    private static ContainerStatus running(ContainerStatusBuilder status, boolean ready) {
        return status.withReady(ready)
                .withStarted(true)
                .withNewState()
                .withNewRunning(now())
                .endState()
                .build();
    }

    private static ContainerStatusBuilder status(Container container) {
        return new ContainerStatusBuilder()
                .withName(container.getName())
                .withImage(container.getImage())
                .withImageID("test://" + container.getImage())
                .withContainerID("test://" + container.getName())
                .withRestartCount(0);
    }

    private static PodStatusBuilder base(Pod pod, String address, String phase, boolean initialized, boolean ready) {
        List<PodCondition> conditions = new ArrayList<>();
        conditions.add(condition("PodScheduled", true));
        conditions.add(condition("Initialized", initialized));
        conditions.add(condition("ContainersReady", ready));
        conditions.add(condition("Ready", ready));
        return new PodStatusBuilder()
                .withPhase(phase)
                .withPodIP(address)
                .addNewPodIP(address)
                .withHostIP("127.0.0.1")
                .addNewHostIP("127.0.0.1")
                .withStartTime(
                        pod.getStatus() == null || pod.getStatus().getStartTime() == null
                                ? now()
                                : pod.getStatus().getStartTime())
                .withConditions(conditions);
    }

    private static PodCondition condition(String type, boolean value) {
        return new PodConditionBuilder()
                .withType(type)
                .withStatus(value ? "True" : "False")
                .withLastTransitionTime(now())
                .build();
    }

    static String now() {
        return Instant.ofEpochMilli(Clock.system().millis())
                .truncatedTo(ChronoUnit.SECONDS)
                .toString();
    }
}
