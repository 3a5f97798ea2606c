// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.objects;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.api.ResourceKind;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.api.store.ResourceStore.Change;
import io.nereid.control.kubernetes.cluster.Trees;
import io.nereid.control.operator.cluster.ClusterClient;
import io.nereid.control.operator.cluster.ClusterKinds;
import io.nereid.control.operator.cluster.ObjectCache;
import io.nereid.control.plane.ServiceReconciler.ChangeListener;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The objects that InferenceServices and InferenceGraphs own in the cluster, and the pods of services: indexed by owner,
 * and kept up to date by watches. Kinds of extensions, such as those of the Gateway API, are watched when the API server
 * has them. Thread-safe. Trees must not be changed.
 */
public final class ServiceObjects implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(ServiceObjects.class);
    private static final String OF_SERVICE = "serving.kserve.io/inferenceservice";
    /** The annotation of Deployments that change to the template of another version of the operator. */
    public static final String UPGRADED_FROM = "nereid.io/template-upgraded-from";

    private static final String OF_GRAPH = "serving.kserve.io/inferencegraph";

    private static final List<ResourceKind> EXTENSIONS = List.of(
            ClusterKinds.HTTP_ROUTE,
            ClusterKinds.SCALED_OBJECT,
            ClusterKinds.KNATIVE_SERVICE,
            ClusterKinds.VIRTUAL_SERVICE,
            ClusterKinds.OPEN_TELEMETRY_COLLECTOR);

    private final ClusterClient client;
    private final Set<String> namespaces;
    private final List<ObjectCache> caches = new ArrayList<>();

    /** Where the objects of each owner are, by its uid, and of it by kind and name. */
    private final Map<String, Map<ObjectKey, Place>> owned = new ConcurrentHashMap<>();

    /** The Deployments that change to the template of another version of the operator. */
    private final Set<Place> upgrading = ConcurrentHashMap.newKeySet();

    /** The names of the pods of each service by its namespace and name. */
    private final Map<String, Set<String>> pods = new ConcurrentHashMap<>();

    private volatile @Nullable ObjectCache ofPods;

    /** An object in a cache. */
    private record Place(ObjectCache cache, String namespace, String name) {
        @Nullable ObjectNode object() {
            return cache.get(namespace, name);
        }
    }

    private volatile ChangeListener listener = (graph, namespace, name) -> {};

    /** An object in the namespace of its owner. */
    public record ObjectKey(String kind, String name) {
        static ObjectKey of(ObjectNode object) {
            return new ObjectKey(
                    Trees.kind(object), object.path("metadata").path("name").asText());
        }
    }

    /** @param namespaces the namespaces to watch; empty for all */
    public ServiceObjects(ClusterClient client, Set<String> namespaces) {
        this.client = client;
        this.namespaces = Set.copyOf(namespaces);
    }

    /** Sets the listener for changes; must be called before {@link #start}. */
    public void onChange(ChangeListener listener) {
        this.listener = listener;
    }

    /**
     * Starts all watches and waits until all objects are known.
     *
     * @throws ServingException UNAVAILABLE when that takes longer than the limit, PERMISSION_DENIED
     */
    public void start(Duration limit) {
        for (ResourceKind kind : List.of(ClusterKinds.DEPLOYMENT, ClusterKinds.HORIZONTAL_POD_AUTOSCALER)) {
            caches.add(new ObjectCache(client, kind, namespaces, OF_SERVICE, ObjectTrimmer::owned));
            caches.add(new ObjectCache(client, kind, namespaces, OF_GRAPH, ObjectTrimmer::owned));
        }
        // Those of KServe have no label to select them by.
        for (ResourceKind kind : List.of(ClusterKinds.SERVICE, ClusterKinds.INGRESS)) {
            caches.add(new ObjectCache(client, kind, namespaces, "", ObjectTrimmer::owned));
        }
        for (ResourceKind kind : EXTENSIONS) {
            if (client.has(kind)) {
                caches.add(new ObjectCache(client, kind, namespaces, "", ObjectTrimmer::owned));
            } else {
                LOG.info(
                        "the cluster has no {}.{}; services that need them say so in their status",
                        kind.plural(),
                        kind.group());
            }
        }
        ObjectCache podCache = new ObjectCache(client, ClusterKinds.POD, namespaces, OF_SERVICE, ObjectTrimmer::pod);
        ofPods = podCache;
        caches.add(podCache);
        for (ObjectCache cache : caches) {
            AutoCloseable unused = cache.kind().equals(ClusterKinds.POD)
                    ? cache.listen(this::podChanged)
                    : cache.listen((change, object) -> changed(cache, change, object));
        }
        ObjectCache.startAll(caches, limit);
    }

    private void changed(ObjectCache cache, Change.Kind change, ObjectNode object) {
        JsonNode owner = ObjectTrimmer.owner(object);
        if (owner == null) {
            return;
        }
        JsonNode metadata = object.path("metadata");
        Place place = new Place(
                cache,
                metadata.path("namespace").asText(),
                metadata.path("name").asText());
        boolean deleted = change == Change.Kind.DELETED;
        String uid = owner.path("uid").asText();
        owned.compute(uid, (key, before) -> {
            Map<ObjectKey, Place> objects = before == null ? new ConcurrentHashMap<>() : before;
            if (deleted) {
                objects.remove(ObjectKey.of(object));
            } else {
                objects.put(ObjectKey.of(object), place);
            }
            return objects.isEmpty() ? null : objects;
        });
        if (!deleted && metadata.path("annotations").has(UPGRADED_FROM)) {
            upgrading.add(place);
        } else {
            upgrading.remove(place);
        }
        listener.changed(
                owner.path("kind").asText().equals("InferenceGraph"),
                object.path("metadata").path("namespace").asText(),
                owner.path("name").asText());
    }

    private void podChanged(Change.Kind change, ObjectNode pod) {
        String namespace = pod.path("metadata").path("namespace").asText();
        String service = pod.path("metadata").path("labels").path(OF_SERVICE).asText();
        String name = pod.path("metadata").path("name").asText();
        pods.compute(namespace + "/" + service, (key, before) -> {
            Set<String> all = before == null ? ConcurrentHashMap.newKeySet() : before;
            if (change == Change.Kind.DELETED) {
                all.remove(name);
            } else {
                all.add(name);
            }
            return all.isEmpty() ? null : all;
        });
        listener.changed(false, namespace, service);
    }

    /** Whether the cluster had a kind of an extension when the watches started. */
    public boolean has(ResourceKind kind) {
        return find(kind.apiVersion(), kind.kind()) != null;
    }

    /** Returns the objects that the owner of a uid controls. */
    public Map<ObjectKey, ObjectNode> of(String uid) {
        Map<ObjectKey, ObjectNode> objects = new HashMap<>();
        owned.getOrDefault(uid, Map.of()).forEach((key, place) -> {
            ObjectNode object = place.object();
            if (object != null) {
                objects.put(key, object);
            }
        });
        return objects;
    }

    /** Returns the Deployments with the annotation {@value #UPGRADED_FROM}. */
    public List<ObjectNode> upgrading() {
        List<ObjectNode> all = new ArrayList<>();
        for (Place place : upgrading) {
            ObjectNode object = place.object();
            if (object != null) {
                all.add(object);
            }
        }
        return all;
    }

    /** Returns the pods of a service. */
    public List<ObjectNode> pods(String namespace, String service) {
        ObjectCache cache = ofPods;
        if (cache == null) {
            return List.of();
        }
        List<ObjectNode> all = new ArrayList<>();
        for (String name : pods.getOrDefault(namespace + "/" + service, Set.of())) {
            ObjectNode pod = cache.get(namespace, name);
            if (pod != null) {
                all.add(pod);
            }
        }
        return all;
    }

    /** Takes up what the API server returned for a write. */
    void written(ResourceKind kind, ObjectNode object) {
        for (ObjectCache cache : caches) {
            if (cache.kind().equals(kind) && cache.selects(object)) {
                cache.written(object);
            }
        }
    }

    /**
     * Returns a kind that is watched.
     *
     * @throws ServingException FAILED_PRECONDITION when the cluster does not have it
     */
    ResourceKind kind(ObjectNode object) {
        String apiVersion = object.path("apiVersion").asText();
        String kind = object.path("kind").asText();
        if (kind.equals("ConfigMap")) {
            return ResourceKinds.CONFIG_MAP;
        }
        ResourceKind found = find(apiVersion, kind);
        if (found == null) {
            throw ServingException.of(
                    ErrorCode.FAILED_PRECONDITION,
                    "the cluster has no " + kind + " of " + apiVersion + " (needed for "
                            + object.path("metadata").path("name").asText() + ")",
                    "install it and restart the operator, or choose other settings");
        }
        return found;
    }

    private @Nullable ResourceKind find(String apiVersion, String kind) {
        for (ObjectCache cache : caches) {
            if (cache.kind().kind().equals(kind) && cache.kind().apiVersion().equals(apiVersion)) {
                return cache.kind();
            }
        }
        return null;
    }

    @Override
    public void close() {
        caches.forEach(ObjectCache::close);
    }
}
