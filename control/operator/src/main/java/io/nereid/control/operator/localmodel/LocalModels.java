// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.localmodel;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.api.ResourceKind;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.api.config.InferenceServiceConfig;
import io.nereid.control.api.store.ResourceStore;
import io.nereid.control.kubernetes.apply.ApplyDifference;
import io.nereid.control.kubernetes.cluster.ClusterSettings;
import io.nereid.control.kubernetes.localmodel.NodeCacheCluster;
import io.nereid.control.kubernetes.localmodel.NodeCacheObjects;
import io.nereid.control.kubernetes.localmodel.NodeCachePlan;
import io.nereid.control.kubernetes.localmodel.NodeCacheStatus;
import io.nereid.control.operator.cluster.ClusterClient;
import io.nereid.control.operator.cluster.ClusterKinds;
import io.nereid.control.operator.cluster.ClusterStore;
import io.nereid.control.operator.cluster.ObjectCache;
import io.nereid.control.operator.objects.ObjectTrimmer;
import io.nereid.control.plane.ServiceReconciler.ChangeListener;
import io.nereid.control.plane.loop.EventLoop;
import io.nereid.control.plane.loop.Retries;
import io.nereid.control.plane.loop.StoreWatches;
import io.nereid.control.plane.loop.WorkQueue;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Carries out LocalModelCaches and LocalModelNamespaceCaches in a cluster: decides which models the nodes of each
 * LocalModelNodeGroup keep, runs the agents that download them, gives the namespaces of services a claim, and writes the
 * statuses. All resources are looked at together, by one thread at a time. Thread-safe.
 *
 * <pre>{@code
 * LocalModels models = new LocalModels(client, services, "nereid", EventLoop.threads(clock));
 * models.load(SYNC);
 * models.start();
 * ObjectNode service = models.annotated(stored);
 * }</pre>
 */
public final class LocalModels implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(LocalModels.class);
    private static final String ALL = "local models";
    private static final String KSERVE_FINALIZER = "localmodel.kserve.io/finalizer";

    /** Changes come in groups, those of statuses after downloads for example. */
    private static final Duration PACE = Duration.ofMillis(200);

    private static final List<ResourceKind> KINDS = List.of(
            ResourceKinds.LOCAL_MODEL_CACHE,
            ResourceKinds.LOCAL_MODEL_NAMESPACE_CACHE,
            ResourceKinds.LOCAL_MODEL_NODE_GROUP,
            ResourceKinds.LOCAL_MODEL_NODE);

    private static final List<ResourceKind> MADE =
            List.of(ClusterKinds.PERSISTENT_VOLUME, ClusterKinds.PERSISTENT_VOLUME_CLAIM, ClusterKinds.DAEMON_SET);

    private final ClusterClient client;
    private final ResourceStore services;
    private final String home;
    private final EventLoop loop;
    private final ClusterStore store;
    private final StoreWatches watches;
    private final StoreWatches serviceWatches;
    private final WorkQueue<String> queue;
    private volatile ChangeListener listener = (graph, namespace, name) -> {};

    /** The last plan. */
    private volatile NodeCachePlan plan = NodeCachePlan.EMPTY;

    /** What the services used at the last look, by {@code namespace/name}; used by one thread at a time. */
    private Map<String, String> uses = Map.of();

    private volatile boolean loaded;
    private volatile boolean closed;

    /**
     * Creates it without starting it.
     *
     * @param services has the InferenceServices and the ConfigMap of the settings
     * @param home the operator's own namespace
     * @param loop owned by this object, which closes it
     */
    public LocalModels(ClusterClient client, ResourceStore services, String home, EventLoop loop) {
        this.client = client;
        this.services = services;
        this.home = home;
        this.loop = loop;
        List<ObjectCache> caches = new ArrayList<>();
        // What is applied is compared with the fields that this operator has applied.
        KINDS.forEach(kind -> caches.add(new ObjectCache(
                client,
                kind,
                Set.of(),
                "",
                kind.equals(ResourceKinds.LOCAL_MODEL_NODE) ? ObjectCache.ObjectFilter.ALL : ObjectTrimmer::resource)));
        caches.add(new ObjectCache(client, ClusterKinds.NODE, Set.of(), "", LocalModels::node));
        for (ResourceKind kind : MADE) {
            Set<String> namespaces = kind.equals(ClusterKinds.DAEMON_SET) ? Set.of(home) : Set.of();
            caches.add(new ObjectCache(client, kind, namespaces, NodeCacheObjects.OWN, ObjectCache.ObjectFilter.ALL));
        }
        this.store = new ClusterStore(client, caches, Set.of());
        this.watches = new StoreWatches(store, loop);
        this.serviceWatches = new StoreWatches(services, loop);
        this.queue = new WorkQueue<>(loop, Retries.ofReconciliation(), all -> work());
    }

    /** What counts of a node: the kubelet reports the rest every few seconds. */
    private static ObjectNode node(ObjectNode node) {
        JsonNode metadata = node.path("metadata");
        ObjectNode kept = node.objectNode();
        kept.putObject("metadata")
                .put("name", metadata.path("name").asText())
                .put("resourceVersion", metadata.path("resourceVersion").asText())
                .set("labels", metadata.path("labels").deepCopy());
        ArrayNode conditions = kept.putObject("status").putArray("conditions");
        for (JsonNode condition : node.path("status").path("conditions")) {
            if (condition.path("type").asText().equals("Ready")) {
                conditions
                        .addObject()
                        .put("type", "Ready")
                        .put("status", condition.path("status").asText());
            }
        }
        return kept;
    }

    private static ResourceStore.Type type(ResourceKind kind) {
        return new ResourceStore.Type(kind.group(), kind.plural());
    }

    /**
     * Reads what is there, and plans. Without the definitions or the rights there are no caches, and services download
     * their models themselves.
     *
     * @throws ServingException UNAVAILABLE when that takes longer than the limit
     */
    public void load(Duration limit) {
        for (ResourceKind kind : KINDS) {
            if (!client.has(kind)) {
                LOG.warn(
                        "there is no definition of {}: models are not cached on nodes; install the definitions of this"
                                + " version, and restart the operator",
                        kind.plural());
                return;
            }
        }
        try {
            store.start(limit);
        } catch (ServingException e) {
            if (e.code() != ErrorCode.PERMISSION_DENIED) {
                throw e;
            }
            LOG.warn(
                    "models are not cached on nodes: {}; install the rights of this version, and restart the operator",
                    e.describe());
            return;
        }
        loaded = true;
        List<ObjectNode> all = services();
        plan = plan(all);
        uses = uses(all, plan);
    }

    /** Carries out from now on. */
    public void start() {
        if (!loaded) {
            return;
        }
        KINDS.forEach(kind -> watches.follow(type(kind), change -> queue.addAfter(ALL, PACE)));
        watches.follow(type(ClusterKinds.NODE), change -> queue.addAfter(ALL, PACE));
        MADE.forEach(kind -> watches.follow(type(kind), change -> queue.addAfter(ALL, PACE)));
        serviceWatches.follow(type(ResourceKinds.INFERENCE_SERVICE), change -> {
            // The statuses of services change often.
            if (!plan.models().isEmpty()) {
                queue.addAfter(ALL, PACE);
            }
        });
        serviceWatches.follow(type(ResourceKinds.CONFIG_MAP), change -> queue.addAfter(ALL, PACE));
        queue.add(ALL);
    }

    /** Sets the listener for services that begin or cease to use a cached model. */
    public void onChange(ChangeListener to) {
        this.listener = to;
    }

    /** The service with the labels and annotations of the cached model that it uses; see {@link NodeCachePlan#annotated}. */
    public ObjectNode annotated(ObjectNode service) {
        return plan.annotated(service);
    }

    private List<ObjectNode> services() {
        return services.list(type(ResourceKinds.INFERENCE_SERVICE), null).items().stream()
                .filter(one -> !one.path("metadata").hasNonNull("deletionTimestamp"))
                .toList();
    }

    private List<ObjectNode> list(ResourceKind kind) {
        return store.list(type(kind), null).items();
    }

    private List<ObjectNode> caches() {
        List<ObjectNode> caches = new ArrayList<>(list(ResourceKinds.LOCAL_MODEL_CACHE));
        caches.addAll(list(ResourceKinds.LOCAL_MODEL_NAMESPACE_CACHE));
        return caches;
    }

    private NodeCachePlan plan(List<ObjectNode> all) {
        return NodeCachePlan.of(list(ResourceKinds.LOCAL_MODEL_NODE_GROUP), caches(), all);
    }

    private static Map<String, String> uses(List<ObjectNode> services, NodeCachePlan plan) {
        Map<String, String> uses = new HashMap<>();
        for (ObjectNode service : services) {
            String use = plan.identity(service);
            if (!use.isEmpty()) {
                uses.put(key(service), use);
            }
        }
        return uses;
    }

    private static String key(ObjectNode object) {
        JsonNode metadata = object.path("metadata");
        return metadata.path("namespace").asText("") + "/"
                + metadata.path("name").asText("");
    }

    private ClusterSettings settings() {
        ObjectNode map = services.get(
                new ResourceStore.Key(type(ResourceKinds.CONFIG_MAP), home, InferenceServiceConfig.CONFIG_MAP));
        return ClusterSettings.of(map == null ? InferenceServiceConfig.defaults() : InferenceServiceConfig.read(map));
    }

    private void work() {
        if (closed) {
            return;
        }
        caches().forEach(this::release);
        List<ObjectNode> all = services();
        NodeCachePlan next = plan(all);
        plan = next;
        Map<String, String> before = uses;
        uses = uses(all, next);
        Set<String> changed = new HashSet<>(before.keySet());
        changed.addAll(uses.keySet());
        changed.removeIf(one -> Objects.equals(before.get(one), uses.get(one)));
        for (String one : changed) {
            int slash = one.indexOf('/');
            listener.changed(false, one.substring(0, slash), one.substring(slash + 1));
        }
        List<ObjectNode> groups = list(ResourceKinds.LOCAL_MODEL_NODE_GROUP);
        NodeCacheCluster cluster =
                new NodeCacheCluster(groups, list(ClusterKinds.NODE), list(ResourceKinds.LOCAL_MODEL_NODE));
        NodeCacheObjects objects = new NodeCacheObjects(next, cluster, settings(), home);
        Map<ResourceKind, Map<String, ObjectNode>> stored = new HashMap<>();
        List<ResourceKind> kinds = new ArrayList<>(MADE);
        kinds.add(ResourceKinds.LOCAL_MODEL_NODE);
        for (ResourceKind kind : kinds) {
            Map<String, ObjectNode> there = new HashMap<>();
            list(kind).forEach(one -> there.put(key(one), one));
            stored.put(kind, there);
        }
        Map<ResourceKind, Set<String>> wanted = new HashMap<>();
        kinds.forEach(kind -> wanted.put(kind, new HashSet<>()));
        Map<String, String> problems = new HashMap<>();
        objects.agents().forEach((group, made) -> {
            // Agents that run go on when the settings cannot be used.
            if (objects.problem().isEmpty()) {
                problems.put(group, applied(made, stored, wanted));
            } else {
                problems.put(group, objects.problem());
                made.forEach(one -> wanted(wanted, one));
            }
        });
        for (ObjectNode node : objects.nodes()) {
            String unused = applied(List.of(node), stored, wanted);
        }
        Set<String> claims = Map.copyOf(stored.getOrDefault(ClusterKinds.PERSISTENT_VOLUME_CLAIM, Map.of()))
                .keySet();
        String unused = applied(objects.claims(all, claims), stored, wanted);
        // A volume is deleted after its claim, a claim after the pods that use it: Kubernetes keeps them that long.
        stored.forEach((kind, there) -> there.forEach((key, object) -> {
            if (!wanted.getOrDefault(kind, Set.of()).contains(key)
                    && !object.path("metadata").hasNonNull("deletionTimestamp")) {
                delete(kind, object);
            }
        }));
        Instant now = Instant.ofEpochMilli(loop.clock().millis());
        next.models()
                .forEach(model -> status(
                        model.namespace().isEmpty()
                                ? ResourceKinds.LOCAL_MODEL_CACHE
                                : ResourceKinds.LOCAL_MODEL_NAMESPACE_CACHE,
                        model.cache(),
                        NodeCacheStatus.of(model, cluster, now)));
        groups.forEach(group -> groupStatus(
                group,
                NodeCacheStatus.ofGroup(
                        group,
                        next,
                        problems.getOrDefault(
                                group.path("metadata").path("name").asText(), ""))));
    }

    private static @Nullable ResourceKind kind(ObjectNode object) {
        String name = object.path("kind").asText();
        if (name.equals("LocalModelNode")) {
            return ResourceKinds.LOCAL_MODEL_NODE;
        }
        return MADE.stream().filter(one -> one.kind().equals(name)).findFirst().orElse(null);
    }

    private static void wanted(Map<ResourceKind, Set<String>> wanted, ObjectNode object) {
        Set<String> keys = wanted.get(kind(object));
        if (keys != null) {
            keys.add(key(object));
        }
    }

    /**
     * Applies the objects that differ from what is stored.
     *
     * @return the words of the API server about the first object that it refuses; empty for none
     */
    private String applied(
            List<ObjectNode> objects,
            Map<ResourceKind, Map<String, ObjectNode>> stored,
            Map<ResourceKind, Set<String>> wanted) {
        String problem = "";
        for (ObjectNode object : objects) {
            ResourceKind kind = kind(object);
            if (kind == null) {
                continue;
            }
            wanted(wanted, object);
            ObjectNode there = stored.getOrDefault(kind, Map.of()).get(key(object));
            if (there != null && isReleased(kind, there, stored)) {
                // Its claim is gone; Kubernetes binds no other claim to it.
                delete(kind, there);
                queue.addAfter(ALL, PACE);
                continue;
            }
            if (there != null && ApplyDifference.find(object, there, ClusterClient.FIELD_MANAGER) == null) {
                continue;
            }
            try {
                ObjectNode unused = client.apply(kind, object);
            } catch (ServingException e) {
                if (e.code() != ErrorCode.INVALID_ARGUMENT
                        && e.code() != ErrorCode.PERMISSION_DENIED
                        && e.code() != ErrorCode.NOT_FOUND) {
                    throw e;
                }
                LOG.warn("{} {} is refused: {}", kind.kind(), key(object), e.getMessage());
                problem = problem.isEmpty() ? kind.kind() + " " + key(object) + ": " + e.getMessage() : problem;
            }
        }
        return problem;
    }

    private static boolean isReleased(
            ResourceKind kind, ObjectNode volume, Map<ResourceKind, Map<String, ObjectNode>> stored) {
        if (!kind.equals(ClusterKinds.PERSISTENT_VOLUME)) {
            return false;
        }
        JsonNode claim = volume.path("spec").path("claimRef");
        ObjectNode there = stored.getOrDefault(ClusterKinds.PERSISTENT_VOLUME_CLAIM, Map.of())
                .get(claim.path("namespace").asText() + "/" + claim.path("name").asText());
        return volume.path("status").path("phase").asText().equals("Released")
                && (there == null
                        || !there.path("metadata")
                                .path("uid")
                                .asText()
                                .equals(claim.path("uid").asText()));
    }

    private void delete(ResourceKind kind, ObjectNode object) {
        JsonNode metadata = object.path("metadata");
        String namespace = metadata.path("namespace").asText("");
        client.delete(
                kind,
                namespace.isEmpty() ? null : namespace,
                metadata.path("name").asText(),
                null);
    }

    /** KServe's controller keeps its caches by a finalizer; what belongs to one is removed here without. */
    private void release(ObjectNode cache) {
        JsonNode metadata = cache.path("metadata");
        if (!metadata.hasNonNull("deletionTimestamp")) {
            return;
        }
        List<String> rest = new ArrayList<>();
        metadata.path("finalizers").forEach(one -> rest.add(one.asText()));
        if (rest.remove(KSERVE_FINALIZER)) {
            ObjectNode patch = cache.objectNode();
            ArrayNode finalizers = patch.putObject("metadata").putArray("finalizers");
            rest.forEach(finalizers::add);
            String namespace = metadata.path("namespace").asText("");
            ObjectNode unused = client.merge(
                    namespace.isEmpty() ? ResourceKinds.LOCAL_MODEL_CACHE : ResourceKinds.LOCAL_MODEL_NAMESPACE_CACHE,
                    namespace.isEmpty() ? null : namespace,
                    metadata.path("name").asText(),
                    patch);
        }
    }

    private void status(ResourceKind kind, ObjectNode resource, ObjectNode status) {
        if (resource.path("status").equals(status)) {
            return;
        }
        ObjectNode written = resource.deepCopy();
        written.set("status", status);
        try {
            ObjectNode unused = store.updateStatus(
                    type(kind),
                    written,
                    resource.path("metadata").path("resourceVersion").asText());
        } catch (ServingException e) {
            if (e.code() != ErrorCode.ABORTED && e.code() != ErrorCode.NOT_FOUND) {
                throw e;
            }
            queue.addAfter(ALL, PACE);
        }
    }

    /** Groups have no status of their own in the API, as with KServe: it is a field of the resource like others. */
    private void groupStatus(ObjectNode group, ObjectNode status) {
        if (group.path("status").equals(status)) {
            return;
        }
        ObjectNode patch = group.objectNode();
        ObjectNode changed = patch.putObject("status");
        group.path("status").fieldNames().forEachRemaining(changed::putNull);
        changed.setAll(status);
        try {
            ObjectNode unused = client.merge(
                    ResourceKinds.LOCAL_MODEL_NODE_GROUP,
                    null,
                    group.path("metadata").path("name").asText(),
                    patch);
        } catch (ServingException e) {
            if (e.code() != ErrorCode.NOT_FOUND) {
                throw e;
            }
        }
    }

    /** Stops. Agents go on with what they know. */
    @Override
    public void close() {
        closed = true;
        watches.close();
        serviceWatches.close();
        queue.close();
        loop.close();
        store.close();
    }
}
