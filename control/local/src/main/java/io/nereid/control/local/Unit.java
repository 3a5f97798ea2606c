// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local;

import io.nereid.control.core.Observed.Failure;
import io.nereid.control.core.Observed.Phase;
import io.nereid.control.core.Observed.State;
import io.nereid.control.core.Workload;
import io.nereid.control.core.Workload.Artifact;
import io.nereid.control.gateway.Destination;
import io.nereid.control.gateway.RevisionGate.Load;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/**
 * One revision as it runs here: its files are fetched, then it is run by its form's {@link Runner} with as many replicas as its
 * {@link Scale} says, and in the end it is drained. Confined to the deciding thread, but for {@link #state}.
 */
final class Unit {
    private final Loop loop;
    private final Artifacts artifacts;
    private final BuiltIns builtIns;
    private final Runner.Factory runners;
    private final RevisionLog log;
    private final Runnable changed;
    private final Scale scale;
    private final List<Artifacts.Lease> leases = new ArrayList<>();
    private final Backoff backoff = Backoff.ofRestarts();
    private final Loop.Timer[] retry = {Loop.Timer.NONE};
    private Workload workload;
    private final Front.Gate gate;
    private BuiltIns.@Nullable Tap tap;
    private @Nullable Runner runner;
    private @Nullable CompletableFuture<Artifacts.Lease> fetching;
    private @Nullable Failure fetchFailure;
    private boolean everReady;
    private boolean routed;
    private volatile boolean ending;
    private int applied = -1;
    private int capacity = -1;
    private @Nullable String refusal;
    private boolean direct = true;
    private volatile Snapshot snapshot = new Snapshot(Phase.PENDING, 0, 0, null);

    /** What is told of it. */
    private record Snapshot(
            Phase phase, int replicas, int wanted, @Nullable Failure failure) {}

    Unit(
            Loop loop,
            LocalSettings settings,
            Artifacts artifacts,
            BuiltIns builtIns,
            Front front,
            Runner.Factory runners,
            RevisionLog log,
            Workload workload,
            Runnable changed) {
        this.loop = loop;
        this.artifacts = artifacts;
        this.builtIns = builtIns;
        this.runners = runners;
        this.log = log;
        this.workload = workload;
        this.changed = changed;
        this.scale = new Scale(workload, settings.mostReplicas(), loop.clock().nanos());
        this.gate =
                front.open(workload.namespace(), workload.revision(), Front.settings(workload), destination(workload));
        gate.capacity(0);
        capacity = 0;
    }

    private static Destination destination(Workload workload) {
        if (workload.form() instanceof Workload.Model) {
            return new Destination.Models(
                    workload.namespace() + "/" + workload.revision(), false, workload.modelName());
        }
        // What it will be is not known before it is there; until then requests are held as those for processes are.
        return new Destination.Processes(List.of());
    }

    Workload workload() {
        return workload;
    }

    RevisionLog log() {
        return log;
    }

    // ---- beginning ----

    void start() {
        scale.warnings().forEach(w -> log.add("warning: " + w));
        listen();
        fetch();
        refresh();
    }

    private void listen() {
        BuiltIns.Tap before = tap;
        tap = null;
        if (workload.logger() != null) {
            try {
                tap = builtIns.tap(workload);
                if (tap == null) {
                    log.add("warning: requests are not logged, this server has no logger");
                } else {
                    tap.warnings().forEach(w -> log.add("warning: " + w));
                }
            } catch (RuntimeException e) {
                log.add("warning: requests are not logged: " + ModelForm.text(e));
            }
        }
        BuiltIns.Tap now = tap;
        gate.tap(now == null ? null : now.listener());
        if (before != null) {
            before.close();
        }
    }

    private List<Artifact> needed() {
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

    /** Fetches what is still missing, one after the other. */
    private void fetch() {
        List<Artifact> needed = needed();
        if (ending) {
            return;
        }
        if (leases.size() == needed.size()) {
            List<Path> files = leases.stream().map(Artifacts.Lease::path).toList();
            runner = runners.runner(workload, files, gate, log, this::refresh);
            apply();
            refresh();
            return;
        }
        Artifact next = needed.get(leases.size());
        log.add("fetching " + next.uri());
        CompletableFuture<Artifacts.Lease> future;
        try {
            future = artifacts.fetch(next, workload.namespace(), log::add).toCompletableFuture();
        } catch (RuntimeException e) {
            future = CompletableFuture.failedFuture(e);
        }
        fetching = future;
        var unused = future.whenComplete((lease, e) -> loop.execute(() -> fetched(next, lease, e)));
    }

    private void fetched(Artifact artifact, Artifacts.@Nullable Lease lease, @Nullable Throwable e) {
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
            Throwable cause =
                    e instanceof java.util.concurrent.CompletionException && e.getCause() != null ? e.getCause() : e;
            String reason = ModelForm.text(cause);
            fetchFailure = new Failure(
                    "ModelLoadFailed", reason, Instant.ofEpochMilli(loop.clock().millis()), 1);
            java.time.Duration wait = backoff.next();
            log.add("cannot fetch " + artifact.uri() + ": " + reason + "; tried again in " + wait.toSeconds() + " s");
            retry[0] = loop.after(wait, this::fetch);
        }
        refresh();
    }

    /** Tries at once to fetch what could not be. */
    void retryFetch() {
        if (fetchFailure != null && fetching == null && !ending) {
            retry[0].cancel();
            fetch();
        }
    }

    // ---- scale ----

    /** A second has passed. */
    void second(long now) {
        if (ending) {
            return;
        }
        Load load = gate.sample(now);
        if (scale.second(now, load, ready())) {
            apply();
        }
    }

    /** A request waits. */
    void wake() {
        if (!ending && scale.poke(loop.clock().nanos(), ready())) {
            apply();
        }
    }

    /** Whether a route leads here. */
    void routed(boolean now) {
        if (now != routed) {
            routed = now;
            reach();
        }
    }

    private void reach() {
        // What has never been ready waits for its route; it is not to end for want of one.
        scale.reachable(routed || !everReady);
    }

    private int ready() {
        Runner r = runner;
        return r == null ? 0 : r.ready();
    }

    private void apply() {
        Runner r = runner;
        int wanted = scale.wanted();
        if (r != null && !ending) {
            int bounded = Math.min(wanted, r.most());
            if (bounded != applied) {
                if (applied >= 0) {
                    log.add("scaled from " + applied + " to " + bounded + " replicas");
                }
                applied = bounded;
                if (bounded == 0) {
                    capacity(0);
                }
                r.scale(bounded);
            }
        }
        if (direct != scale.direct()) {
            direct = scale.direct();
            gate.serving(direct);
        }
        refresh();
    }

    private void capacity(int replicas) {
        if (replicas != capacity) {
            capacity = replicas;
            gate.capacity(replicas);
        }
    }

    // ---- changes ----

    /**
     * Takes what may change while it runs: scale, limits, logger, labels.
     *
     * @return false when it must be run anew
     */
    boolean update(Workload next) {
        if (next.equals(workload)) {
            return true;
        }
        if (!next.form().equals(workload.form())
                || next.component() != workload.component()
                || !next.modelName().equals(workload.modelName())
                || !java.util.Objects.equals(next.batcher(), workload.batcher())) {
            return false;
        }
        if (!Front.settings(next).equals(Front.settings(workload))) {
            return false;
        }
        boolean logger = !java.util.Objects.equals(next.logger(), workload.logger())
                || next.logger() != null && !next.annotations().equals(workload.annotations());
        boolean scaled = !next.scaling().equals(workload.scaling());
        workload = next;
        if (scaled) {
            scale.configure(next, loop.clock().nanos());
            scale.warnings().forEach(w -> log.add("warning: " + w));
            reach();
            apply();
        }
        if (logger) {
            listen();
        }
        return true;
    }

    private void refresh() {
        Runner r = runner;
        Failure failure = fetchFailure;
        boolean failing = failure != null;
        int ready = 0;
        if (r != null) {
            ready = r.ready();
            failure = r.failure();
            failing = r.failing();
        }
        int wanted = scale.wanted();
        if (r != null) {
            wanted = Math.min(wanted, r.most());
        }
        Phase phase;
        if (ready > 0) {
            phase = Phase.READY;
            if (!everReady) {
                everReady = true;
                reach();
            }
        } else if (failing) {
            phase = Phase.FAILED;
        } else if (wanted == 0) {
            phase = Phase.STANDBY;
        } else {
            // What comes back from zero has not stopped being able to answer.
            boolean waking = snapshot.phase == Phase.STANDBY && everReady;
            phase = waking ? Phase.STANDBY : Phase.LOADING;
        }
        capacity(ending || applied == 0 ? 0 : ready);
        String why = phase == Phase.FAILED && failure != null ? failure.message() : null;
        if (!java.util.Objects.equals(why, refusal)) {
            refusal = why;
            gate.refuse(why);
        }
        Snapshot next = new Snapshot(phase, ready, wanted, failure);
        if (!next.equals(snapshot)) {
            snapshot = next;
            changed.run();
        }
    }

    /** What is told of it; any thread. */
    State state() {
        Snapshot s = ending ? new Snapshot(Phase.PENDING, 0, 0, null) : snapshot;
        return new State(
                s.phase,
                s.replicas,
                s.wanted,
                s.failure,
                gate.traffic(loop.clock().nanos()));
    }

    // ---- the end ----

    /** Takes no request any more, ends when the last one has, and calls back then. */
    void end(Runnable ended) {
        if (ending) {
            return;
        }
        ending = true;
        retry[0].cancel();
        CompletableFuture<Artifacts.Lease> f = fetching;
        if (f != null) {
            f.cancel(true);
        }
        log.add("ending: waits for the last request");
        gate.close(() -> loop.execute(() -> {
            Runner r = runner;
            Runnable done = () -> {
                leases.forEach(Artifacts.Lease::close);
                leases.clear();
                BuiltIns.Tap t = tap;
                if (t != null) {
                    t.close();
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

    /** Starts no process again. For the end of the server. */
    void abandon() {
        if (runner instanceof ProcessRunner r) {
            r.abandon();
        }
    }

    /** Whether it is on its way out. */
    boolean ending() {
        return ending;
    }
}
