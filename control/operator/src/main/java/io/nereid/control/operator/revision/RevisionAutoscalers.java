// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.revision;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.base.Clock;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.control.autoscaling.Autoscaler;
import io.nereid.control.autoscaling.Scaler;
import io.nereid.control.autoscaling.ScalingSettings;
import io.nereid.control.core.ObservedState.Traffic;
import io.nereid.control.core.Workload;
import io.nereid.control.core.Workload.Scaling;
import io.nereid.control.gateway.activator.WakeListener;
import io.nereid.control.kubernetes.revision.RevisionObjects;
import io.nereid.control.kubernetes.revision.RevisionStates;
import io.nereid.control.operator.gateway.RevisionLoad;
import io.nereid.control.operator.objects.ObjectApplier;
import io.nereid.control.operator.objects.ServiceObjects;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Scales the Deployments of all revisions by the load at the gateways, with Knative's algorithm: one loop for the cluster,
 * a step each second, and at once for a request that waits at a revision without pods. Numbers of replicas are written
 * only when they change.
 *
 * <p>While the load is not known completely, because a gateway does not answer, replicas stay as they are but for the
 * bounds. A revision that has not been ready yet is not scaled to zero, so that zero replicas always mean that it can
 * start.
 *
 * <p>Thread-safe; no method blocks.
 */
public final class RevisionAutoscalers implements WakeListener, AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(RevisionAutoscalers.class);
    private static final String PREFIX = "autoscaling.knative.dev/";
    private static final int WRITERS = 4;

    private final ServiceObjects objects;
    private final ObjectApplier applier;
    private final LoadSource source;
    private final Clock clock;
    private final ScheduledThreadPoolExecutor timer = Threads.timer("autoscaler");
    private final ThreadPoolExecutor writers = Threads.pool("autoscaler-write", WRITERS);

    /** The revisions by namespace and name. */
    @GuardedBy("this") private final Map<String, Scaled> revisions = new HashMap<>();

    /** A revision that is scaled. Guarded by the autoscalers. */
    private static final class Scaled {
        final String uid;
        Workload workload;

        /** Null for a fixed number of replicas. */
        @Nullable Autoscaler autoscaler;

        boolean reachable;
        boolean everReady;

        /** Whether it was at zero, and no pod has been ready since. */
        boolean wasZero;

        boolean writing;

        Scaled(String uid, Workload workload) {
            this.uid = uid;
            this.workload = workload;
        }
    }

    /** @param applier writes the number of replicas */
    public RevisionAutoscalers(ServiceObjects objects, ObjectApplier applier, LoadSource source, Clock clock) {
        this.objects = objects;
        this.applier = applier;
        this.source = source;
        this.clock = clock;
    }

    /** Starts the loop. */
    public void start() {
        Object unused = timer.scheduleAtFixedRate(this::step, 1, 1, TimeUnit.SECONDS);
    }

    private static String key(String namespace, String revision) {
        return namespace + "/" + revision;
    }

    /** The number of replicas that a new revision starts with. */
    public static int initial(Workload workload) {
        ScalingSettings settings = settings(workload);
        return settings == null ? fixed(workload) : Scaler.initial(settings);
    }

    private static int fixed(Workload workload) {
        return Math.max(1, workload.scaling().min());
    }

    /** The settings of the autoscaler; null for a fixed number of replicas. */
    private static @Nullable ScalingSettings settings(Workload workload) {
        Scaling scaling = workload.scaling();
        if (scaling.autoscaler().equals("none")) {
            return null;
        }
        Map<String, String> annotations = new HashMap<>();
        scaling.settings().forEach((name, value) -> annotations.put(PREFIX + name, value));
        try {
            return ScalingSettings.of(
                    scaling.min(),
                    scaling.max(),
                    scaling.metric(),
                    scaling.target(),
                    workload.containerConcurrency(),
                    annotations);
        } catch (ServingException e) {
            LOG.warn(
                    "revision {}/{} keeps {} replicas, because its autoscaling cannot be read: {}",
                    workload.namespace(),
                    workload.revision(),
                    fixed(workload),
                    e.describe());
            return null;
        }
    }

    /**
     * Sets the revisions of a service that are scaled from now on.
     *
     * @param uid the uid of the service
     * @param routed the names of the revisions that a route leads to
     */
    public synchronized void configure(
            String uid, String namespace, String service, List<Workload> workloads, Set<String> routed) {
        Set<String> wanted = new HashSet<>();
        for (Workload workload : workloads) {
            String key = key(namespace, workload.revision());
            wanted.add(key);
            Scaled known = revisions.get(key);
            if (known == null || !known.uid.equals(uid)) {
                known = new Scaled(uid, workload);
                revisions.put(key, known);
                configure(known);
            } else if (!known.workload.equals(workload)) {
                known.workload = workload;
                configure(known);
            }
            known.reachable = routed.contains(workload.revision());
        }
        revisions
                .entrySet()
                .removeIf(entry -> entry.getValue().workload.namespace().equals(namespace)
                        && entry.getValue().workload.service().equals(service)
                        && !wanted.contains(entry.getKey()));
    }

    @GuardedBy("this") private void configure(Scaled revision) {
        ScalingSettings settings = settings(revision.workload);
        Autoscaler before = revision.autoscaler;
        if (settings == null) {
            revision.autoscaler = null;
        } else if (before != null
                && before.settings().metric() == settings.metric()
                && before.settings().aggregation() == settings.aggregation()) {
            before.update(settings, clock.nanos());
        } else {
            ObjectNode deployment = deployment(revision);
            revision.autoscaler = deployment == null
                    ? new Autoscaler(settings, clock.nanos())
                    : new Autoscaler(
                            settings,
                            clock.nanos(),
                            RevisionStates.ready(deployment),
                            RevisionStates.desired(deployment));
        }
    }

    private @Nullable ObjectNode deployment(Scaled revision) {
        return objects.of(revision.uid)
                .get(new ServiceObjects.ObjectKey(
                        "Deployment", RevisionObjects.deploymentName(revision.workload.revision())));
    }

    /** Whether a revision was at zero, and no pod of it has been ready since. */
    public synchronized boolean isWaking(String namespace, String revision) {
        Scaled known = revisions.get(key(namespace, revision));
        return known != null && known.wasZero;
    }

    /** Statistics of the recent requests of a revision. */
    public Traffic traffic(String namespace, String revision) {
        return source.load(namespace, revision).traffic();
    }

    private void step() {
        try {
            boolean complete = source.isComplete();
            List<Scaled> all;
            synchronized (this) {
                all = new ArrayList<>(revisions.values());
            }
            for (Scaled revision : all) {
                step(revision, complete, false);
            }
        } catch (RuntimeException e) {
            LOG.error("revisions could not be scaled", e);
        }
    }

    @Override
    public void wake(String namespace, String revision) {
        Scaled known;
        synchronized (this) {
            known = revisions.get(key(namespace, revision));
        }
        if (known != null) {
            step(known, true, true);
        }
    }

    private void step(Scaled revision, boolean complete, boolean waiting) {
        ObjectNode deployment = deployment(revision);
        if (deployment == null) {
            return;
        }
        int replicas = RevisionStates.desired(deployment);
        int ready = RevisionStates.ready(deployment);
        synchronized (this) {
            revision.everReady |= ready > 0 || replicas == 0;
            revision.wasZero = replicas == 0 || (revision.wasZero && !serves(revision, deployment));
            int desired = desired(revision, replicas, ready, complete, waiting);
            if (desired == replicas || revision.writing) {
                return;
            }
            revision.writing = true;
            try {
                writers.execute(() -> write(revision, deployment, desired));
            } catch (RejectedExecutionException e) {
                LOG.debug("{} is not scaled: the operator ends", revision.workload.revision());
            }
        }
    }

    /**
     * Whether a pod takes requests. The number in the Deployment's status alone still counts, for a moment, the pods that
     * were there before it was at zero.
     */
    private boolean serves(Scaled revision, ObjectNode deployment) {
        JsonNode status = deployment.path("status");
        long generation = deployment.path("metadata").path("generation").asLong();
        return RevisionStates.ready(deployment) > 0
                && status.path("observedGeneration").asLong() >= generation
                && objects.pods(revision.workload.namespace(), revision.workload.service()).stream()
                        .anyMatch(pod -> RevisionObjects.revision(pod).equals(revision.workload.revision())
                                && RevisionStates.isReady(pod));
    }

    @GuardedBy("this") private int desired(Scaled revision, int replicas, int ready, boolean complete, boolean waiting) {
        Autoscaler autoscaler = revision.autoscaler;
        if (autoscaler == null) {
            return fixed(revision.workload);
        }
        if (!complete) {
            int most = autoscaler.settings().max();
            int least =
                    Math.max(replicas, replicas == 0 ? 0 : autoscaler.settings().min());
            return most > 0 ? Math.min(least, most) : least;
        }
        long now = clock.nanos();
        autoscaler.reachable(revision.reachable || !revision.everReady);
        int desired;
        if (waiting) {
            desired = Math.max(1, autoscaler.poke(now, ready).desired());
        } else {
            RevisionLoad load = source.load(revision.workload.namespace(), revision.workload.revision());
            autoscaler.record(now, load.concurrency(), load.requestsPerSecond());
            desired = autoscaler.tick(now, ready).desired();
        }
        return desired == 0 && !revision.everReady ? replicas : desired;
    }

    private void write(Scaled revision, ObjectNode deployment, int replicas) {
        try {
            applier.scale(deployment, replicas);
            LOG.debug("{} is scaled to {}", revision.workload.revision(), replicas);
        } catch (ServingException e) {
            LOG.warn(
                    "revision {}/{} could not be scaled to {}: {}",
                    revision.workload.namespace(),
                    revision.workload.revision(),
                    replicas,
                    e.describe());
        } finally {
            synchronized (this) {
                revision.writing = false;
            }
        }
    }

    @Override
    public void close() {
        timer.shutdownNow();
        writers.shutdownNow();
    }
}
