// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local;

import io.nereid.base.ServingException;
import io.nereid.control.autoscaling.Autoscaler;
import io.nereid.control.autoscaling.Scaler;
import io.nereid.control.autoscaling.ScalingSettings;
import io.nereid.control.core.Workload;
import io.nereid.control.core.Workload.Scaling;
import io.nereid.control.gateway.activator.RevisionActivator.Load;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Computes the desired number of replicas of one revision, with Knative's autoscaling algorithm. An idle revision whose
 * scale cannot change rests: a tick then costs only a sample of the activator's load. Confined to the event loop thread.
 */
final class RevisionScaler {
    private static final String PREFIX = "autoscaling.knative.dev/";
    /** Ticks without a change after which the scaler can rest. */
    private static final int RESTING_TICKS = 3;

    private final List<String> warnings = new ArrayList<>();
    private final int maxReplicas;
    private @Nullable Autoscaler autoscaler;
    private @Nullable ScalingSettings settings;
    private boolean record;
    private boolean resting;
    private boolean direct;
    private int unchangedTicks;
    private long busyAt;
    private int fixedReplicas;

    /**
     * Creates the scaler of a new revision.
     *
     * @param maxReplicas upper bound for a revision without one of its own
     */
    RevisionScaler(Workload workload, int maxReplicas, long now) {
        this.maxReplicas = maxReplicas;
        this.busyAt = now;
        configure(workload, now);
    }

    /** Applies changed settings. The autoscaler keeps its windows unless their metric or aggregation changes. */
    void configure(Workload workload, long now) {
        warnings.clear();
        resting = false;
        unchangedTicks = 0;
        Scaling s = workload.scaling();
        Map<String, String> annotations = new LinkedHashMap<>();
        s.settings().forEach((name, value) -> annotations.put(name.startsWith(PREFIX) ? name : PREFIX + name, value));
        boolean byLoad = s.metric().isEmpty()
                || s.metric().equals("concurrency")
                || s.metric().equals("rps");
        fixedReplicas = Math.max(1, s.min());
        if (s.autoscaler().equals("none") || s.autoscaler().equals("external") || !byLoad) {
            if (!byLoad) {
                warnings.add("the metric '" + s.metric()
                        + "' is not measured on one machine; the number of replicas is fixed at " + fixedReplicas
                        + "; use concurrency or rps for autoscaling");
            }
            autoscaler = null;
            settings = null;
            return;
        }
        ScalingSettings read;
        try {
            read = ScalingSettings.of(
                    s.min(),
                    s.max(),
                    s.metric().isEmpty() ? "concurrency" : s.metric(),
                    s.target(),
                    workload.containerConcurrency(),
                    annotations);
            warnings.addAll(ScalingSettings.warnings(annotations));
        } catch (ServingException e) {
            warnings.add(
                    "autoscaling is off, the number of replicas is fixed at " + fixedReplicas + ": " + e.describe());
            autoscaler = null;
            settings = null;
            return;
        }
        ScalingSettings before = settings;
        Autoscaler current = autoscaler;
        if (current != null
                && before != null
                && before.metric() == read.metric()
                && before.aggregation() == read.aggregation()) {
            current.update(read, now);
        } else {
            autoscaler = new Autoscaler(read, now);
        }
        settings = read;
    }

    /** Settings without effect on this server, a sentence each. */
    List<String> warnings() {
        return List.copyOf(warnings);
    }

    /** The desired number of replicas. */
    int desired() {
        Autoscaler a = autoscaler;
        return a == null ? fixedReplicas : bounded(a.desired());
    }

    private int bounded(int desired) {
        ScalingSettings s = settings;
        return s != null && s.max() == 0 ? Math.min(desired, Math.max(maxReplicas, s.min())) : desired;
    }

    /**
     * Whether requests go straight to the replicas (Knative's mode "Serve") instead of through the activator ("Proxy").
     */
    boolean direct() {
        return autoscaler == null || direct;
    }

    /** Sets whether a route leads to the revision; an unreachable revision can scale to zero. */
    void reachable(boolean reachable) {
        Autoscaler a = autoscaler;
        if (a != null) {
            a.reachable(reachable);
        }
        resting = false;
        unchangedTicks = 0;
    }

    /**
     * Records the load of the last second, and evaluates the scale every other second.
     *
     * @param ready number of ready replicas
     * @return whether the desired scale or mode has changed
     */
    boolean tick(long now, Load load, int ready) {
        Autoscaler a = autoscaler;
        if (a == null) {
            return false;
        }
        boolean busy = load.active() > 0 || load.requestsPerSecond() > 0 || load.concurrency() > 0;
        if (busy) {
            busyAt = now;
            resting = false;
            unchangedTicks = 0;
        } else if (resting) {
            return false;
        }
        a.record(now, load.concurrency(), load.requestsPerSecond());
        record = !record;
        if (!record) {
            return false;
        }
        int before = bounded(a.desired());
        boolean directBefore = direct;
        Autoscaler.Decision decision = a.tick(now, ready);
        direct = decision.mode() == Scaler.Mode.SERVE;
        int after = bounded(decision.desired());
        if (before != after || directBefore != direct) {
            unchangedTicks = 0;
            return true;
        }
        unchangedTicks++;
        ScalingSettings s = settings;
        // Rest when time alone can change nothing any more: the metric windows are empty and all delays are over.
        resting = s != null
                && unchangedTicks >= RESTING_TICKS
                && ready == after
                && !decision.panicking()
                && (after == 0 || decision.active() || decision.activity() == Scaler.Activity.INACTIVE)
                && now - busyAt > settleNanos(s)
                && after <= Math.max(s.min(), s.scaleToZero() ? 0 : 1);
        return false;
    }

    private static long settleNanos(ScalingSettings s) {
        return s.stableWindow().toNanos() * 2
                + s.scaleDownDelay().toNanos()
                + s.scaleToZeroGracePeriod().toNanos()
                + s.scaleToZeroPodRetentionPeriod().toNanos();
    }

    /** Evaluates the scale at once, because a request waits for a replica. */
    boolean wake(long now, int ready) {
        Autoscaler a = autoscaler;
        if (a == null) {
            return false;
        }
        resting = false;
        unchangedTicks = 0;
        busyAt = now;
        Autoscaler.Decision decision = a.poke(now, ready);
        direct = decision.mode() == Scaler.Mode.SERVE;
        return true;
    }
}
