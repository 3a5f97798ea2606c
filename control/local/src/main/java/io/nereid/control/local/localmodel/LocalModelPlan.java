// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local.localmodel;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;
import io.nereid.control.api.Quantity;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.api.ValidationErrors;
import io.nereid.control.api.store.ResourceStore;
import io.nereid.control.core.Workload.Artifact;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * Which models are downloaded, and why others are not: the models of a group have its limit at most, by their declared
 * sizes, the oldest resources first. This machine belongs to every group. Immutable.
 *
 * @param models the models of all resources in the order of their age
 * @param limits the bytes that the models of a group may have
 * @param used the bytes of the admitted models by group; a group without models has 0
 */
record LocalModelPlan(Map<ResourceStore.Key, Model> models, Map<String, Long> limits, Map<String, Long> used) {
    static final ResourceStore.Type CACHES = type(ResourceKinds.LOCAL_MODEL_CACHE.plural());
    static final ResourceStore.Type NAMESPACE_CACHES = type(ResourceKinds.LOCAL_MODEL_NAMESPACE_CACHE.plural());

    /** The namespace whose secrets a LocalModelCache uses, the default of KServe's {@code localModel.jobNamespace}. */
    static final String JOBS = "kserve-localmodel-jobs";

    /**
     * A model.
     *
     * @param artifact what is downloaded
     * @param namespace the namespace whose secrets may be used
     * @param size the most bytes that it may have
     * @param group the group in which it counts; empty if it is not downloaded
     * @param refusal why it is not downloaded; null if it is
     */
    record Model(
            Artifact artifact,
            String namespace,
            long size,
            String group,
            @Nullable String refusal) {}

    static ResourceStore.Type type(String plural) {
        return new ResourceStore.Type(ResourceKinds.SERVING, plural);
    }

    static ResourceStore.Key key(ObjectNode resource, boolean namespaced) {
        JsonNode metadata = resource.path("metadata");
        return new ResourceStore.Key(
                namespaced ? NAMESPACE_CACHES : CACHES,
                namespaced ? metadata.path("namespace").asText("") : "",
                metadata.path("name").asText(""));
    }

    /**
     * @param groups the LocalModelNodeGroups
     * @param caches the LocalModelCaches and LocalModelNamespaceCaches that are not being deleted
     */
    static LocalModelPlan of(List<ObjectNode> groups, Map<ResourceStore.Key, ObjectNode> caches) {
        Map<String, Long> limits = new TreeMap<>();
        Map<String, Long> used = new TreeMap<>();
        for (ObjectNode group : groups) {
            String name = group.path("metadata").path("name").asText();
            limits.put(name, bytes(group.path("spec").path("storageLimit")));
            used.put(name, 0L);
        }
        List<Map.Entry<ResourceStore.Key, ObjectNode>> ordered = new ArrayList<>(caches.entrySet());
        ordered.sort(Comparator.comparing((Map.Entry<ResourceStore.Key, ObjectNode> one) -> one.getValue()
                        .path("metadata")
                        .path("creationTimestamp")
                        .asText(""))
                .thenComparing(one -> one.getKey().namespace())
                .thenComparing(one -> one.getKey().name()));
        Map<ResourceStore.Key, Model> models = new LinkedHashMap<>();
        ordered.forEach(one -> models.put(one.getKey(), model(one.getKey(), one.getValue(), limits, used)));
        return new LocalModelPlan(models, limits, used);
    }

    private static Model model(
            ResourceStore.Key key, ObjectNode cache, Map<String, Long> limits, Map<String, Long> used) {
        JsonNode spec = cache.path("spec");
        JsonNode storage = spec.path("storage");
        Map<String, String> parameters = new HashMap<>();
        storage.path("parameters")
                .properties()
                .forEach(one -> parameters.put(one.getKey(), one.getValue().asText()));
        Artifact artifact = new Artifact(
                spec.path("sourceModelUri").asText(),
                "/mnt/models",
                storage.path("key").asText(null),
                parameters,
                spec.path("serviceAccountName").asText(null),
                null);
        long size = bytes(spec.path("modelSize"));
        String namespace = key.namespace().isEmpty() ? JOBS : key.namespace();
        List<String> problems = new ArrayList<>();
        for (JsonNode one : spec.path("nodeGroups")) {
            String group = one.asText();
            Long limit = limits.get(group);
            if (limit == null) {
                problems.add("there is no LocalModelNodeGroup " + ValidationErrors.clip(group) + "; create it");
            } else if (size > limit - used.getOrDefault(group, 0L)) {
                problems.add(
                        "the LocalModelNodeGroup " + group + " has " + limit + " bytes, of which other models have "
                                + used.getOrDefault(group, 0L) + ", and modelSize is " + size
                                + "; raise its storageLimit, or delete another model");
            } else {
                used.merge(group, size, Long::sum);
                return new Model(artifact, namespace, size, group, null);
            }
        }
        return new Model(artifact, namespace, size, "", String.join("; ", problems));
    }

    private static long bytes(JsonNode quantity) {
        try {
            return Quantity.parse(quantity.asText("0")).units();
        } catch (ServingException e) {
            return 0; // admission refuses it; a resource of an older version may have it
        }
    }
}
