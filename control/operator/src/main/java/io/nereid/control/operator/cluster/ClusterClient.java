// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.cluster;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.fabric8.kubernetes.api.model.APIResource;
import io.fabric8.kubernetes.api.model.APIResourceList;
import io.fabric8.kubernetes.api.model.GenericKubernetesResource;
import io.fabric8.kubernetes.api.model.GenericKubernetesResourceList;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientException;
import io.fabric8.kubernetes.client.dsl.MixedOperation;
import io.fabric8.kubernetes.client.dsl.Resource;
import io.fabric8.kubernetes.client.dsl.base.PatchContext;
import io.fabric8.kubernetes.client.dsl.base.PatchType;
import io.fabric8.kubernetes.client.dsl.base.ResourceDefinitionContext;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.api.ResourceKind;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Supplier;
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

    private static final PatchContext APPLY = new PatchContext.Builder()
            .withPatchType(PatchType.SERVER_SIDE_APPLY)
            .withFieldManager(FIELD_MANAGER)
            .withForce(true)
            .build();
    private static final PatchContext MERGE = new PatchContext.Builder()
            .withPatchType(PatchType.JSON_MERGE)
            .withFieldManager(FIELD_MANAGER)
            .build();

    private final KubernetesClient client;

    /** The number of requests by verb and kind. */
    private final Map<String, LongAdder> requests = new ConcurrentHashMap<>();

    /** @param client used by this object, closed by the caller */
    public ClusterClient(KubernetesClient client) {
        this.client = client;
    }

    /**
     * Applies an object: a server-side apply that takes over the fields of other managers. Fields that an earlier call
     * applied and that are missing now are removed.
     *
     * @return the object as stored
     */
    public ObjectNode apply(ResourceKind kind, ObjectNode object) {
        return call("apply", kind, object, () -> resource(kind, object).patch(APPLY));
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
        PatchContext context = new PatchContext.Builder()
                .withPatchType(PatchType.SERVER_SIDE_APPLY)
                .withFieldManager(manager)
                .withForce(force)
                .build();
        return call("apply", kind, object, () -> resource(kind, object).patch(context));
    }

    /** Reads an object; null if it does not exist. */
    public @Nullable ObjectNode get(ResourceKind kind, @Nullable String namespace, String name) {
        count("get", kind);
        try {
            GenericKubernetesResource found = of(kind, namespace, name).get();
            return found == null ? null : tree(found);
        } catch (KubernetesClientException e) {
            if (e.getCode() == 404) {
                return null;
            }
            throw translated(kind, name, e);
        }
    }

    /** Creates an object, which has a name or a {@code generateName}. */
    public ObjectNode create(ResourceKind kind, ObjectNode object) {
        return call("create", kind, object, () -> resource(kind, object).create());
    }

    /**
     * Replaces an object but for its status.
     *
     * @param object its {@code resourceVersion} must be the stored one; without one, any version is replaced
     */
    public ObjectNode update(ResourceKind kind, ObjectNode object) {
        return call("update", kind, object, () -> resource(kind, object).update());
    }

    /** Replaces the status of an object, with the same rule for its {@code resourceVersion}. */
    public ObjectNode updateStatus(ResourceKind kind, ObjectNode object) {
        return call("update-status", kind, object, () -> resource(kind, object).updateStatus());
    }

    /** Changes fields of an object by a JSON merge patch; a null removes a field. Takes two requests. */
    public ObjectNode merge(ResourceKind kind, @Nullable String namespace, String name, ObjectNode patch) {
        count("patch", kind);
        try {
            return tree(of(kind, namespace, name).patch(MERGE, patch.toString()));
        } catch (KubernetesClientException e) {
            throw translated(kind, name, e);
        }
    }

    /**
     * Deletes an object; what it owns is deleted afterwards. Without effect if it does not exist.
     *
     * @param version the version that must be stored; null for any
     */
    public void delete(ResourceKind kind, @Nullable String namespace, String name, @Nullable String version) {
        count("delete", kind);
        try {
            Resource<GenericKubernetesResource> resource = of(kind, namespace, name);
            if (version == null) {
                resource.delete();
            } else {
                resource.lockResourceVersion(version).delete();
            }
        } catch (KubernetesClientException e) {
            if (e.getCode() != 404) {
                throw translated(kind, name, e);
            }
        }
    }

    /**
     * The objects of a kind as the API server has them now, in all namespaces or in one.
     *
     * @param namespace null for all
     */
    public List<ObjectNode> list(ResourceKind kind, @Nullable String namespace) {
        try {
            GenericKubernetesResourceList found = kind.namespaced() && namespace != null
                    ? all(kind).inNamespace(namespace).list()
                    : kind.namespaced()
                            ? all(kind).inAnyNamespace().list()
                            : all(kind).list();
            return found.getItems().stream().map(this::tree).toList();
        } catch (KubernetesClientException e) {
            throw translated(kind, "", e);
        }
    }

    /** Whether the API server has a kind, which for kinds of extensions depends on what is installed. */
    public boolean has(ResourceKind kind) {
        try {
            APIResourceList resources = client.getApiResources(kind.apiVersion());
            return resources != null
                    && resources.getResources().stream()
                            .map(APIResource::getName)
                            .anyMatch(kind.plural()::equals);
        } catch (KubernetesClientException e) {
            if (e.getCode() == 404) {
                return false;
            }
            throw translated(kind, "", e);
        }
    }

    MixedOperation<GenericKubernetesResource, GenericKubernetesResourceList, Resource<GenericKubernetesResource>> all(
            ResourceKind kind) {
        return client.genericKubernetesResources(new ResourceDefinitionContext.Builder()
                .withGroup(kind.group())
                .withVersion(kind.version())
                .withKind(kind.kind())
                .withPlural(kind.plural())
                .withNamespaced(kind.namespaced())
                .build());
    }

    /** Turns an object of the client into a tree. */
    ObjectNode tree(GenericKubernetesResource object) {
        return client.getKubernetesSerialization().convertValue(object, ObjectNode.class);
    }

    private Resource<GenericKubernetesResource> of(ResourceKind kind, @Nullable String namespace, String name) {
        return kind.namespaced() && namespace != null
                ? all(kind).inNamespace(namespace).withName(name)
                : all(kind).withName(name);
    }

    private Resource<GenericKubernetesResource> resource(ResourceKind kind, ObjectNode object) {
        GenericKubernetesResource item =
                client.getKubernetesSerialization().convertValue(object, GenericKubernetesResource.class);
        String namespace = namespace(object);
        return kind.namespaced() && namespace != null
                ? all(kind).inNamespace(namespace).resource(item)
                : all(kind).resource(item);
    }

    private static @Nullable String namespace(ObjectNode object) {
        String namespace = object.path("metadata").path("namespace").asText("");
        return namespace.isEmpty() ? null : namespace;
    }

    /** Returns the number of requests so far by verb and kind, such as {@code apply Deployment}. */
    public Map<String, Long> requests() {
        return requests.entrySet().stream()
                .collect(Collectors.toMap(
                        Map.Entry::getKey, entry -> entry.getValue().sum()));
    }

    private void count(String verb, ResourceKind kind) {
        requests.computeIfAbsent(verb + " " + kind.kind(), key -> new LongAdder())
                .increment();
    }

    private ObjectNode call(
            String verb, ResourceKind kind, ObjectNode object, Supplier<GenericKubernetesResource> request) {
        count(verb, kind);
        try {
            return tree(request.get());
        } catch (KubernetesClientException e) {
            throw translated(kind, object.path("metadata").path("name").asText(), e);
        }
    }

    private static ServingException translated(ResourceKind kind, String name, KubernetesClientException e) {
        String reason = e.getStatus() == null || e.getStatus().getReason() == null
                ? ""
                : e.getStatus().getReason();
        ErrorCode code = switch (e.getCode()) {
            case 400, 413, 422 -> ErrorCode.INVALID_ARGUMENT;
            case 401 -> ErrorCode.UNAUTHENTICATED;
            case 403 -> ErrorCode.PERMISSION_DENIED;
            case 404, 410 -> ErrorCode.NOT_FOUND;
            case 409 -> reason.equals("AlreadyExists") ? ErrorCode.ALREADY_EXISTS : ErrorCode.ABORTED;
            default -> ErrorCode.UNAVAILABLE;
        };
        String message = e.getStatus() != null && e.getStatus().getMessage() != null
                ? e.getStatus().getMessage()
                : kind.kind().toLowerCase(Locale.ROOT) + " " + name + ": the API server did not answer ("
                        + (e.getCause() == null ? e.getMessage() : e.getCause().getMessage()) + ")";
        return ServingException.wrap(code, message, e);
    }
}
