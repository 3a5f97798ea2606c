// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.testing.kubernetes.node;

import io.fabric8.kubernetes.api.model.Container;
import io.fabric8.kubernetes.api.model.ContainerStatus;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.PodCondition;
import io.fabric8.kubernetes.api.model.PodConditionBuilder;
import io.fabric8.kubernetes.api.model.PodStatus;
import io.fabric8.kubernetes.api.model.PodStatusBuilder;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientException;
import io.nereid.base.Clock;
import io.nereid.base.Threads;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The processes of one pod. Every tenth of a second its thread looks at all containers: it starts the init containers one
 * after the other, then the others, restarts what has ended, runs the probes that are due, and reports the pod's status
 * when that has changed. Thread-safe.
 */
final class PodProcess {
    private static final Logger LOG = LoggerFactory.getLogger(PodProcess.class);
    private static final long LOOK_MILLIS = 100;

    private final Function<String, @Nullable ContainerImage> images;
    private final Pod pod;
    private final String address;
    private final Path folder;
    private final Consumer<PodStatus> report;
    private final PodValues values;
    private final PodVolumes volumes;
    private final ScheduledExecutorService thread;
    private final List<ContainerProcess> inits = new ArrayList<>();
    private final List<Boolean> sidecars = new ArrayList<>();
    private final List<ContainerProcess> containers = new ArrayList<>();
    private final Map<String, String> transitions = new HashMap<>();
    private final String startTime;

    private @Nullable PodNetwork network;
    private @Nullable PodStatus reported;
    private @Nullable Runnable stopped;

    PodProcess(
            KubernetesClient client,
            Function<String, @Nullable ContainerImage> images,
            Pod pod,
            String address,
            Path folder,
            Consumer<PodStatus> report) {
        this.images = images;
        this.pod = pod;
        this.address = address;
        this.folder = folder;
        this.report = report;
        this.values = new PodValues(client, pod, address);
        this.volumes = new PodVolumes(client, pod, values, folder.resolve("volumes"));
        this.thread = Threads.timer("pod-" + pod.getMetadata().getName());
        this.startTime = ContainerProcess.time(now());
        String policy = pod.getSpec().getRestartPolicy();
        for (Container container : pod.getSpec().getInitContainers()) {
            boolean sidecar = "Always".equals(container.getRestartPolicy());
            sidecars.add(sidecar);
            inits.add(container(container, sidecar || !"Never".equals(policy), sidecar));
        }
        for (Container container : pod.getSpec().getContainers()) {
            containers.add(container(container, !"Never".equals(policy), policy == null || "Always".equals(policy)));
        }
    }

    private ContainerProcess container(Container container, boolean restarts, boolean restartsAfterSuccess) {
        return new ContainerProcess(
                container,
                folder.resolve("containers").resolve(container.getName()),
                address,
                (place, log) -> start(container, place, log),
                restarts,
                restartsAfterSuccess);
    }

    private static long now() {
        return Clock.system().millis();
    }

    void start() {
        Future<?> unused =
                thread.scheduleWithFixedDelay(() -> guarded(this::look), 0, LOOK_MILLIS, TimeUnit.MILLISECONDS);
    }

    /** Stops the pod within its grace period. */
    void stop(Runnable done) {
        thread.execute(() -> guarded(() -> {
            stopped = done;
            Long grace = pod.getSpec().getTerminationGracePeriodSeconds();
            long deadline = now() + (grace == null ? 30 : grace) * 1000;
            containers.forEach(one -> one.stop(deadline));
            inits.forEach(one -> one.stop(deadline));
            look();
        }));
    }

    /** Ends everything at once, as a machine that has lost its power; nothing is reported any more. */
    void kill() {
        Future<?> done = thread.submit(() -> guarded(() -> {
            containers.forEach(ContainerProcess::kill);
            inits.forEach(ContainerProcess::kill);
            thread.shutdownNow();
            remove();
        }));
        try {
            done.get(30, TimeUnit.SECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } catch (java.util.concurrent.ExecutionException | java.util.concurrent.TimeoutException e) {
            LOG.warn("pod {} was not killed", pod.getMetadata().getName(), e);
        }
    }

    private void guarded(Runnable work) {
        try {
            work.run();
        } catch (RuntimeException e) {
            LOG.warn("pod {}", pod.getMetadata().getName(), e);
        }
    }

    private void look() {
        long now = now();
        boolean initialized = true;
        for (int i = 0; i < inits.size() && initialized; i++) {
            ContainerProcess init = inits.get(i);
            if (sidecars.get(i)) {
                init.look(now);
                initialized = init.isStarted() || stopped != null;
            } else if (!init.isDone()) {
                init.look(now);
                initialized = init.isDone();
            }
            if (init.isDone() && !sidecars.get(i) && !init.hasSucceeded()) {
                initialized = false;
                break;
            }
        }
        if (initialized || stopped != null) {
            containers.forEach(one -> one.look(now));
        }
        if (stopped != null) {
            inits.forEach(one -> one.look(now));
        }
        PodStatus status = status(initialized);
        if (!status.equals(reported)) {
            reported = status;
            report.accept(status);
        }
        if (stopped != null
                && containers.stream().noneMatch(ContainerProcess::isRunning)
                && inits.stream().noneMatch(ContainerProcess::isRunning)) {
            thread.shutdown();
            remove();
            stopped.run();
        }
    }

    private void remove() {
        if (network != null) {
            try {
                network.remove();
            } catch (IOException e) {
                LOG.warn("network of pod {}", pod.getMetadata().getName(), e);
            }
        }
    }

    private Process start(Container container, Path place, Path log) throws ContainerProcess.RefusedException {
        ContainerImage image = images.apply(container.getImage());
        if (image == null) {
            throw new ContainerProcess.RefusedException(
                    "ImagePullBackOff", "Back-off pulling image \"" + container.getImage() + "\": not found");
        }
        boolean notRoot = container.getSecurityContext() != null
                        && Boolean.TRUE.equals(container.getSecurityContext().getRunAsNonRoot())
                || pod.getSpec().getSecurityContext() != null
                        && Boolean.TRUE.equals(
                                pod.getSpec().getSecurityContext().getRunAsNonRoot());
        if (notRoot && ContainerScript.user(pod.getSpec(), container.getSecurityContext(), image) == 0) {
            throw new ContainerProcess.RefusedException(
                    "CreateContainerConfigError", "container has runAsNonRoot and image will run as root");
        }
        try {
            if (network == null) {
                network = PodNetwork.create(address);
            }
            volumes.prepare();
            Map<String, String> environment = values.environment(container);
            List<String> command = new ArrayList<>(
                    container.getCommand().isEmpty()
                            ? image.entrypoint()
                            : PodValues.expanded(container.getCommand(), environment));
            command.addAll(PodValues.expanded(container.getArgs(), environment));
            String namespace = pod.getMetadata().getNamespace();
            ContainerScript.Place where = new ContainerScript.Place(
                    place,
                    pod.getMetadata().getName(),
                    "nameserver " + ClusterDns.ADDRESS + "\nsearch " + namespace
                            + ".svc.cluster.local svc.cluster.local cluster.local\noptions ndots:5\n",
                    volumes.mounts(container));
            Path script = place.resolve("start.sh");
            Files.writeString(
                    script, ContainerScript.write(pod.getSpec(), container, image, environment, command, where));
            return new ProcessBuilder(
                            "nsenter",
                            "--net=" + network.file(),
                            "unshare",
                            "--mount",
                            "--propagation",
                            "private",
                            "sh",
                            script.toString())
                    .directory(new java.io.File("/"))
                    .redirectErrorStream(true)
                    .redirectInput(new java.io.File("/dev/null"))
                    .redirectOutput(ProcessBuilder.Redirect.to(log.toFile()))
                    .start();
        } catch (IOException | KubernetesClientException e) {
            throw new ContainerProcess.RefusedException("CreateContainerConfigError", e.getMessage());
        }
    }

    private PodStatus status(boolean initialized) {
        boolean ready = initialized && containers.stream().allMatch(ContainerProcess::isReady);
        for (int i = 0; i < inits.size(); i++) {
            ready &= !sidecars.get(i) || inits.get(i).isReady();
        }
        String phase = "Pending";
        if (containers.stream().allMatch(ContainerProcess::isDone) && stopped == null) {
            phase = containers.stream().allMatch(ContainerProcess::hasSucceeded) ? "Succeeded" : "Failed";
        } else if (containers.stream().anyMatch(one -> one.status().getContainerID() != null)) {
            phase = "Running";
        } else if (inits.stream().anyMatch(one -> one.isDone() && !one.hasSucceeded())) {
            phase = "Failed";
        }
        List<PodCondition> conditions = List.of(
                condition("PodScheduled", true),
                condition("Initialized", initialized),
                condition("ContainersReady", ready),
                condition("Ready", ready));
        return new PodStatusBuilder()
                .withPhase(phase)
                .withPodIP(address)
                .addNewPodIP(address)
                .withHostIP(PodNetwork.NODE_ADDRESS)
                .addNewHostIP(PodNetwork.NODE_ADDRESS)
                .withStartTime(startTime)
                .withConditions(conditions)
                .withInitContainerStatuses(statuses(inits))
                .withContainerStatuses(statuses(containers))
                .build();
    }

    private static List<ContainerStatus> statuses(List<ContainerProcess> of) {
        return of.stream().map(ContainerProcess::status).toList();
    }

    /** The time of a condition's last change is kept while its value stays. */
    private PodCondition condition(String type, boolean value) {
        String status = value ? "True" : "False";
        String known = transitions.get(type);
        String time = known != null && known.startsWith(status + " ")
                ? known.substring(status.length() + 1)
                : ContainerProcess.time(now());
        transitions.put(type, status + " " + time);
        return new PodConditionBuilder()
                .withType(type)
                .withStatus(status)
                .withLastTransitionTime(time)
                .build();
    }
}
