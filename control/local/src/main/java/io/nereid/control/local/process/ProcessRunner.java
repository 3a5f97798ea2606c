// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local.process;

import io.nereid.base.ServingException;
import io.nereid.control.core.ObservedState.Failure;
import io.nereid.control.core.Workload;
import io.nereid.control.core.Workload.Component;
import io.nereid.control.core.Workload.EnvironmentSource;
import io.nereid.control.core.Workload.Process;
import io.nereid.control.core.Workload.ProcessContainer;
import io.nereid.control.core.component.NvidiaResources;
import io.nereid.control.gateway.upstream.RevisionTarget;
import io.nereid.control.gateway.upstream.RevisionTarget.Replica;
import io.nereid.control.local.spi.ArtifactFetcher;
import io.nereid.control.local.spi.LocalSettings;
import io.nereid.control.local.workload.FailureMessages;
import io.nereid.control.local.workload.GpuGrants;
import io.nereid.control.local.workload.RevisionLog;
import io.nereid.control.local.workload.ServiceRouting;
import io.nereid.control.local.workload.WorkloadRunner;
import io.nereid.control.plane.loop.Backoff;
import io.nereid.control.plane.loop.EventLoop;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** Runs the replicas of a revision as process processes. Confined to the event loop thread. */
public final class ProcessRunner implements WorkloadRunner {
    private static final String HOST = "127.0.0.1";
    /**
     * Time between the removal of a replica from the destination and the request to exit; covers requests on their way.
     */
    private static final Duration TRANSIT_TIME = Duration.ofSeconds(1);

    /** The variable of NVIDIA's driver that selects the GPUs of a process. */
    private static final String VISIBLE = "CUDA_VISIBLE_DEVICES";

    private static final Duration GRACE = Duration.ofSeconds(30);
    /** Annotation: seconds between the request to exit and the kill; 30 without it, as in Kubernetes. */
    static final String GRACE_ANNOTATION = "nereid.io/termination-grace-period-seconds";

    private final EventLoop loop;
    private final ProcessSupervisor supervisor;
    private final LocalSettings settings;
    private final ServiceRouting routing;
    private final PortAllocator ports;
    private final GpuGrants gpus;
    private final Workload workload;
    private final Process form;
    private final ArtifactFetcher artifacts;
    private final List<Path> files;
    private final ServiceRouting.Activator activator;
    private final RevisionLog log;
    private final Runnable changed;
    private final Duration grace;
    private final List<Pod> pods = new ArrayList<>();
    private final List<Pod> ending = new ArrayList<>();
    private final Set<String> warned = new HashSet<>();
    private final Backoff backoff = Backoff.ofRestarts();
    private EventLoop.Timer retry = EventLoop.Timer.NONE;
    private List<Replica> published = List.of();
    private int desired;
    private @Nullable Failure failure;
    private boolean failing;
    private @Nullable Runnable ended;

    /** One replica: the processes of its containers, their ports and their GPUs. */
    private record Pod(
            int number, List<ContainerProcess> processes, List<Integer> ports, Map<Integer, GpuGrants.Grant> gpus) {
        boolean ready() {
            return processes.stream().allMatch(ContainerProcess::ready);
        }
    }

    public ProcessRunner(
            EventLoop loop,
            ProcessSupervisor supervisor,
            LocalSettings settings,
            ServiceRouting routing,
            PortAllocator ports,
            GpuGrants gpus,
            Workload workload,
            ArtifactFetcher artifacts,
            List<Path> files,
            ServiceRouting.Activator activator,
            RevisionLog log,
            Runnable changed) {
        this.loop = loop;
        this.supervisor = supervisor;
        this.settings = settings;
        this.routing = routing;
        this.ports = ports;
        this.gpus = gpus;
        this.workload = workload;
        this.form = (Process) workload.form();
        this.artifacts = artifacts;
        this.files = files;
        this.activator = activator;
        this.log = log;
        this.changed = changed;
        String seconds = workload.annotations().get(GRACE_ANNOTATION);
        if (maxReplicas() == 1 && workload.scaling().max() != 1) {
            log.add("warning: the command listens on a fixed port, so there can be only one replica; let it take"
                    + " the port"
                    + " from $(PORT) or --http_port=$(PORT) to have more");
        }
        this.grace =
                seconds == null || !seconds.matches("\\d{1,5}") ? GRACE : Duration.ofSeconds(Long.parseLong(seconds));
    }

    @Override
    public int maxReplicas() {
        return ProcessSpecBuilder.hasAssignablePorts(workload, form) ? Integer.MAX_VALUE : 1;
    }

    @Override
    public void scale(int replicas) {
        desired = Math.min(replicas, maxReplicas());
        retry.cancel();
        while (pods.size() > desired) {
            remove(pods.remove(pods.size() - 1));
        }
        try {
            while (pods.size() < desired) {
                pods.add(pod(pods.size()));
            }
            failing = false;
        } catch (RuntimeException e) {
            failing = true;
            failure = new Failure(
                    "ModelLoadFailed",
                    FailureMessages.text(e),
                    Instant.ofEpochMilli(loop.clock().millis()),
                    null);
            log.add("not started: " + FailureMessages.text(e));
            retry = loop.after(backoff.next(), () -> scale(desired));
        }
        stateChanged();
    }

    private Pod pod(int number) {
        Map<Integer, GpuGrants.Grant> grants = new LinkedHashMap<>();
        try {
            takeGpus(grants);
            return pod(number, grants);
        } catch (RuntimeException e) {
            grants.values().forEach(gpus::release);
            throw e;
        }
    }

    /** Takes the GPUs that the containers need, by the number of the container. */
    private void takeGpus(Map<Integer, GpuGrants.Grant> grants) {
        for (int i = 0; i < form.containers().size(); i++) {
            ProcessContainer one = form.containers().get(i);
            NvidiaResources needed = NvidiaResources.of(one.resources(), "the container " + one.name());
            if (needed.isEmpty()) {
                continue;
            }
            if (one.environment().containsKey(VISIBLE)) {
                throw ServingException.invalidArgument(
                        "the container " + one.name() + " has a limit of " + needed + " and sets " + VISIBLE + " to '"
                                + one.environment().get(VISIBLE) + "' (expected: one of them)",
                        "remove the variable: it names the GPUs that the container gets");
            }
            grants.put(i, gpus.take(workload.namespace() + "/" + workload.service(), workload.revision(), needed));
        }
    }

    private Pod pod(int number, Map<Integer, GpuGrants.Grant> grants) {
        List<String> warnings = new ArrayList<>();
        String predictor = workload.component() == Component.PREDICTOR
                ? null
                : routing.address(workload.namespace(), workload.service(), Component.PREDICTOR);
        List<ProcessSpec> specs = ProcessSpecBuilder.build(
                workload, resolveVariables(), files, predictor, settings.environment(), ports, warnings);
        warnings.stream().filter(warned::add).forEach(w -> log.add("warning: " + w));
        List<ContainerProcess> processes = new ArrayList<>();
        List<Integer> podPorts = new ArrayList<>();
        String podName = workload.namespace() + "." + workload.revision() + "." + number;
        for (int i = 0; i < specs.size(); i++) {
            GpuGrants.Grant grant = grants.get(i);
            ProcessSpec spec = grant == null ? specs.get(i) : specs.get(i).with(VISIBLE, grant.visible());
            boolean single = specs.size() == 1 && number == 0;
            processes.add(new ContainerProcess(
                    loop,
                    supervisor,
                    podName + "." + spec.container() + "."
                            + Long.toString(loop.clock().nanos(), 36),
                    form.containers().get(i),
                    spec,
                    settings.directory().resolve("work").resolve(workload.namespace() + "." + workload.revision()),
                    grace,
                    log,
                    single ? "" : spec.container() + "." + number + ": ",
                    this::stateChanged));
            podPorts.addAll(spec.ports().values());
        }
        Pod pod = new Pod(number, List.copyOf(processes), List.copyOf(podPorts), Map.copyOf(grants));
        processes.forEach(ContainerProcess::start);
        return pod;
    }

    /** Resolves the variables from secrets and config maps, with their current values. */
    private Process resolveVariables() {
        List<ProcessContainer> containers = new ArrayList<>();
        for (ProcessContainer one : form.containers()) {
            Map<String, String> environment = new LinkedHashMap<>();
            for (EnvironmentSource source : one.environmentSources()) {
                environment.putAll(artifacts.variables(source, workload.namespace()));
            }
            // Variables that the container lists itself override those from whole objects.
            environment.putAll(one.environment());
            containers.add(new ProcessContainer(
                    one.name(),
                    one.command(),
                    one.arguments(),
                    Collections.unmodifiableMap(environment),
                    List.of(),
                    one.workingDirectory(),
                    one.ports(),
                    one.readinessProbe(),
                    one.livenessProbe(),
                    one.startupProbe(),
                    one.resources()));
        }
        return new Process(form.artifacts(), List.copyOf(containers));
    }

    private void remove(Pod pod) {
        ending.add(pod);
        EventLoop.Timer unused = loop.after(TRANSIT_TIME, () -> stop(pod));
    }

    private void stop(Pod pod) {
        int[] left = {pod.processes.size()};
        for (ContainerProcess process : pod.processes) {
            process.stop(() -> {
                if (--left[0] == 0) {
                    pod.ports.forEach(ports::release);
                    pod.gpus.values().forEach(gpus::release);
                    ending.remove(pod);
                    stateChanged();
                }
            });
        }
    }

    private void stateChanged() {
        List<Replica> ready = pods.stream()
                .filter(Pod::ready)
                .map(p -> p.processes.get(0).spec())
                .map(f -> new Replica(HOST, f.httpPort(), f.grpcPort()))
                .toList();
        if (!ready.equals(published)) {
            published = ready;
            if (!ready.isEmpty()) {
                failure = null;
                backoff.reset();
            }
            activator.destination(new RevisionTarget.Processes(ready));
        }
        Runnable end = ended;
        if (end != null && pods.isEmpty() && ending.isEmpty()) {
            ended = null;
            end.run();
        } else {
            changed.run();
        }
    }

    @Override
    public int ready() {
        return published.size();
    }

    @Override
    public @Nullable Failure failure() {
        for (Pod pod : pods) {
            for (ContainerProcess process : pod.processes) {
                Failure f = process.failure();
                if (f != null) {
                    return f;
                }
            }
        }
        return failure;
    }

    @Override
    public boolean failing() {
        return failing || pods.stream().anyMatch(p -> p.processes.stream().anyMatch(ContainerProcess::failing));
    }

    @Override
    public void end(Runnable then) {
        ended = then;
        retry.cancel();
        desired = 0;
        List<Pod> all = List.copyOf(pods);
        pods.clear();
        ending.addAll(all);
        all.forEach(this::stop);
        stateChanged();
    }

    @Override
    public void abandon() {
        for (List<Pod> all : List.of(pods, ending)) {
            for (Pod pod : all) {
                pod.processes.forEach(ContainerProcess::abandon);
            }
        }
    }
}
