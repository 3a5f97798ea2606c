// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local;

import io.nereid.control.core.ObservedState.Failure;
import io.nereid.control.core.ObservedState.Phase;
import io.nereid.control.core.Workload;
import io.nereid.control.core.Workload.Artifact;
import io.nereid.control.core.WorkloadState;
import io.nereid.control.gateway.activator.RevisionActivator;
import io.nereid.control.gateway.upstream.RevisionTarget;
import io.nereid.control.local.inprocess.MultiModelRunner;
import io.nereid.control.local.spi.ArtifactFetcher;
import io.nereid.control.local.spi.InProcessComponents;
import io.nereid.control.local.spi.LocalSettings;
import io.nereid.control.local.workload.FailureMessages;
import io.nereid.control.local.workload.RevisionLog;
import io.nereid.control.local.workload.ServiceRouting;
import io.nereid.control.local.workload.WorkloadRunner;
import io.nereid.control.plane.loop.Backoff;
import io.nereid.control.plane.loop.EventLoop;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import org.jspecify.annotations.Nullable;

/**
 * Controls one revision through its life: fetches its files, runs it with a {@link WorkloadRunner} and the number of
 * replicas that its {@link RevisionScaler} computes, and drains it at the end. Confined to the event loop thread,
 * except for {@link #state}.
 */
final class RevisionController {
    private final EventLoop loop;
    private final ArtifactFetcher artifacts;
    private final InProcessComponents components;
    private final WorkloadRunner.Factory runners;
    private final RevisionLog log;
    private final Runnable changed;
    private final RevisionScaler scaler;
    private final List<ArtifactFetcher.Lease> leases = new ArrayList<>();
    private final Backoff backoff = Backoff.ofRestarts();
    private EventLoop.Timer retry = EventLoop.Timer.NONE;
    private Workload workload;
    private final ServiceRouting.Activator activator;
    private InProcessComponents.@Nullable PayloadLogger payloadLogger;
    private @Nullable WorkloadRunner runner;
    private @Nullable CompletableFuture<ArtifactFetcher.Lease> fetching;
    private @Nullable Failure fetchFailure;
    private boolean everReady;
    private boolean routed;
    private volatile boolean ending;
    /** The replicas that the runner was scaled to; -1 before the first time. */
    private int scaledTo = -1;
    /** The capacity that the activator was set to; -1 before the first time. */
    private int capacity = -1;

    private @Nullable String rejection;
    private boolean direct = true;
    private volatile Snapshot snapshot = new Snapshot(Phase.PENDING, 0, 0, null);

    /** The reported state, for readers on other threads. */
    private record Snapshot(
            Phase phase,
            int replicas,
            int desired,
            @Nullable Failure failure) {}

    RevisionController(
            EventLoop loop,
            LocalSettings settings,
            ArtifactFetcher artifacts,
            InProcessComponents components,
            ServiceRouting routing,
            WorkloadRunner.Factory runners,
            RevisionLog log,
            Workload workload,
            Runnable changed) {
        this.loop = loop;
        this.artifacts = artifacts;
        this.components = components;
        this.runners = runners;
        this.log = log;
        this.workload = workload;
        this.changed = changed;
        this.scaler = new RevisionScaler(
                workload, settings.maxReplicas(), loop.clock().nanos());
        this.activator = routing.open(
                workload.namespace(),
                workload.revision(),
                RevisionActivator.Settings.of(workload),
                destination(workload));
        activator.capacity(0);
        capacity = 0;
    }

    private static RevisionTarget destination(Workload workload) {
        if (workload.form() instanceof Workload.Model) {
            return new RevisionTarget.Models(
                    workload.namespace() + "/" + workload.revision(),
                    MultiModelRunner.runs(workload),
                    workload.modelName());
        }
        // The destination is known once the workload runs. An empty list of processes holds requests until then.
        return new RevisionTarget.Processes(List.of());
    }

    Workload workload() {
        return workload;
    }

    RevisionLog log() {
        return log;
    }

    // ---- start ----

    void start() {
        scaler.warnings().forEach(w -> log.add("warning: " + w));
        updateLogger();
        fetch();
        refresh();
    }

    private void updateLogger() {
        InProcessComponents.PayloadLogger before = payloadLogger;
        payloadLogger = null;
        if (workload.logger() != null) {
            try {
                payloadLogger = components.payloadLogger(workload);
                if (payloadLogger == null) {
                    log.add("warning: requests are not logged: this server does not have a payload logger");
                } else {
                    payloadLogger.warnings().forEach(w -> log.add("warning: " + w));
                }
            } catch (RuntimeException e) {
                log.add("warning: requests are not logged: " + FailureMessages.text(e));
            }
        }
        activator.listener(payloadLogger);
        if (before != null) {
            before.close();
        }
    }

    private List<Artifact> artifactsOf() {
        Workload.Form form = workload.form();
        if (form instanceof Workload.Model model) {
            return model.artifacts();
        }
        if (form instanceof Workload.Process process) {
            return process.artifacts();
        }
        return form instanceof Workload.Transformer transformer
                ? transformer.artifacts()
                : ((Workload.Explainer) form).artifacts();
    }

    /** Fetches the missing artifacts, one after the other, then creates the runner. */
    private void fetch() {
        List<Artifact> needed = artifactsOf();
        if (ending) {
            return;
        }
        if (leases.size() == needed.size()) {
            List<Path> files = leases.stream().map(ArtifactFetcher.Lease::path).toList();
            runner = runners.runner(workload, files, activator, log, this::refresh);
            apply();
            refresh();
            return;
        }
        Artifact next = needed.get(leases.size());
        log.add("fetching " + next.uri());
        CompletableFuture<ArtifactFetcher.Lease> future;
        try {
            future = artifacts.fetch(next, workload.namespace(), log::add).toCompletableFuture();
        } catch (RuntimeException e) {
            future = CompletableFuture.failedFuture(e);
        }
        fetching = future;
        var unused = future.whenComplete((lease, e) -> loop.execute(() -> fetched(next, lease, e)));
    }

    private void fetched(Artifact artifact, ArtifactFetcher.@Nullable Lease lease, @Nullable Throwable e) {
        fetching = null;
        if (lease != null) {
            if (ending) {
                lease.close();
                return;
            }
            leases.add(lease);
            fetchFailure = null;
            log.add("fetched " + artifact.uri());
            fetch();
        } else if (!ending) {
            Throwable cause = e instanceof CompletionException && e.getCause() != null ? e.getCause() : e;
            String reason = FailureMessages.text(cause);
            fetchFailure = new Failure(
                    "ModelLoadFailed", reason, Instant.ofEpochMilli(loop.clock().millis()), 1);
            Duration wait = backoff.next();
            log.add("cannot fetch " + artifact.uri() + ": " + reason + "; retried in " + wait.toSeconds() + " s");
            retry = loop.after(wait, this::fetch);
        }
        refresh();
    }

    /** Retries a failed fetch at once. */
    void retryFetch() {
        if (fetchFailure != null && fetching == null && !ending) {
            retry.cancel();
            fetch();
        }
    }

    // ---- scale ----

    /** Evaluates the scale; called every second. */
    void tick(long now) {
        if (ending) {
            return;
        }
        RevisionActivator.Load load = activator.sample(now);
        if (scaler.tick(now, load, ready())) {
            apply();
        }
    }

    /** Scales up for a waiting request. */
    void wake() {
        if (!ending && scaler.wake(loop.clock().nanos(), ready())) {
            apply();
        }
    }

    /** Sets whether a route leads to this revision. */
    void routed(boolean now) {
        if (now != routed) {
            routed = now;
            updateReachability();
        }
    }

    private void updateReachability() {
        // A revision gets its route only after it was ready once. Until then it counts as reachable, or it would be
        // scaled to zero before it could become ready.
        scaler.reachable(routed || !everReady);
    }

    private int ready() {
        WorkloadRunner r = runner;
        return r == null ? 0 : r.ready();
    }

    private void apply() {
        WorkloadRunner r = runner;
        int desired = scaler.desired();
        if (r != null && !ending) {
            int bounded = Math.min(desired, r.maxReplicas());
            if (bounded != scaledTo) {
                if (scaledTo >= 0) {
                    log.add("scaled from " + scaledTo + " to " + bounded + " replicas");
                }
                scaledTo = bounded;
                if (bounded == 0) {
                    // Before the runner releases anything, so that the activator holds new requests.
                    capacity(0);
                }
                r.scale(bounded);
            }
        }
        if (direct != scaler.direct()) {
            direct = scaler.direct();
            activator.direct(direct);
        }
        refresh();
    }

    private void capacity(int replicas) {
        if (replicas != capacity) {
            capacity = replicas;
            activator.capacity(replicas);
        }
    }

    // ---- changes ----

    /**
     * Applies changes that do not need a restart: scale, logger, labels.
     *
     * @return false when the change needs a restart
     */
    boolean update(Workload next) {
        if (next.equals(workload)) {
            return true;
        }
        if (!next.form().equals(workload.form())
                || next.component() != workload.component()
                || !next.modelName().equals(workload.modelName())
                || !Objects.equals(next.batcher(), workload.batcher())) {
            return false;
        }
        if (!RevisionActivator.Settings.of(next).equals(RevisionActivator.Settings.of(workload))) {
            return false;
        }
        boolean logger = !Objects.equals(next.logger(), workload.logger())
                || next.logger() != null && !next.annotations().equals(workload.annotations());
        boolean scaled = !next.scaling().equals(workload.scaling());
        workload = next;
        if (scaled) {
            scaler.configure(next, loop.clock().nanos());
            scaler.warnings().forEach(w -> log.add("warning: " + w));
            updateReachability();
            apply();
        }
        if (logger) {
            updateLogger();
        }
        return true;
    }

    /** Recomputes the phase and the activator's state after any change, and reports a changed phase. */
    private void refresh() {
        WorkloadRunner r = runner;
        Failure failure = fetchFailure;
        boolean failing = failure != null;
        int ready = 0;
        if (r != null) {
            ready = r.ready();
            failure = r.failure();
            failing = r.failing();
        }
        int desired = scaler.desired();
        if (r != null) {
            desired = Math.min(desired, r.maxReplicas());
        }
        Phase phase;
        if (ready > 0) {
            phase = Phase.READY;
            if (!everReady) {
                everReady = true;
                updateReachability();
            }
        } else if (failing) {
            phase = Phase.FAILED;
        } else if (desired == 0) {
            phase = Phase.STANDBY;
        } else {
            // A revision that scales up from zero stays in standby: a cold start must not make its service unready.
            boolean waking = snapshot.phase == Phase.STANDBY && everReady;
            phase = waking ? Phase.STANDBY : Phase.LOADING;
        }
        capacity(ending || scaledTo == 0 ? 0 : ready);
        String why = phase == Phase.FAILED && failure != null ? failure.message() : null;
        if (!Objects.equals(why, rejection)) {
            rejection = why;
            activator.reject(why);
        }
        Snapshot next = new Snapshot(phase, ready, desired, failure);
        if (!next.equals(snapshot)) {
            snapshot = next;
            changed.run();
        }
    }

    /** Returns the observed state. Callable on any thread. */
    WorkloadState state() {
        Snapshot s = ending ? new Snapshot(Phase.PENDING, 0, 0, null) : snapshot;
        return new WorkloadState(
                s.phase,
                s.replicas,
                s.desired,
                s.failure,
                activator.traffic(loop.clock().nanos()));
    }

    // ---- the end ----

    /** Drains: accepts no further requests, ends the workload after the last one, then runs the callback. */
    void end(Runnable ended) {
        if (ending) {
            return;
        }
        ending = true;
        retry.cancel();
        CompletableFuture<ArtifactFetcher.Lease> download = fetching;
        if (download != null) {
            download.cancel(true);
        }
        log.add("draining: waiting for the last request");
        activator.close(() -> loop.execute(() -> {
            WorkloadRunner r = runner;
            Runnable done = () -> {
                leases.forEach(ArtifactFetcher.Lease::close);
                leases.clear();
                InProcessComponents.PayloadLogger logger = payloadLogger;
                if (logger != null) {
                    logger.close();
                }
                log.add("ended");
                log.close();
                ended.run();
            };
            if (r == null) {
                done.run();
            } else {
                r.end(done);
            }
        }));
    }

    /** Prevents further restarts of processes. Called at server shutdown. */
    void abandon() {
        WorkloadRunner r = runner;
        if (r != null) {
            r.abandon();
        }
    }

    /** Whether the revision is being drained. */
    boolean ending() {
        return ending;
    }
}
