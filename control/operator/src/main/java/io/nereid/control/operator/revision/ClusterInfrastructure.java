// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.revision;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.Clock;
import io.nereid.base.Threads;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.api.store.ResourceStore;
import io.nereid.control.core.Infrastructure;
import io.nereid.control.core.Plan;
import io.nereid.control.core.Revision;
import io.nereid.control.core.Route;
import io.nereid.control.core.RouteCodec;
import io.nereid.control.core.Workload;
import io.nereid.control.core.WorkloadState;
import io.nereid.control.kubernetes.cluster.Owner;
import io.nereid.control.kubernetes.pool.PoolObjects;
import io.nereid.control.kubernetes.pool.SharedForms;
import io.nereid.control.kubernetes.pool.SharedForms.SharedModel;
import io.nereid.control.kubernetes.pool.SharedPlacement;
import io.nereid.control.kubernetes.revision.GatewayObjects;
import io.nereid.control.kubernetes.revision.RevisionObjects;
import io.nereid.control.kubernetes.revision.RevisionPlanner;
import io.nereid.control.kubernetes.revision.RevisionSettings;
import io.nereid.control.kubernetes.revision.RevisionStates;
import io.nereid.control.operator.cluster.ClusterClient;
import io.nereid.control.operator.objects.ObjectApplier;
import io.nereid.control.operator.objects.ObjectApplier.Refusal;
import io.nereid.control.operator.objects.ServiceObjects;
import io.nereid.control.operator.objects.ServiceObjects.ObjectKey;
import io.nereid.control.operator.upgrade.TemplateRollout;
import io.nereid.control.plane.ServiceReconciler;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Carries out plans on a cluster: a Deployment and a headless Service for each revision, and Services with the route,
 * which the gateways follow. All of them are owned by the service. Revisions that are no longer planned go some time after
 * the route has left them, so that gateways that learn of it later lose no request.
 *
 * <p>Thread-safe for different services.
 */
public final class ClusterInfrastructure implements Infrastructure {
    private static final Logger LOG = LoggerFactory.getLogger(ClusterInfrastructure.class);
    private static final ResourceStore.Type SERVICES =
            new ResourceStore.Type(ResourceKinds.INFERENCE_SERVICE.group(), ResourceKinds.INFERENCE_SERVICE.plural());

    private static final ResourceStore.Type GRAPHS =
            new ResourceStore.Type(ResourceKinds.INFERENCE_GRAPH.group(), ResourceKinds.INFERENCE_GRAPH.plural());

    /** How long the gateways may take to follow a route before the status of its service is written. */
    private static final Duration FOLLOWED = Duration.ofSeconds(3);

    /**
     * The Service of the gateways.
     *
     * @param service its name
     */
    public record Gateways(String namespace, String service) {
        private String host() {
            return service + "." + namespace + ".svc.cluster.local";
        }
    }

    private final ResourceStore store;
    private final ServiceObjects objects;
    private final ObjectApplier applier;
    private final RevisionAutoscalers autoscalers;
    private final LoadSource load;
    private final SharedModels pools;
    private final Gateways gateways;
    private final TemplateRollout rollout;
    private final Duration retirement;
    private final Clock clock;
    private final ScheduledThreadPoolExecutor timer = Threads.timer("revision-retirement");

    /** When revisions that are not planned any more are deleted, by owner and name, in nanoseconds of this process. */
    private final Map<String, Long> retired = new ConcurrentHashMap<>();

    /** What the API server did not take of the last plan of each owner, by uid. */
    private final Map<String, Refusal> refusals = new ConcurrentHashMap<>();

    /** The last route of each service and graph that was waited for, by kind, namespace and name: the hash of its text. */
    private final Map<String, Integer> awaited = new ConcurrentHashMap<>();

    private volatile BiConsumer<String, String> listener = (namespace, service) -> {};

    /**
     * @param store has the services
     * @param gateway the name of the gateways' Service in the cluster
     * @param retirement how long a revision stays after the route has left it
     */
    public ClusterInfrastructure(
            ResourceStore store,
            ServiceObjects objects,
            ObjectApplier applier,
            RevisionAutoscalers autoscalers,
            LoadSource load,
            SharedModels pools,
            Gateways gateways,
            TemplateRollout rollout,
            Duration retirement,
            Clock clock) {
        this.store = store;
        this.objects = objects;
        this.applier = applier;
        this.autoscalers = autoscalers;
        this.load = load;
        this.pools = pools;
        this.gateways = gateways;
        this.rollout = rollout;
        this.retirement = retirement;
        this.clock = clock;
    }

    @Override
    public void onChange(BiConsumer<String, String> listener) {
        this.listener = listener;
        pools.onChange(listener);
    }

    /**
     * Sets what is called for every service and graph when the first gateway is ready or the last one is not any more.
     * Called before the load is measured.
     */
    public void onGatewayChange(ServiceReconciler.ChangeListener changes) {
        load.onServing(() -> {
            LOG.info(load.isServing() ? "a gateway is ready" : "no gateway is ready");
            changed(SERVICES, (namespace, name) -> changes.changed(false, namespace, name));
            changed(GRAPHS, (namespace, name) -> changes.changed(true, namespace, name));
        });
    }

    private void changed(ResourceStore.Type type, BiConsumer<String, String> each) {
        for (ObjectNode resource : store.list(type, null).items()) {
            JsonNode metadata = resource.path("metadata");
            each.accept(
                    metadata.path("namespace").asText(), metadata.path("name").asText());
        }
    }

    @Override
    public String gatewayProblem() {
        return load.isServing()
                ? ""
                : "no gateway is ready: the Service " + gateways.service() + " in the namespace " + gateways.namespace()
                        + " has no ready pod (expected: at least one; kubectl get pods -n " + gateways.namespace()
                        + " -l app.kubernetes.io/name=" + gateways.service()
                        + " shows them, and nereid operator manifests or the Helm chart installs them)";
    }

    private @Nullable ObjectNode service(String namespace, String name) {
        return store.get(new ResourceStore.Key(SERVICES, namespace, name));
    }

    @Override
    public Map<String, WorkloadState> observe(String namespace, String service) {
        ObjectNode resource = service(namespace, service);
        if (resource == null) {
            return Map.of();
        }
        Map<String, List<ObjectNode>> pods = new HashMap<>();
        for (ObjectNode pod : objects.pods(namespace, service)) {
            pods.computeIfAbsent(RevisionObjects.revision(pod), revision -> new ArrayList<>())
                    .add(pod);
        }
        Map<String, WorkloadState> states = new LinkedHashMap<>();
        objects.of(resource.path("metadata").path("uid").asText()).forEach((key, object) -> {
            String revision = RevisionObjects.revision(object);
            if (key.kind().equals("Service")
                    && object.path("metadata").path("labels").has(SharedPlacement.POOL)) {
                states.put(
                        revision,
                        RevisionStates.pooled(pools.state(namespace, service), revision.equals(latestReady(resource))));
            }
            if (key.kind().equals("Deployment") && !revision.isEmpty()) {
                states.put(
                        revision,
                        RevisionStates.of(
                                object,
                                pods.getOrDefault(revision, List.of()),
                                autoscalers.isWaking(namespace, revision),
                                autoscalers.traffic(namespace, revision)));
            }
        });
        return states;
    }

    private static String latestReady(ObjectNode service) {
        return service.path("status")
                .path("components")
                .path("predictor")
                .path("latestReadyRevision")
                .asText("");
    }

    /** Logs of pods are with the API server, not with the operator. */
    @Override
    public List<String> logs(String namespace, String revision, int most) {
        return List.of();
    }

    @Override
    public void apply(String namespace, String service, Plan plan) {
        ObjectNode resource = service(namespace, service);
        if (resource != null) {
            apply(resource, plan);
        }
    }

    /** Carries out the plan of a stored service or graph. */
    public void apply(ObjectNode resource, Plan plan) {
        Owner owner = Owner.of(resource);
        Map<ObjectKey, ObjectNode> stored = objects.of(owner.uid());
        List<ObjectNode> desired = new ArrayList<>();
        Set<String> planned = new HashSet<>();
        for (Workload workload : plan.workloads()) {
            planned.add(workload.revision());
            SharedModel shared = SharedForms.model(workload);
            if (shared != null) {
                desired.add(sharedService(owner, workload, shared));
                continue;
            }
            desired.add(RevisionObjects.privateService(owner, workload));
            ObjectNode there =
                    stored.get(new ObjectKey("Deployment", RevisionObjects.deploymentName(workload.revision())));
            desired.add(RevisionObjects.deployment(owner, workload, replicas(workload, there)));
        }
        Route route = plan.route();
        if (route != null) {
            String enableAuth = resource.path("metadata")
                    .path("annotations")
                    .path(GatewayObjects.ENABLE_AUTH)
                    .asText("");
            desired.addAll(RevisionObjects.routeServices(owner, route, gateways.host(), enableAuth));
            desired.addAll(retiring(owner, stored, planned));
        }
        Refusal refusal;
        try {
            rollout.pin(resource, desired, older(plan), List.of());
            refusal = applier.apply(owner.uid(), desired);
        } finally {
            rollout.applied(resource);
        }
        if (refusal == null) {
            refusals.remove(owner.uid());
            if (route != null) {
                awaitRoute(owner, route);
            }
        } else {
            refusals.put(owner.uid(), refusal);
        }
        Set<String> routed = new HashSet<>();
        if (route != null) {
            route.components().values().forEach(backend -> {
                backend.targets().forEach(target -> routed.add(target.revision()));
                backend.mirrors().forEach(target -> routed.add(target.revision()));
            });
        }
        if (owner.kind().equals("InferenceService")) {
            List<Workload> own = plan.workloads().stream()
                    .filter(workload -> SharedForms.model(workload) == null)
                    .toList();
            autoscalers.configure(owner.uid(), owner.namespace(), owner.name(), own, routed);
            pools.configure(owner, plan.workloads(), latestReady(resource));
        }
    }

    /** Requests wait for a model that can be loaded; for one that cannot be they are answered at once. */
    private ObjectNode sharedService(Owner owner, Workload workload, SharedModel shared) {
        Workload.Pod form = (Workload.Pod) workload.form();
        boolean holds = pools.state(owner.namespace(), owner.name()).failure() == null;
        RevisionSettings settings = new RevisionSettings(
                owner.name(),
                workload.containerConcurrency(),
                workload.timeout(),
                form.httpPort(),
                form.grpcPort(),
                holds,
                0,
                shared.uri().isEmpty(),
                "");
        return PoolObjects.privateService(owner, owner.name(), workload.revision(), shared.pool(), settings.toJson());
    }

    /**
     * Waits until the gateways follow a route that is new, so that a service whose status says that it is ready answers
     * from then on. A route is waited for once: one that a gateway does not follow must not delay other services again and
     * again.
     */
    private void awaitRoute(Owner owner, Route route) {
        String text = RouteCodec.write(route);
        Integer before = awaited.put(key(owner.kind(), owner.namespace(), owner.name()), text.hashCode());
        if (before != null && before == text.hashCode()) {
            return;
        }
        try {
            if (!load.awaitRoute(owner.namespace(), owner.name(), text, FOLLOWED)) {
                LOG.warn(
                        "{} {}/{}: not all gateways have followed its new route within {} s; the log of a gateway says why",
                        owner.kind(),
                        owner.namespace(),
                        owner.name(),
                        FOLLOWED.toSeconds());
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private static String key(String kind, String namespace, String name) {
        return kind + "/" + namespace + "/" + name;
    }

    /** The Deployments of revisions that are not the newest of their component. */
    private static Set<String> older(Plan plan) {
        Map<String, Revision> newest = new HashMap<>();
        for (Revision revision : plan.revisions()) {
            newest.merge(
                    RevisionPlanner.base(revision.name()),
                    revision,
                    (one, other) -> one.number() > other.number() ? one : other);
        }
        Set<String> older = new HashSet<>();
        for (Revision revision : plan.revisions()) {
            if (newest.get(RevisionPlanner.base(revision.name())) != revision) {
                older.add(RevisionObjects.deploymentName(revision.name()));
            }
        }
        return older;
    }

    /**
     * The number of replicas to apply: the initial one of a new Deployment. Later it is the autoscaler's, but as long as that
     * has never written it, it must be applied as it is, because the API server would set the default when it is left out.
     */
    private static @Nullable Integer replicas(Workload workload, @Nullable ObjectNode there) {
        if (there == null) {
            return RevisionAutoscalers.initial(workload);
        }
        for (JsonNode entry : there.path("metadata").path("managedFields")) {
            if (entry.path("manager").asText().equals(ClusterClient.FIELD_MANAGER)
                    && entry.path("fieldsV1").path("f:spec").has("f:replicas")) {
                return RevisionStates.desired(there);
            }
        }
        return null;
    }

    /** The objects of revisions that the route has left, which stay for some time. */
    private List<ObjectNode> retiring(Owner owner, Map<ObjectKey, ObjectNode> stored, Set<String> planned) {
        List<ObjectNode> all = new ArrayList<>();
        long now = clock.nanos();
        Set<String> seen = new HashSet<>();
        stored.values().forEach(object -> {
            String revision = RevisionObjects.revision(object);
            if (revision.isEmpty() || planned.contains(revision)) {
                return;
            }
            String key = owner.uid() + "/" + revision;
            seen.add(key);
            long end = retired.computeIfAbsent(key, k -> later(owner, now));
            if (now - end < 0) {
                all.add(object);
            }
        });
        retired.keySet().removeIf(key -> key.startsWith(owner.uid() + "/") && !seen.contains(key));
        return all;
    }

    private long later(Owner owner, long now) {
        try {
            Object unused = timer.schedule(
                    () -> listener.accept(owner.namespace(), owner.name()),
                    retirement.toMillis() + 100,
                    TimeUnit.MILLISECONDS);
        } catch (RejectedExecutionException e) {
            LOG.debug("revisions of {} stay: the operator ends", owner.name());
        }
        return now + retirement.toNanos();
    }

    /** Returns what the API server did not take of the last plan of an owner; null for nothing. */
    public @Nullable Refusal refusal(String uid) {
        return refusals.get(uid);
    }

    /** Forgets a graph that is gone. */
    public void forgetGraph(String namespace, String graph) {
        awaited.remove(key(ResourceKinds.INFERENCE_GRAPH.kind(), namespace, graph));
    }

    /** Forgets a service that another mode carries out now, or that is gone. */
    public void forget(String namespace, String service) {
        awaited.remove(key(ResourceKinds.INFERENCE_SERVICE.kind(), namespace, service));
        autoscalers.configure("", namespace, service, List.of(), Set.of());
        pools.forget(namespace, service);
    }

    @Override
    public void close() {
        timer.shutdownNow();
    }
}
