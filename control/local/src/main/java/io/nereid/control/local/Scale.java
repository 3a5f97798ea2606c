// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local;

import io.nereid.base.ServingException;
import io.nereid.control.autoscaling.Autoscaler;
import io.nereid.control.autoscaling.Scaler;
import io.nereid.control.autoscaling.ScalingSettings;
import io.nereid.control.core.Workload;
import io.nereid.control.core.Workload.Scaling;
import io.nereid.control.gateway.RevisionGate.Load;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * How many replicas one revision should have. While nothing comes and nothing can change it rests, and a tick costs one look at
 * the gate. Confined to the deciding thread.
 */
final class Scale {
    private static final String PREFIX = "autoscaling.knative.dev/";
    /** Ticks without a change after which it may rest. */
    private static final int STILL = 3;

    private final List<String> warnings = new ArrayList<>();
    private final int most;
    private @Nullable Autoscaler autoscaler;
    private @Nullable ScalingSettings settings;
    private boolean record;
    private boolean resting;
    private boolean direct;
    private int still;
    private long busyAt;
    private int fixed;

    /**
     * A scale at the beginning.
     *
     * @param mostReplicas most for a revision that sets no limit
     */
    Scale(Workload workload, int mostReplicas, long now) {
        this.most = mostReplicas;
        this.busyAt = now;
        configure(workload, now);
    }

    /** Takes other settings. */
    void configure(Workload workload, long now) {
        warnings.clear();
        resting = false;
        still = 0;
        Scaling s = workload.scaling();
        Map<String, String> annotations = new LinkedHashMap<>();
        s.settings().forEach((name, value) -> annotations.put(name.startsWith(PREFIX) ? name : PREFIX + name, value));
        boolean byLoad = s.metric().isEmpty()
                || s.metric().equals("concurrency")
                || s.metric().equals("rps");
        fixed = Math.max(1, s.min());
        if (s.autoscaler().equals("none") || s.autoscaler().equals("external") || !byLoad) {
            if (!byLoad) {
                warnings.add("the metric '" + s.metric() + "' is not measured on one machine; " + fixed
                        + " replicas run, give concurrency or rps to have them scaled");
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
            warnings.add("it is not scaled, " + fixed + " replicas run: " + e.describe());
            autoscaler = null;
            settings = null;
            return;
        }
        ScalingSettings before = settings;
        Autoscaler now1 = autoscaler;
        if (now1 != null
                && before != null
                && before.metric() == read.metric()
                && before.aggregation() == read.aggregation()) {
            now1.update(read, now);
        } else {
            autoscaler = new Autoscaler(read, now);
        }
        settings = read;
    }

    /** What of the settings has no effect, a sentence each. */
    List<String> warnings() {
        return List.copyOf(warnings);
    }

    /** How many there should be. */
    int wanted() {
        Autoscaler a = autoscaler;
        return a == null ? fixed : bounded(a.wanted());
    }

    private int bounded(int wanted) {
        ScalingSettings s = settings;
        return s != null && s.max() == 0 ? Math.min(wanted, Math.max(most, s.min())) : wanted;
    }

    /** Whether requests go straight to the replicas. */
    boolean direct() {
        return autoscaler == null || direct;
    }

    /** Says whether a route leads here. */
    void reachable(boolean reachable) {
        Autoscaler a = autoscaler;
        if (a != null) {
            a.reachable(reachable);
        }
        resting = false;
        still = 0;
    }

    /**
     * A second has passed.
     *
     * @param ready replicas that answer
     * @return whether something may have changed
     */
    boolean second(long now, Load load, int ready) {
        Autoscaler a = autoscaler;
        if (a == null) {
            return false;
        }
        boolean busy = load.active() > 0 || load.requestsPerSecond() > 0 || load.concurrency() > 0;
        if (busy) {
            busyAt = now;
            resting = false;
            still = 0;
        } else if (resting) {
            return false;
        }
        a.record(now, load.concurrency(), load.requestsPerSecond());
        record = !record;
        if (!record) {
            return false;
        }
        int before = bounded(a.wanted());
        boolean directBefore = direct;
        Autoscaler.Decision decision = a.tick(now, ready);
        direct = decision.mode() == Scaler.Mode.SERVE;
        int after = bounded(decision.wanted());
        if (before != after || directBefore != direct) {
            still = 0;
            return true;
        }
        still++;
        ScalingSettings s = settings;
        // Everything that time alone can change has happened when the windows are empty and the delays are over.
        resting = s != null
                && still >= STILL
                && ready == after
                && !decision.panicking()
                && (after == 0 || decision.active() || decision.activity() == Scaler.Activity.INACTIVE)
                && now - busyAt > quietNanos(s)
                && after <= Math.max(s.min(), s.scaleToZero() ? 0 : 1);
        return false;
    }

    private static long quietNanos(ScalingSettings s) {
        return s.stableWindow().toNanos() * 2
                + s.scaleDownDelay().toNanos()
                + s.scaleToZeroGracePeriod().toNanos()
                + s.scaleToZeroPodRetentionPeriod().toNanos();
    }

    /** A request waits for a replica. */
    boolean poke(long now, int ready) {
        Autoscaler a = autoscaler;
        if (a == null) {
            return false;
        }
        resting = false;
        still = 0;
        busyAt = now;
        Autoscaler.Decision decision = a.poke(now, ready);
        direct = decision.mode() == Scaler.Mode.SERVE;
        return true;
    }

    /** Whether a tick is idle. */
    boolean resting() {
        return autoscaler == null || resting;
    }
}
