// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.adopt;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.nereid.base.Clock;
import io.nereid.base.ServingException;
import io.nereid.control.api.ResourceKind;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.api.config.InferenceServiceConfig;
import io.nereid.control.api.config.InferenceServiceConfig.DeploymentMode;
import io.nereid.control.core.runtime.RuntimeCatalog;
import io.nereid.control.kubernetes.apply.ApplyDifference;
import io.nereid.control.kubernetes.apply.OwnedFields;
import io.nereid.control.kubernetes.cluster.ModelConfigMap;
import io.nereid.control.kubernetes.cluster.ObservedCluster;
import io.nereid.control.kubernetes.cluster.Trees;
import io.nereid.control.kubernetes.knative.KnativeNetwork;
import io.nereid.control.kubernetes.knative.KnativePlan;
import io.nereid.control.kubernetes.knative.KnativePlanner;
import io.nereid.control.kubernetes.standard.StandardPlan;
import io.nereid.control.kubernetes.standard.StandardPlanner;
import io.nereid.control.operator.adopt.ServiceAdoption.Template;
import io.nereid.control.operator.cluster.ClusterClient;
import io.nereid.control.operator.cluster.ClusterKinds;
import io.nereid.control.operator.upgrade.KserveTemplates;
import io.nereid.control.plane.reconcile.RuntimeCatalogCache;
import io.nereid.control.plane.reconcile.RuntimeCatalogCache.Role;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/**
 * Finds, service by service, what the operator would change on a cluster where KServe's controller runs. Writes nothing: the API
 * server is asked to complete templates by updates that it does not store. Confined to one thread.
 *
 * <pre>{@code
 * List<ServiceAdoption> services = new AdoptionPlan(client, "kserve", true).of(Set.of());
 * }</pre>
 */
public final class AdoptionPlan {
    private static final String MODE = "serving.kserve.io/deploymentMode";
    private static final String SERVICE_LABEL = "serving.kserve.io/inferenceservice";

    private final ClusterClient client;
    private final String settings;
    private final KserveTemplates kserve;
    private final boolean stay;
    private final RuntimeCatalogCache catalogs;

    /** The objects of each owner, by its uid. */
    private final Map<String, Map<String, ObjectNode>> owned = new HashMap<>();

    /** The pods of each service, by its namespace and name. */
    private final Map<String, List<ObjectNode>> pods = new HashMap<>();

    /**
     * @param client closed by the caller
     * @param settings the namespace of the ConfigMap {@code inferenceservice-config}: KServe's, or the operator's
     * @param stay whether the operator will have its webhook for pods, without which no template of KServe stays
     */
    public AdoptionPlan(KubernetesClient client, String settings, boolean stay) {
        this.client = new ClusterClient(client);
        this.settings = settings;
        this.stay = stay;
        this.kserve = KserveTemplates.of(this.client, stay);
        this.catalogs = RuntimeCatalogCache.ofCluster(settings);
    }

    /**
     * The services of some namespaces, in the order of their names.
     *
     * @param namespaces empty for all
     * @throws ServingException when the API server refuses or is away
     */
    public List<ServiceAdoption> of(Set<String> namespaces) {
        read();
        List<ServiceAdoption> all = new ArrayList<>();
        for (String namespace : scope(namespaces)) {
            for (ObjectNode service : list(ResourceKinds.INFERENCE_SERVICE, namespace)) {
                all.add(of(service));
            }
        }
        return all;
    }

    private Set<String> scope(Set<String> namespaces) {
        Set<String> scope = new TreeSet<>(namespaces);
        if (scope.isEmpty()) {
            client.list(ResourceKinds.INFERENCE_SERVICE, null)
                    .forEach(one ->
                            scope.add(one.path("metadata").path("namespace").asText()));
        }
        for (String namespace : scope) {
            ObjectNode map = client.get(ResourceKinds.CONFIG_MAP, namespace, InferenceServiceConfig.CONFIG_MAP);
            if (map != null) {
                catalogs.put(Role.CONFIG, map, false);
            }
            list(ResourceKinds.SERVING_RUNTIME, namespace).forEach(one -> catalogs.put(Role.RUNTIME, one, false));
            for (ResourceKind kind : List.of(
                    ClusterKinds.DEPLOYMENT,
                    ClusterKinds.HORIZONTAL_POD_AUTOSCALER,
                    ClusterKinds.SERVICE,
                    ClusterKinds.INGRESS,
                    ClusterKinds.HTTP_ROUTE,
                    ClusterKinds.SCALED_OBJECT,
                    ClusterKinds.KNATIVE_SERVICE,
                    ClusterKinds.VIRTUAL_SERVICE,
                    ClusterKinds.OPEN_TELEMETRY_COLLECTOR)) {
                if (client.has(kind)) {
                    list(kind, namespace).forEach(this::own);
                }
            }
            list(ClusterKinds.POD, namespace).forEach(pod -> {
                String service =
                        pod.path("metadata").path("labels").path(SERVICE_LABEL).asText("");
                if (!service.isEmpty()) {
                    pods.computeIfAbsent(namespace + "/" + service, key -> new ArrayList<>())
                            .add(pod);
                }
            });
        }
        return scope;
    }

    private void own(ObjectNode object) {
        for (JsonNode reference : object.path("metadata").path("ownerReferences")) {
            if (reference.path("controller").asBoolean()
                    && reference.path("apiVersion").asText().startsWith(ResourceKinds.SERVING + "/")) {
                owned.computeIfAbsent(reference.path("uid").asText(), key -> new HashMap<>())
                        .put(Trees.key(object), object);
            }
        }
    }

    /** Lists have no kinds in their items. */
    private List<ObjectNode> list(ResourceKind kind, @Nullable String namespace) {
        List<ObjectNode> all = new ArrayList<>();
        for (ObjectNode one : client.list(kind, namespace)) {
            ObjectNode whole = one.deepCopy();
            whole.put("apiVersion", kind.apiVersion()).put("kind", kind.kind());
            all.add(whole);
        }
        return all;
    }

    private void read() {
        ObjectNode map = client.get(ResourceKinds.CONFIG_MAP, settings, InferenceServiceConfig.CONFIG_MAP);
        if (map != null) {
            catalogs.put(Role.CONFIG, map, false);
        }
        list(ResourceKinds.CLUSTER_SERVING_RUNTIME, null)
                .forEach(one -> catalogs.put(Role.CLUSTER_RUNTIME, one, false));
        list(ResourceKinds.CLUSTER_STORAGE_CONTAINER, null)
                .forEach(one -> catalogs.put(Role.STORAGE_CONTAINER, one, false));
        list(ResourceKinds.NAMESPACE, null).forEach(one -> catalogs.put(Role.NAMESPACE, one, false));
    }

    private ServiceAdoption of(ObjectNode service) {
        String namespace = service.path("metadata").path("namespace").asText();
        String name = service.path("metadata").path("name").asText();
        RuntimeCatalog catalog = catalogs.of(namespace);
        String annotated =
                service.path("metadata").path("annotations").path(MODE).asText("");
        String running = service.path("status").path("deploymentMode").asText("");
        DeploymentMode mode = !annotated.isEmpty()
                ? DeploymentMode.of(annotated)
                : !running.isEmpty()
                        ? DeploymentMode.of(running)
                        : catalog.config().forNamespace(namespace).deploy().defaultDeploymentMode();
        if (mode == DeploymentMode.STANDARD) {
            return standard(service, namespace, name, catalog);
        }
        if (mode == DeploymentMode.KNATIVE) {
            return knative(service, namespace, name, catalog);
        }
        return new ServiceAdoption(
                namespace,
                name,
                annotated.isEmpty() ? running : annotated,
                Template.NONE,
                List.of(),
                "the operator does not carry out this mode; set the annotation " + MODE + " to Standard or Knative");
    }

    /** A service with Knative Services keeps them, if the operator's webhook completes their pods. */
    private ServiceAdoption knative(ObjectNode service, String namespace, String name, RuntimeCatalog catalog) {
        Map<String, ObjectNode> stored =
                owned.getOrDefault(service.path("metadata").path("uid").asText(), Map.of());
        boolean carried =
                stored.values().stream().anyMatch(one -> Trees.kind(one).equals(Trees.KNATIVE_SERVICE));
        if (carried && !stay) {
            return new ServiceAdoption(
                    namespace,
                    name,
                    "Knative",
                    Template.NONE,
                    List.of(),
                    "there is no webhook that completes the pods of Knative Services; they go first: kubectl delete"
                            + " ksvc -n "
                            + namespace + " -l " + SERVICE_LABEL + "=" + name);
        }
        if (!carried) {
            return new ServiceAdoption(namespace, name, "Knative", Template.NONE, List.of(), "");
        }
        KnativePlan plan = KnativePlanner.plan(
                service,
                catalog,
                observed(service, namespace, name, stored),
                new KnativeNetwork(client.has(ClusterKinds.VIRTUAL_SERVICE), List::of),
                Instant.ofEpochMilli(Clock.system().millis()));
        List<String> changes = new ArrayList<>();
        Template template = Template.KEPT;
        String reason = "";
        Set<String> wanted = new HashSet<>();
        for (ObjectNode object : plan.objects()) {
            String key = Trees.key(object);
            wanted.add(key);
            ObjectNode before = stored.get(key);
            String changed = before == null ? "is made" : ApplyDifference.changed(object, before);
            if (changed == null) {
                continue;
            }
            if (changed.startsWith("spec.template")) {
                template = Template.ROLLS;
                reason = label(object) + ": " + changed;
            }
            changes.add(label(object) + ": " + changed);
        }
        removed(stored, wanted, changes);
        return new ServiceAdoption(namespace, name, "Knative", template, changes, reason);
    }

    private ObservedCluster observed(
            ObjectNode service, String namespace, String name, Map<String, ObjectNode> stored) {
        return new ObservedCluster(
                stored,
                pods.getOrDefault(namespace + "/" + name, List.of()),
                service.path("status"),
                secret -> client.get(ResourceKinds.SECRET, namespace, secret),
                account -> client.get(ResourceKinds.SERVICE_ACCOUNT, namespace, account),
                map -> client.get(ResourceKinds.CONFIG_MAP, settings, map));
    }

    private static void removed(Map<String, ObjectNode> stored, Set<String> wanted, List<String> changes) {
        stored.forEach((key, object) -> {
            if (!wanted.contains(key)) {
                changes.add(label(object) + ": is removed");
            }
        });
    }

    private ServiceAdoption standard(ObjectNode service, String namespace, String name, RuntimeCatalog catalog) {
        Map<String, ObjectNode> stored =
                owned.getOrDefault(service.path("metadata").path("uid").asText(), Map.of());
        StandardPlan plan = StandardPlanner.plan(
                service,
                catalog,
                observed(service, namespace, name, stored),
                Instant.ofEpochMilli(Clock.system().millis()));
        List<String> changes = new ArrayList<>();
        Template template = Template.NONE;
        String reason = "";
        Set<String> wanted = new HashSet<>();
        for (int i = 0; i < plan.objects().size(); i++) {
            ObjectNode object = plan.objects().get(i);
            String key = Trees.key(object);
            wanted.add(key);
            ObjectNode before = stored.get(key);
            if (object.path("metadata").has("resourceVersion")) {
                continue;
            }
            if (before == null && Trees.kind(object).equals("ConfigMap")) {
                before = client.get(
                        ResourceKinds.CONFIG_MAP,
                        namespace,
                        object.path("metadata").path("name").asText());
            }
            if (before == null) {
                changes.add(label(object) + ": is made");
                continue;
            }
            ObjectNode rest = object.deepCopy();
            if (Trees.kind(object).equals("ConfigMap")
                    && ModelConfigMap.isOne(object.path("metadata").path("name").asText())) {
                // Its models are of those who write them.
                rest.remove("data");
            }
            if (object.path("kind").asText().equals("Deployment")) {
                rest.withObjectProperty("spec").remove("template");
                String problem = problem(plan.bare().get(i), before);
                if (OwnedFields.has(before, ClusterClient.FIELD_MANAGER)) {
                    template = template == Template.ROLLS ? template : Template.OWN;
                } else if (problem.isEmpty()) {
                    template = template == Template.NONE ? Template.KEPT : template;
                } else {
                    template = Template.ROLLS;
                    reason = label(object) + ": " + problem;
                }
            }
            String changed = ApplyDifference.changed(rest, before);
            if (changed != null) {
                changes.add(label(object) + ": " + changed);
            }
        }
        removed(stored, wanted, changes);
        return new ServiceAdoption(namespace, name, "Standard", template, changes, reason);
    }

    private String problem(ObjectNode bare, ObjectNode stored) {
        return stay
                ? kserve.difference(bare, stored)
                : "there is no webhook that completes the pods of KServe's template";
    }

    private static String label(ObjectNode object) {
        return Trees.kind(object) + " " + object.path("metadata").path("name").asText();
    }
}
