// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.cluster;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.control.api.ResourceKind;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.LongAdder;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * Reads and writes the objects of a cluster as trees. Every call blocks for one request to the API server. Errors of the
 * API server become {@link ServingException}s with its message: 404 is NOT_FOUND, 409 is ALREADY_EXISTS or ABORTED, 403
 * is PERMISSION_DENIED, 422 and 400 are INVALID_ARGUMENT, everything that passes by itself is UNAVAILABLE. Thread-safe.
 * Trees belong to the caller.
 *
 * <pre>{@code
 * ObjectNode applied = cluster.apply(ClusterKinds.DEPLOYMENT, deployment);
 * }</pre>
 */
public final class ClusterClient {
    /** The field manager of everything that the operator writes. */
    public static final String FIELD_MANAGER = "nereid";

    private static final String APPLY = "application/apply-patch+yaml";
    private static final String MERGE = "application/merge-patch+json";

    /** Warnings of unknown fields would not be read; without them the API server reads a body once, not twice. */
    private static final String UNVALIDATED = "&fieldValidation=Ignore";

    private static final int PAGE = 500;
    private static final int UPDATE_TRIES = 5;

    private final ApiRequests requests;

    /** Runs what the watches of this client have to wait for. */
    private final Executor executor = Threads.pool("nereid-watches", 2);

    /** The number of requests by verb and kind. */
    private final Map<String, LongAdder> counts = new ConcurrentHashMap<>();

    /** @param client used by this object, closed by the caller */
    public ClusterClient(KubernetesClient client) {
        this.requests = new ApiRequests(client);
    }

    /**
     * Applies an object: a server-side apply that takes over the fields of other managers. Fields that an earlier call
     * applied and that are missing now are removed.
     *
     * @return the object as stored
     */
    public ObjectNode apply(ResourceKind kind, ObjectNode object) {
        return applyAs(FIELD_MANAGER, true, kind, object);
    }

    /**
     * Applies an object as another field manager, which takes over nothing.
     *
     * @return the object as stored
     * @throws ServingException ABORTED when another manager has changed one of the fields
     */
    public ObjectNode applyAs(String manager, ResourceKind kind, ObjectNode object) {
        return applyAs(manager, false, kind, object);
    }

    /**
     * Applies an object as another field manager, which takes over the fields from their managers.
     *
     * @return the object as stored
     */
    public ObjectNode forceAs(String manager, ResourceKind kind, ObjectNode object) {
        return applyAs(manager, true, kind, object);
    }

    private ObjectNode applyAs(String manager, boolean force, ResourceKind kind, ObjectNode object) {
        count("apply", kind);
        String query = managed(manager) + "&force=" + force + UNVALIDATED;
        return send(kind, object, "PATCH", path(kind, object) + query, APPLY);
    }

    /** Reads an object; null if it does not exist. */
    public @Nullable ObjectNode get(ResourceKind kind, @Nullable String namespace, String name) {
        count("get", kind);
        try {
            return requests.send(
                    ApiRequests.what(kind, name), "GET", path(kind, namespace, name), ApiRequests.JSON_TYPE, null);
        } catch (ServingException e) {
            if (e.code() == ErrorCode.NOT_FOUND) {
                return null;
            }
            throw e;
        }
    }

    /** Creates an object, which has a name or a {@code generateName}. */
    public ObjectNode create(ResourceKind kind, ObjectNode object) {
        count("create", kind);
        String path = ApiRequests.path(kind, namespace(object)) + managed(FIELD_MANAGER) + UNVALIDATED;
        return send(kind, object, "POST", path, ApiRequests.JSON_TYPE);
    }

    /**
     * Replaces an object but for its status.
     *
     * @param object its {@code resourceVersion} must be the stored one; without one, any version is replaced
     */
    public ObjectNode update(ResourceKind kind, ObjectNode object) {
        return replace("update", kind, "", object);
    }

    /**
     * What the API server would store of an object that replaces the one of its name, with the defaults that it sets; nothing is
     * stored.
     *
     * @throws ServingException NOT_FOUND when there is none of that name; INVALID_ARGUMENT when it would be refused
     */
    public ObjectNode dryRunUpdate(ResourceKind kind, ObjectNode object) {
        count("dry-run", kind);
        String path = path(kind, object) + managed(FIELD_MANAGER) + UNVALIDATED + "&dryRun=All";
        return send(kind, object, "PUT", path, ApiRequests.JSON_TYPE);
    }

    /** Replaces the status of an object, with the same rule for its {@code resourceVersion}. */
    public ObjectNode updateStatus(ResourceKind kind, ObjectNode object) {
        return replace("update-status", kind, "/status", object);
    }

    private ObjectNode replace(String verb, ResourceKind kind, String part, ObjectNode object) {
        String path = path(kind, object) + part + managed(FIELD_MANAGER) + UNVALIDATED;
        if (object.path("metadata").has("resourceVersion")) {
            count(verb, kind);
            return send(kind, object, "PUT", path, ApiRequests.JSON_TYPE);
        }
        // Kinds of extensions are not replaced without a version.
        for (int tries = 1; ; tries++) {
            ObjectNode stored = get(kind, namespace(object), name(object));
            ObjectNode versioned = object.deepCopy();
            if (stored != null) {
                versioned
                        .withObjectProperty("metadata")
                        .set("resourceVersion", stored.path("metadata").path("resourceVersion"));
            }
            try {
                count(verb, kind);
                return send(kind, versioned, "PUT", path, ApiRequests.JSON_TYPE);
            } catch (ServingException e) {
                if (e.code() != ErrorCode.ABORTED || tries == UPDATE_TRIES) {
                    throw e;
                }
            }
        }
    }

    /** Changes fields of an object by a JSON merge patch; a null removes a field. */
    public ObjectNode merge(ResourceKind kind, @Nullable String namespace, String name, ObjectNode patch) {
        count("patch", kind);
        return requests.send(
                ApiRequests.what(kind, name),
                "PATCH",
                path(kind, namespace, name) + managed(FIELD_MANAGER),
                MERGE,
                patch);
    }

    /**
     * Deletes an object; what it owns is deleted afterwards. Without effect if it does not exist.
     *
     * @param version the version that must be stored; null for any
     */
    public void delete(ResourceKind kind, @Nullable String namespace, String name, @Nullable String version) {
        count("delete", kind);
        ObjectNode options = JsonNodeFactory.instance.objectNode();
        options.put("apiVersion", "v1").put("kind", "DeleteOptions").put("propagationPolicy", "Background");
        if (version != null) {
            options.putObject("preconditions").put("resourceVersion", version);
        }
        try {
            ObjectNode unused = requests.send(
                    ApiRequests.what(kind, name),
                    "DELETE",
                    path(kind, namespace, name),
                    ApiRequests.JSON_TYPE,
                    options);
        } catch (ServingException e) {
            if (e.code() != ErrorCode.NOT_FOUND) {
                throw e;
            }
        }
    }

    /**
     * The objects of a kind as the API server has them now, in all namespaces or in one.
     *
     * @param namespace null for all
     */
    public List<ObjectNode> list(ResourceKind kind, @Nullable String namespace) {
        List<ObjectNode> all = new ArrayList<>();
        String unused = requests.list(kind, namespace, "", PAGE, all::add);
        return List.copyOf(all);
    }

    /** Whether the API server has a kind, which for kinds of extensions depends on what is installed. */
    public boolean has(ResourceKind kind) {
        String group = kind.group().isEmpty() ? "/api/" : "/apis/" + kind.group() + "/";
        try {
            ObjectNode found =
                    requests.send(kind.apiVersion(), "GET", group + kind.version(), ApiRequests.JSON_TYPE, null);
            for (JsonNode resource : found.path("resources")) {
                if (resource.path("name").asText().equals(kind.plural())) {
                    return true;
                }
            }
            return false;
        } catch (ServingException e) {
            if (e.code() == ErrorCode.NOT_FOUND) {
                return false;
            }
            throw e;
        }
    }

    /**
     * Makes a watch, which is not started.
     *
     * @param namespace null for all
     * @param selection a query that selects objects; empty for all
     */
    ObjectWatch watch(ResourceKind kind, @Nullable String namespace, String selection, ObjectWatch.Target target) {
        return new ObjectWatch(requests, kind, namespace, selection, target, executor, ObjectWatch.SILENCE);
    }

    private static String managed(String manager) {
        return "?fieldManager=" + ApiRequests.encoded(manager);
    }

    private static String path(ResourceKind kind, ObjectNode object) {
        return path(kind, namespace(object), name(object));
    }

    private static String path(ResourceKind kind, @Nullable String namespace, String name) {
        return ApiRequests.path(kind, namespace) + "/" + ApiRequests.encoded(name);
    }

    private static String name(ObjectNode object) {
        return object.path("metadata").path("name").asText();
    }

    private static @Nullable String namespace(ObjectNode object) {
        String namespace = object.path("metadata").path("namespace").asText("");
        return namespace.isEmpty() ? null : namespace;
    }

    /** Returns the number of requests so far by verb and kind, such as {@code apply Deployment}. */
    public Map<String, Long> requests() {
        return counts.entrySet().stream()
                .collect(Collectors.toMap(
                        Map.Entry::getKey, entry -> entry.getValue().sum()));
    }

    private void count(String verb, ResourceKind kind) {
        counts.computeIfAbsent(verb + " " + kind.kind(), key -> new LongAdder()).increment();
    }

    private ObjectNode send(ResourceKind kind, ObjectNode object, String method, String path, String type) {
        return requests.send(ApiRequests.what(kind, name(object)), method, path, type, object);
    }
}
