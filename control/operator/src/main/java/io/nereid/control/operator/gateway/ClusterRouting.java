// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.gateway;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.base.ServingException;
import io.nereid.control.api.store.ResourceStore.Change;
import io.nereid.control.core.Route;
import io.nereid.control.core.RouteCodec;
import io.nereid.control.core.Workload.Component;
import io.nereid.control.gateway.Gateway;
import io.nereid.control.gateway.activator.NamedModels;
import io.nereid.control.gateway.activator.RevisionActivator;
import io.nereid.control.gateway.upstream.RevisionTarget;
import io.nereid.control.kubernetes.revision.GatewayObjects;
import io.nereid.control.kubernetes.revision.RevisionSettings;
import io.nereid.control.operator.access.ProtectedServices;
import io.nereid.transport.api.ProtocolCodec;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Consumer;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Carries over to a {@link Gateway} what the objects of a cluster say: routes, revisions and their pods. It has no state
 * but what it was told. A new route of a service is
 * followed once all revisions that get traffic are known; the former one stays in force until then. Objects that cannot be read are reported in the log, and what was known before stays in force.
 *
 * <p>A revision without ready pods holds its requests. A revision whose Service was deleted keeps serving while a route
 * leads to it, because the watches tell of changes in any order.
 *
 * <p>Thread-safe; methods do not block.
 */
final class ClusterRouting {
    private static final Logger LOG = LoggerFactory.getLogger(ClusterRouting.class);
    private static final ObjectMapper JSON = new ObjectMapper();

    private final Gateway gateway;
    private final Function<Route, List<ProtocolCodec>> graphs;
    private final ProtectedServices access;
    private final String zone;

    @GuardedBy("this") private final Map<String, Revision> revisions = new HashMap<>();

    /** EndpointSlices by the namespace and name of their Service, then by their own names. */
    @GuardedBy("this") private final Map<String, Map<String, ObjectNode>> slices = new HashMap<>();

    /** The models of services whose models have revisions of their own, by the namespace and name of the service. */
    @GuardedBy("this") private final Map<String, NamedModels> named = new HashMap<>();

    @GuardedBy("this") private final Map<String, Routed> routes = new HashMap<>();

    /** Routes that wait until the revisions that they lead to are known. */
    @GuardedBy("this") private final Map<String, Waiting> waiting = new HashMap<>();

    /** The routes that requests follow, by namespace and name. */
    @GuardedBy("this") private final Map<String, FollowedRoute> followed = new HashMap<>();

    private volatile Consumer<FollowedRoute> followedListener = route -> {};

    private record Waiting(Route route, String digest) {}

    /** A revision that is known. Guarded by the routing. */
    private static final class Revision {
        final String namespace;
        final String name;

        /** The namespace and name of its Service. */
        String service = "";

        RevisionSettings settings;
        RevisionActivator activator;
        int replicas;

        /** Whether its Service was deleted. */
        boolean deleted;

        /** Activators with former settings, which still hold or run requests. */
        final List<RevisionActivator> former = new ArrayList<>();

        Revision(String namespace, String name, RevisionSettings settings, RevisionActivator activator) {
            this.namespace = namespace;
            this.name = name;
            this.settings = settings;
            this.activator = activator;
        }
    }

    /**
     * A route in force.
     *
     * @param graph runs the route's graph; null for a route without one
     */
    private record Routed(Route route, @Nullable RevisionActivator graph) {}

    /**
     * Creates a routing without routes.
     *
     * @param graphs makes the endpoints of a route's graph; fails with INVALID_ARGUMENT for an invalid one
     * @param access receives the services whose callers Kubernetes must know
     * @param zone the gateway's zone; empty when it is not known
     */
    ClusterRouting(
            Gateway gateway, Function<Route, List<ProtocolCodec>> graphs, ProtectedServices access, String zone) {
        this.gateway = gateway;
        this.graphs = graphs;
        this.access = access;
        this.zone = zone;
    }

    private static String key(String namespace, String name) {
        return namespace + "/" + name;
    }

    private static String namespace(ObjectNode object) {
        return object.path("metadata").path("namespace").asText();
    }

    private static String name(ObjectNode object) {
        return object.path("metadata").path("name").asText();
    }

    private static String annotation(ObjectNode object, String name) {
        return object.path("metadata").path("annotations").path(name).asText("");
    }

    private static String label(ObjectNode object, String name) {
        return object.path("metadata").path("labels").path(name).asText("");
    }

    /** The activators of all revisions that are known. */
    synchronized List<Loaded> loaded() {
        List<Loaded> all = new ArrayList<>();
        revisions.values().forEach(revision -> {
            List<RevisionActivator> activators = new ArrayList<>(revision.former);
            activators.add(revision.activator);
            all.add(new Loaded(revision.namespace, revision.name, revision.replicas, activators));
        });
        return all;
    }

    /** A revision with its activators, of which the last one takes new requests. Immutable. */
    record Loaded(String namespace, String revision, int replicas, List<RevisionActivator> activators) {
        Loaded {
            activators = List.copyOf(activators);
        }
    }

    /** The number of replicas of a revision that take requests; 0 for an unknown one. */
    synchronized int replicas(String namespace, String revision) {
        Revision known = revisions.get(key(namespace, revision));
        return known == null ? 0 : known.replicas;
    }

    // ---- routes ----

    /** Sets what is called, with the routing locked, for a route that requests follow from now on; it must not block. */
    void onFollowed(Consumer<FollowedRoute> listener) {
        followedListener = listener;
    }

    /** The routes that requests follow. */
    synchronized List<FollowedRoute> followed() {
        return List.copyOf(followed.values());
    }

    @GuardedBy("this") private void followed(String namespace, String name, String digest) {
        FollowedRoute now = new FollowedRoute(namespace, name, digest);
        FollowedRoute before =
                digest.equals(FollowedRoute.NONE) ? followed.remove(now.key()) : followed.put(now.key(), now);
        if (!now.equals(before)) {
            followedListener.accept(now);
        }
    }

    /** A Service with a route. */
    synchronized void route(Change.Kind change, ObjectNode service) {
        String key = key(namespace(service), name(service));
        if (change == Change.Kind.DELETED) {
            waiting.remove(key);
            Routed old = routes.remove(key);
            gateway.route(namespace(service), name(service), null);
            followed(namespace(service), name(service), FollowedRoute.NONE);
            access.remove(namespace(service), name(service));
            close(old);
            closeDeleted();
            return;
        }
        try {
            String text = annotation(service, GatewayObjects.ROUTE);
            Route route = RouteCodec.read(text);
            if (!route.namespace().equals(namespace(service))) {
                throw ServingException.invalidArgument("the route is of namespace " + route.namespace());
            }
            if (!route.name().equals(name(service))) {
                throw ServingException.invalidArgument("the route is of " + route.name());
            }
            // Before the route, and also when that has to wait: nothing is reached without its protection.
            access.put(
                    route.namespace(),
                    route.name(),
                    route.kind(),
                    annotation(service, GatewayObjects.ENABLE_AUTH),
                    steps(route));
            waiting.remove(key);
            if (routes.containsKey(key) && !isKnown(route)) {
                waiting.put(key, new Waiting(route, FollowedRoute.digest(text)));
                return;
            }
            route(key, route, false);
            followed(route.namespace(), route.name(), FollowedRoute.digest(text));
            closeDeleted();
        } catch (ServingException e) {
            LOG.error("Service {}: the route is not followed, a former one stays: {}", key, e.describe());
        }
    }

    @GuardedBy("this") private void route(String key, Route route, boolean again) {
        Routed old = routes.get(key);
        if (old != null && old.route.equals(route) && !again) {
            return;
        }
        if (route.graph().isEmpty()) {
            gateway.route(route.namespace(), route.name(), route);
            routes.put(key, new Routed(route, null));
            close(old);
            return;
        }
        RevisionActivator graph = old == null ? null : old.graph;
        if (old == null || graph == null || again || !old.route.graph().equals(route.graph())) {
            graph = gateway.openActivator(
                    route.namespace(),
                    route.name(),
                    RevisionActivator.Settings.of(route.name()),
                    new RevisionTarget.Handler(graphs.apply(route)));
            graph.capacity(1);
        }
        Route.Backend backend = new Route.Backend(List.of(new Route.Target(route.name(), 100, null)), List.of(), null);
        gateway.route(
                route.namespace(),
                route.name(),
                new Route(
                        route.namespace(),
                        route.name(),
                        route.kind(),
                        route.rules(),
                        Map.of(Component.PREDICTOR, backend),
                        route.graph()));
        routes.put(key, new Routed(route, graph));
        if (old != null && old.graph != graph) {
            close(old);
        }
    }

    /** The services that a route's graph calls by their names. */
    private static Set<String> steps(Route route) {
        if (route.graph().isEmpty()) {
            return Set.of();
        }
        Set<String> names = new TreeSet<>();
        try {
            for (JsonNode name : JSON.readTree(route.graph()).findValues("serviceName")) {
                names.add(name.asText());
            }
        } catch (JsonProcessingException e) {
            throw ServingException.invalidArgument("the graph of the route is not JSON: " + e.getOriginalMessage());
        }
        return names;
    }

    /** Whether all revisions that get traffic are known. */
    @GuardedBy("this") private boolean isKnown(Route route) {
        for (Route.Backend backend : route.components().values()) {
            for (Route.Target target : backend.targets()) {
                if (target.percent() > 0 && !revisions.containsKey(key(route.namespace(), target.revision()))) {
                    return false;
                }
            }
        }
        return true;
    }

    @GuardedBy("this") private void followWaiting() {
        for (Map.Entry<String, Waiting> entry : Map.copyOf(waiting).entrySet()) {
            Waiting next = entry.getValue();
            if (isKnown(next.route)) {
                waiting.remove(entry.getKey());
                route(entry.getKey(), next.route, false);
                followed(next.route.namespace(), next.route.name(), next.digest);
            }
        }
        closeDeleted();
    }

    /** Makes the graphs again, after a change of the settings that they use. */
    synchronized void renewGraphs() {
        for (Map.Entry<String, Routed> entry : Map.copyOf(routes).entrySet()) {
            if (entry.getValue().graph != null) {
                try {
                    route(entry.getKey(), entry.getValue().route, true);
                } catch (ServingException e) {
                    LOG.error("the graph {} stays as it is: {}", entry.getKey(), e.describe());
                }
            }
        }
    }

    private static void close(@Nullable Routed old) {
        if (old != null && old.graph != null) {
            Object unused = old.graph.close();
        }
    }

    // ---- revisions ----

    /** A Service of a revision. */
    synchronized void revision(Change.Kind change, ObjectNode service) {
        String name = label(service, GatewayObjects.REVISION_LABEL);
        String text = annotation(service, GatewayObjects.REVISION);
        if (text.isEmpty()) {
            // Other Services may select the pods of a revision, too.
            return;
        }
        String key = key(namespace(service), name);
        Revision known = revisions.get(key);
        if (change == Change.Kind.DELETED) {
            if (known != null && known.service.equals(key(namespace(service), name(service)))) {
                known.deleted = true;
                closeDeleted();
            }
            return;
        }
        RevisionSettings settings;
        try {
            settings = RevisionSettings.read(text);
        } catch (ServingException e) {
            LOG.error(
                    "Service {}/{}: revision {} is served as before: {}",
                    namespace(service),
                    name(service),
                    name,
                    e.describe());
            return;
        }
        if (known == null) {
            known = new Revision(namespace(service), name, settings, open(namespace(service), name, settings));
            revisions.put(key, known);
        } else if (!known.settings.equals(settings)) {
            RevisionActivator former = known.activator;
            unname(known);
            known.settings = settings;
            known.activator = open(namespace(service), name, settings);
            known.former.add(former);
        }
        name(known);
        known.deleted = false;
        known.service = key(namespace(service), name(service));
        update(known);
        followWaiting();
    }

    @GuardedBy("this") private RevisionActivator open(String namespace, String revision, RevisionSettings settings) {
        RevisionActivator.Settings defaults = RevisionActivator.Settings.of(settings.service());
        RevisionTarget target = settings.byModel()
                ? new RevisionTarget.Handler(List.of(named(namespace, settings.service())))
                : new RevisionTarget.Processes(List.of());
        return gateway.openActivator(
                namespace,
                revision,
                new RevisionActivator.Settings(
                        settings.service(),
                        settings.containerConcurrency(),
                        defaults.queued(),
                        settings.timeout(),
                        defaults.held(),
                        defaults.mirrored()),
                target);
    }

    @GuardedBy("this") private NamedModels named(String namespace, String service) {
        return named.computeIfAbsent(key(namespace, service), key -> new NamedModels(service));
    }

    @GuardedBy("this") private void name(Revision revision) {
        RevisionSettings settings = revision.settings;
        if (!settings.model().isEmpty()) {
            named(revision.namespace, settings.service()).put(settings.model(), revision.activator);
        }
    }

    /** Removes the model of a revision from those of its service, and the service's entry with its last revision. */
    @GuardedBy("this") private void unname(Revision revision) {
        RevisionSettings settings = revision.settings;
        String key = key(revision.namespace, settings.service());
        NamedModels models = named.get(key);
        if (models == null) {
            return;
        }
        if (!settings.model().isEmpty()) {
            models.remove(settings.model(), revision.activator);
        }
        boolean used = revisions.values().stream()
                .anyMatch(other -> other != revision
                        && other.settings.byModel()
                        && key(other.namespace, other.settings.service()).equals(key));
        if (models.isEmpty() && !used) {
            named.remove(key);
        }
    }

    /** An EndpointSlice of a revision's Service. */
    synchronized void slice(Change.Kind change, ObjectNode slice) {
        String service = key(namespace(slice), label(slice, GatewayObjects.SLICE_SERVICE));
        if (change == Change.Kind.DELETED) {
            Map<String, ObjectNode> of = slices.get(service);
            if (of != null && of.remove(name(slice)) != null && of.isEmpty()) {
                slices.remove(service);
            }
        } else {
            slices.computeIfAbsent(service, s -> new HashMap<>()).put(name(slice), slice);
        }
        Revision known = revisions.get(key(namespace(slice), label(slice, GatewayObjects.REVISION_LABEL)));
        if (known != null && known.service.equals(service)) {
            update(known);
        }
        String table = annotation(slice, GatewayObjects.TABLE);
        if (!table.isEmpty()) {
            // The operator waits for this before it unloads a model of a pool.
            followed(
                    namespace(slice),
                    GatewayObjects.SLICE_PREFIX + name(slice),
                    change == Change.Kind.DELETED ? FollowedRoute.NONE : FollowedRoute.digest(table));
        }
    }

    @GuardedBy("this") private void update(Revision revision) {
        RevisionSettings settings = revision.settings;
        List<RevisionTarget.Replica> replicas = EndpointReplicas.of(
                slices.getOrDefault(revision.service, Map.of()).values(),
                settings.httpPort(),
                settings.grpcPort(),
                zone);
        int count = replicas.size();
        revision.replicas = count;
        RevisionActivator activator = revision.activator;
        if (settings.byModel()) {
            activator.capacity(1);
            revision.replicas = 1;
            revision.former.removeIf(former -> {
                Object unused = former.close();
                return true;
            });
            return;
        }
        RevisionTarget target = new RevisionTarget.Processes(replicas);
        if (count > 0) {
            activator.reject(null);
        }
        activator.direct(direct(settings, count));
        activator.destination(target);
        activator.capacity(count);
        if (count == 0 && !settings.holds()) {
            activator.reject("revision " + revision.name + " has no ready pod");
        }
        // Requests that were held under former settings are served as well.
        revision.former.removeIf(former -> {
            former.destination(target);
            former.capacity(count);
            boolean over = count > 0 || former.activeNow() == 0;
            if (over) {
                Object unused = former.close();
            }
            return over;
        });
    }

    /** Whether requests beyond the limit wait in the revision's short queue, as at Knative's queue-proxy. */
    private static boolean direct(RevisionSettings settings, int replicas) {
        double burst = settings.targetBurstCapacity();
        return burst == 0 || burst > 0 && (double) replicas * settings.containerConcurrency() >= burst;
    }

    /** Closes the revisions whose Services were deleted and to which no route leads. */
    @GuardedBy("this") private void closeDeleted() {
        for (Revision revision : List.copyOf(revisions.values())) {
            if (revision.deleted && !isTarget(revision)) {
                revisions.remove(key(revision.namespace, revision.name));
                unname(revision);
                Object unused = revision.activator.close();
                for (RevisionActivator former : revision.former) {
                    Object unusedToo = former.close();
                }
            }
        }
    }

    @GuardedBy("this") private boolean isTarget(Revision revision) {
        for (Routed routed : routes.values()) {
            if (!routed.route.namespace().equals(revision.namespace)) {
                continue;
            }
            for (Route.Backend backend : routed.route.components().values()) {
                if (names(backend.targets(), revision) || names(backend.mirrors(), revision)) {
                    return true;
                }
            }
        }
        return false;
    }

    private static boolean names(List<Route.Target> targets, Revision revision) {
        return targets.stream().anyMatch(target -> target.revision().equals(revision.name));
    }
}
