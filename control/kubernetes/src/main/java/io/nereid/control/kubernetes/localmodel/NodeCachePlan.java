// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.localmodel;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;
import io.nereid.control.api.Quantity;
import io.nereid.control.api.ValidationErrors;
import io.nereid.control.kubernetes.cluster.Trees;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * Which models the nodes of each LocalModelNodeGroup keep. The models of a group have its limit at most, by their declared
 * sizes. First come the models that services use, those that are kept already before new ones; then the others, the one
 * that was used last before the others: so the model that was unused for the longest time gives way. A pure function.
 * Immutable.
 *
 * @param models the models of all caches, those of namespaces before those of the cluster, by name
 * @param limits the bytes that the models of a group may have
 * @param used the bytes of the models that a group keeps
 */
public record NodeCachePlan(List<Model> models, Map<String, Long> limits, Map<String, Long> used) {
    /** The plan of no caches. */
    public static final NodeCachePlan EMPTY = new NodeCachePlan(List.of(), Map.of(), Map.of());

    /**
     * The model of a cache.
     *
     * @param namespace empty for a LocalModelCache
     * @param cache the stored resource
     * @param size the most bytes that it may have
     * @param groups the groups whose nodes keep it, in the order of the cache
     * @param refusals why other groups of the cache do not keep it
     * @param services the services that use it, as {@code namespace/name}, in this order
     */
    public record Model(
            String namespace,
            String name,
            ObjectNode cache,
            String uri,
            long size,
            List<String> groups,
            Map<String, String> refusals,
            List<String> services) {}

    /**
     * How a service uses a model.
     *
     * @param claim the claim in the service's namespace
     */
    record Use(Model model, String group, String claim) {}

    /**
     * Plans.
     *
     * @param groups the LocalModelNodeGroups
     * @param caches the LocalModelCaches and LocalModelNamespaceCaches; those that are being deleted do not count
     * @param services the InferenceServices
     */
    public static NodeCachePlan of(List<ObjectNode> groups, List<ObjectNode> caches, List<ObjectNode> services) {
        Map<String, Long> limits = new TreeMap<>();
        Map<String, Long> used = new TreeMap<>();
        for (ObjectNode group : groups) {
            if (!group.path("metadata").hasNonNull("deletionTimestamp")) {
                limits.put(name(group), bytes(group.path("spec").path("storageLimit")));
                used.put(name(group), 0L);
            }
        }
        List<Model> models = new ArrayList<>();
        for (ObjectNode cache : caches) {
            if (!cache.path("metadata").hasNonNull("deletionTimestamp")) {
                models.add(new Model(
                        cache.path("metadata").path("namespace").asText(""),
                        name(cache),
                        cache,
                        cache.path("spec").path("sourceModelUri").asText(""),
                        bytes(cache.path("spec").path("modelSize")),
                        new ArrayList<>(),
                        new LinkedHashMap<>(),
                        new ArrayList<>()));
            }
        }
        models.sort(Comparator.comparing((Model one) -> one.namespace().isEmpty())
                .thenComparing(Model::namespace)
                .thenComparing(Model::name));
        for (ObjectNode service : services) {
            Model model = candidate(models, service);
            if (model != null) {
                model.services().add(service.path("metadata").path("namespace").asText() + "/" + name(service));
            }
        }
        List<Model> ordered = new ArrayList<>(models);
        ordered.sort(Comparator.comparing((Model one) -> one.services().isEmpty())
                .thenComparing(one -> !one.services().isEmpty() && !isKept(one))
                .thenComparing(NodeCachePlan::order, NodeCachePlan::compareOrder)
                .thenComparing(Model::namespace)
                .thenComparing(Model::name));
        ordered.forEach(one -> admit(one, limits, used));
        models.forEach(one -> Collections.sort(one.services()));
        return new NodeCachePlan(List.copyOf(models), limits, used);
    }

    /** Whether nodes have it already. */
    private static boolean isKept(Model model) {
        return model.cache().path("status").path("copies").path("total").asLong() > 0;
    }

    /** For a used model its age, for another one the time of its last use. */
    private record Order(boolean used, String time) {}

    private static Order order(Model model) {
        String created =
                model.cache().path("metadata").path("creationTimestamp").asText("");
        boolean used = !model.services().isEmpty();
        return new Order(used, used ? created : lastUsed(model.cache(), created));
    }

    private static int compareOrder(Order one, Order other) {
        return one.used() ? one.time().compareTo(other.time()) : other.time().compareTo(one.time());
    }

    private static String lastUsed(ObjectNode cache, String created) {
        String last = cache.path("status").path("lastUsed").asText("");
        return last.compareTo(created) > 0 ? last : created;
    }

    private static void admit(Model model, Map<String, Long> limits, Map<String, Long> used) {
        for (JsonNode one : model.cache().path("spec").path("nodeGroups")) {
            String group = one.asText();
            Long limit = limits.get(group);
            if (limit == null) {
                model.refusals()
                        .put(group, "there is no LocalModelNodeGroup " + ValidationErrors.clip(group) + "; create it");
                continue;
            }
            long kept = used.getOrDefault(group, 0L);
            if (model.size() > limit - kept) {
                model.refusals()
                        .put(
                                group,
                                "the LocalModelNodeGroup " + group + " has " + limit
                                        + " bytes, of which other models have "
                                        + kept + ", and modelSize is " + model.size()
                                        + "; raise its storageLimit, or delete another model");
            } else if (!model.groups().contains(group)) {
                used.merge(group, model.size(), Long::sum);
                model.groups().add(group);
            }
        }
    }

    /** The first model that a service could use, whether nodes keep it or not; null for none. */
    private static @Nullable Model candidate(List<Model> models, ObjectNode service) {
        JsonNode annotations = service.path("metadata").path("annotations");
        String uri = CachedModels.uri(service);
        if (uri.isEmpty() || annotations.path(CachedModels.OPT_OUT).asText("").equals("true")) {
            return null;
        }
        String namespace = service.path("metadata").path("namespace").asText("");
        String group = annotations.path(CachedModels.NODE_GROUP).asText("");
        for (Model model : models) {
            boolean visible = model.namespace().isEmpty() || model.namespace().equals(namespace);
            if (visible && CachedModels.isIn(uri, model.uri()) && (group.isEmpty() || names(model, group))) {
                return model;
            }
        }
        return null;
    }

    private static boolean names(Model model, String group) {
        for (JsonNode one : model.cache().path("spec").path("nodeGroups")) {
            if (one.asText().equals(group)) {
                return true;
            }
        }
        return false;
    }

    /** How a service uses a model that nodes keep; null when it downloads its model itself. */
    @Nullable Use use(ObjectNode service) {
        Model model = candidate(models, service);
        if (model == null || model.groups().isEmpty()) {
            return null;
        }
        String chosen = service.path("metadata")
                .path("annotations")
                .path(CachedModels.NODE_GROUP)
                .asText("");
        String group = chosen.isEmpty() ? model.groups().get(0) : chosen;
        return model.groups().contains(group) ? new Use(model, group, CachedModels.claim(model.name(), group)) : null;
    }

    /**
     * What identifies the use of a model by a service, for comparisons; empty for none. Pods are made anew when it changes.
     */
    public String identity(ObjectNode service) {
        Use use = use(service);
        return use == null
                ? ""
                : use.model().namespace() + " " + use.claim() + " "
                        + use.model().uri();
    }

    /**
     * The service with KServe's labels and annotations of the model that it uses, which its pods get; without any when it
     * uses none.
     *
     * @return the service itself when nothing changes
     */
    public ObjectNode annotated(ObjectNode service) {
        Use use = use(service);
        JsonNode metadata = service.path("metadata");
        boolean has = metadata.path("labels").has(CachedModels.LABEL)
                || metadata.path("labels").has(CachedModels.NAMESPACE_LABEL)
                || metadata.path("annotations").has(CachedModels.SOURCE)
                || metadata.path("annotations").has(CachedModels.CLAIM);
        if (use == null && !has) {
            return service;
        }
        ObjectNode copy = service.deepCopy();
        ObjectNode labels = Trees.object(Trees.object(copy, "metadata"), "labels");
        ObjectNode annotations = Trees.object(Trees.object(copy, "metadata"), "annotations");
        labels.remove(List.of(CachedModels.LABEL, CachedModels.NAMESPACE_LABEL));
        annotations.remove(List.of(CachedModels.SOURCE, CachedModels.CLAIM));
        if (use != null) {
            labels.put(CachedModels.LABEL, use.model().name());
            if (!use.model().namespace().isEmpty()) {
                labels.put(CachedModels.NAMESPACE_LABEL, use.model().namespace());
            }
            annotations.put(CachedModels.SOURCE, use.model().uri()).put(CachedModels.CLAIM, use.claim());
        }
        return copy;
    }

    static String name(JsonNode resource) {
        return resource.path("metadata").path("name").asText("");
    }

    private static long bytes(JsonNode quantity) {
        try {
            return Quantity.parse(quantity.asText("0")).units();
        } catch (ServingException e) {
            return 0; // admission refuses it; a resource of an older version may have it
        }
    }
}
