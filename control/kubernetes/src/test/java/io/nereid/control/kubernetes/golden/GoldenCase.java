// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.golden;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.MissingNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;
import io.nereid.control.api.ClusterStorageContainer;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.api.ServingRuntime;
import io.nereid.control.api.admission.Admission;
import io.nereid.control.api.admission.AdmissionContext;
import io.nereid.control.api.admission.Site;
import io.nereid.control.api.config.InferenceServiceConfig;
import io.nereid.control.core.Plan;
import io.nereid.control.core.runtime.RuntimeCatalog;
import io.nereid.control.kubernetes.cluster.KserveCatalog;
import io.nereid.control.kubernetes.cluster.ObservedCluster;
import io.nereid.control.kubernetes.cluster.Trees;
import io.nereid.control.kubernetes.knative.KnativeNetwork;
import io.nereid.control.kubernetes.knative.KnativePlan;
import io.nereid.control.kubernetes.knative.KnativePlanner;
import io.nereid.control.kubernetes.localmodel.NodeCachePlan;
import io.nereid.control.kubernetes.standard.StandardPlan;
import io.nereid.control.kubernetes.standard.StandardPlanner;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;

/** Plays a recorded case against the planner, and records what it makes in the same format. */
final class GoldenCase {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int ROUNDS = 40;

    private final String namespace;
    private final List<ObjectNode> groups = new ArrayList<>();
    private final List<ObjectNode> caches = new ArrayList<>();
    private final SimulatedCluster cluster = new SimulatedCluster();
    private final Map<String, ObjectNode> services = new TreeMap<>();
    private final Map<String, ObjectNode> statuses = new TreeMap<>();
    private final Map<String, ObjectNode> runtimes = new TreeMap<>();
    private final List<ClusterStorageContainer> storageContainers = new ArrayList<>(KserveCatalog.storageContainers());
    private final Map<String, ObjectNode> operatorConfigMaps = new TreeMap<>();
    private final ObjectNode settings = KserveCatalog.settings();
    private InferenceServiceConfig config;
    private final Set<String> made = new HashSet<>();
    private final Set<String> told = new HashSet<>();
    private final ObjectNode recording = Trees.object();
    private final List<String[]> events = new ArrayList<>();
    private Map<String, ObjectNode> lastObjects = new TreeMap<>();
    private Map<String, ObjectNode> lastStatuses = new TreeMap<>();

    GoldenCase(String name, ObjectNode profile) {
        this.namespace = name;
        profile.path("objects").forEach(one -> {
            if (one.path("kind").asText().equals("ConfigMap")) {
                operatorConfigMaps.put(one.path("metadata").path("name").asText(), (ObjectNode) one);
            }
        });
        change(profile.path("config"));
        config = InferenceServiceConfig.read(configMap());
        ObjectNode account = Trees.object().put("apiVersion", "v1").put("kind", "ServiceAccount");
        account.putObject("metadata").put("name", "default");
        cluster.put(account);
    }

    private void change(JsonNode changes) {
        changes.properties().forEach(section -> {
            if (section.getValue().isTextual()) {
                try {
                    settings.set(
                            section.getKey(), JSON.readTree(section.getValue().asText()));
                } catch (JsonProcessingException e) {
                    settings.put(section.getKey(), section.getValue().asText());
                }
                return;
            }
            ObjectNode there = Trees.object(settings, section.getKey());
            section.getValue().properties().forEach(field -> {
                if (field.getValue().isNull()) {
                    there.remove(field.getKey());
                } else {
                    there.set(field.getKey(), field.getValue());
                }
            });
        });
    }

    private ObjectNode configMap() {
        ObjectNode map = Trees.object().put("kind", "ConfigMap").put("apiVersion", "v1");
        ObjectNode data = map.putObject("data");
        settings.properties()
                .forEach(one -> data.put(
                        one.getKey(),
                        one.getValue().isTextual()
                                ? one.getValue().asText()
                                : one.getValue().toString()));
        return map;
    }

    ObjectNode play(ObjectNode input) {
        recording.putArray("stages");
        input.path("objects").forEach(one -> create((ObjectNode) one));
        stage("pending", false);
        for (JsonNode step : input.path("pendingSteps")) {
            step(step);
        }
        cluster.cordoned = false;
        stage("ready", false);
        recording.set("pods", pods());
        for (JsonNode step : input.path("steps")) {
            step(step);
        }
        return recording;
    }

    private void step(JsonNode step) {
        if (step.has("config")) {
            change(step.path("config"));
            try {
                config = InferenceServiceConfig.read(configMap());
            } catch (ServingException e) {
                // an operator keeps the last settings that it could read
            }
        }
        if (step.has("cordon")) {
            cluster.cordoned = step.path("cordon").asBoolean();
        }
        step.path("create").forEach(one -> create((ObjectNode) one));
        step.path("merge").forEach(this::merge);
        step.path("delete").forEach(this::delete);
        cluster.settle();
        step.path("podStatus").forEach(cluster::podStatus);
        if (step.has("podStatus") && (step.has("merge") || step.has("create"))) {
            reconcile();
            step.path("podStatus").forEach(cluster::podStatus);
        }
        stage(step.path("name").asText(), step.path("pods").asBoolean());
    }

    private void create(ObjectNode object) {
        ObjectNode own = object.deepCopy();
        ObjectNode meta = Trees.object(own, "metadata");
        String kind = own.path("kind").asText();
        switch (kind) {
            case "InferenceService" -> {
                meta.put("namespace", namespace).put("generation", 1);
                if (admitted(own)) {
                    services.put(meta.path("name").asText(), own);
                }
            }
            case "ServingRuntime" -> {
                meta.put("namespace", namespace);
                if (admitted(own)) {
                    runtimes.put(meta.path("name").asText(), own);
                }
            }
            case "ClusterStorageContainer" -> storageContainers.add(ClusterStorageContainer.read(own));
            case "PersistentVolume" -> {
                // outside the namespace
            }
            case "LocalModelNodeGroup" -> groups.add(own);
            case "LocalModelCache" -> caches.add(own);
            default -> {
                meta.put("namespace", namespace);
                cluster.put(own);
            }
        }
    }

    private boolean admitted(ObjectNode object) {
        Admission admission = new Admission(
                new AdmissionContext() {
                    @Override
                    public InferenceServiceConfig config(String where) {
                        return config;
                    }

                    @Override
                    public List<ClusterStorageContainer> storageContainers() {
                        return storageContainers;
                    }

                    @Override
                    public List<ServingRuntime> runtimes(String where) {
                        return where.isEmpty() ? KserveCatalog.runtimes() : own();
                    }
                },
                Site.KUBERNETES);
        try {
            admission.admit(ResourceKinds.of(object), object, null);
            return true;
        } catch (ServingException e) {
            recording
                    .withArrayProperty("refused")
                    .addObject()
                    .put("object", Trees.key(object))
                    .put("message", e.getMessage());
            return false;
        }
    }

    private List<ServingRuntime> own() {
        return runtimes.values().stream().map(ServingRuntime::read).toList();
    }

    private void merge(JsonNode change) {
        String name = change.path("name").asText();
        String kind = change.path("kind").asText();
        JsonNode patch = change.path("patch");
        if (kind.equals("InferenceService")) {
            ObjectNode service = services.get(name);
            if (service != null) {
                ObjectNode next = service.deepCopy();
                patch(next, patch);
                if (!next.path("spec").equals(service.path("spec"))) {
                    ((ObjectNode) next.get("metadata"))
                            .put(
                                    "generation",
                                    service.at("/metadata/generation").asInt() + 1);
                }
                services.put(name, next);
            }
        } else if (kind.equals("ServingRuntime")) {
            patch(runtimes.get(name), patch);
        } else {
            for (Map<String, ObjectNode> all : List.of(cluster.objects, cluster.bare)) {
                ObjectNode there = all.get(Trees.key(kind, name));
                if (there != null) {
                    patch(there, patch);
                }
            }
        }
    }

    private static void patch(ObjectNode into, JsonNode changes) {
        changes.properties().forEach(one -> {
            if (one.getValue().isNull()) {
                into.remove(one.getKey());
            } else if (one.getValue().isObject()) {
                patch(Trees.object(into, one.getKey()), one.getValue());
            } else {
                into.set(one.getKey(), one.getValue());
            }
        });
    }

    private void delete(JsonNode object) {
        String name = object.path("name").asText();
        switch (object.path("kind").asText()) {
            case "InferenceService" -> {
                services.remove(name);
                statuses.remove(name);
                owned(name).keySet().forEach(cluster::remove);
            }
            case "ServingRuntime" -> runtimes.remove(name);
            default -> cluster.remove(Trees.key(object.path("kind").asText(), name));
        }
    }

    private Map<String, ObjectNode> owned(String service) {
        Map<String, ObjectNode> all = new LinkedHashMap<>();
        cluster.objects.forEach((key, object) -> {
            JsonNode owner = object.at("/metadata/ownerReferences/0");
            if (owner.path("kind").asText().equals("InferenceService")
                    && owner.path("name").asText().equals(service)) {
                all.put(key, object);
            }
        });
        return all;
    }

    private void reconcile() {
        boolean changed = true;
        for (int round = 0; changed && round < ROUNDS; round++) {
            changed = false;
            for (String name : services.keySet()) {
                changed |= reconcile(name);
            }
            changed |= cluster.settle();
        }
        if (changed) {
            throw new AssertionError(namespace + ": the planner does not come to rest");
        }
    }

    /** The mode of a service that runs stays, whatever the default becomes. */
    private boolean isStandard(String name) {
        String annotated = Objects.requireNonNull(services.get(name))
                .at("/metadata/annotations")
                .path("serving.kserve.io/deploymentMode")
                .asText("");
        ObjectNode status = statuses.get(name);
        String mode = status == null ? annotated : status.path("deploymentMode").asText();
        return mode.isEmpty()
                ? config.deploy().defaultDeploymentMode() == InferenceServiceConfig.DeploymentMode.STANDARD
                : mode.equals("Standard");
    }

    private boolean reconcile(String name) {
        RuntimeCatalog catalog = new RuntimeCatalog(
                own(), KserveCatalog.runtimes(), storageContainers, config, RuntimeCatalog.Gateway.UNKNOWN);
        Map<String, ObjectNode> owned = owned(name);
        ObjectNode status = statuses.get(name);
        ObservedCluster observed = new ObservedCluster(
                owned,
                cluster.pods.stream()
                        .filter(one -> one.at("/metadata/labels")
                                .path("serving.kserve.io/inferenceservice")
                                .asText()
                                .equals(name))
                        .toList(),
                status == null ? MissingNode.getInstance() : status,
                secret -> cluster.objects.get("Secret/" + secret),
                account -> cluster.objects.get("ServiceAccount/" + account),
                operatorConfigMaps::get);
        NodeCachePlan cached = NodeCachePlan.of(groups, caches, List.copyOf(services.values()));
        ObjectNode service = cached.annotated(Objects.requireNonNull(services.get(name)));
        Instant now = Instant.parse("2026-01-01T00:00:00Z");
        if (!isStandard(name)) {
            KnativePlan plan = KnativePlanner.plan(
                    service, catalog, observed, new KnativeNetwork(true, () -> List.of("example.com")), now);
            return carriedOut(name, owned, plan.objects(), plan.objects(), plan.status(), plan.events());
        }
        StandardPlan plan = StandardPlanner.plan(service, catalog, observed, now);
        return carriedOut(name, owned, plan.objects(), plan.bare(), plan.status(), plan.events());
    }

    private boolean carriedOut(
            String name,
            Map<String, ObjectNode> owned,
            List<ObjectNode> objects,
            List<ObjectNode> bareObjects,
            ObjectNode planned,
            List<Plan.Event> happened) {
        ObjectNode status = statuses.get(name);
        boolean changed = !planned.equals(status);
        statuses.put(name, planned.deepCopy());
        Set<String> desired = new LinkedHashSet<>();
        for (int i = 0; i < objects.size(); i++) {
            ObjectNode object = objects.get(i);
            desired.add(Trees.key(object));
            made.add(Trees.key(object));
            ObjectNode bare = bareObjects.get(i);
            // a Deployment that stays is the one that is there, with what its pods have got
            boolean kept = object == owned.get(Trees.key(object))
                    || object == bare && object.path("kind").asText().equals("Deployment");
            changed |= !kept && cluster.apply(object, bare);
        }
        for (String key : owned.keySet()) {
            if (!desired.contains(key)) {
                cluster.remove(key);
                changed = true;
            }
        }
        for (Plan.Event event : happened) {
            events.add(new String[] {"InferenceService/" + name, event.type(), event.reason(), event.message()});
        }
        return changed;
    }

    private void stage(String name, boolean withPods) {
        reconcile();
        ObjectNode stage = Trees.list(recording, "stages").addObject();
        stage.put("stage", name);
        Map<String, ObjectNode> objects = new TreeMap<>();
        cluster.bare.forEach((key, object) -> {
            if (made.contains(key)) {
                objects.put(GoldenComparison.key(object), ApiDefaults.stored(object));
            }
        });
        Map<String, ObjectNode> status = new TreeMap<>();
        statuses.forEach((service, tree) -> status.put("InferenceService/" + service, plain(tree)));
        ArrayNode changed = stage.putArray("changed");
        objects.forEach((key, object) -> {
            if (!object.equals(lastObjects.get(key))) {
                changed.add(object);
            }
        });
        ObjectNode statusTree = stage.putObject("status");
        status.forEach((key, tree) -> {
            if (!tree.equals(lastStatuses.get(key))) {
                statusTree.set(key, tree);
            }
        });
        ArrayNode removed = stage.putArray("removed");
        lastObjects.keySet().stream().filter(key -> !objects.containsKey(key)).forEach(removed::add);
        ArrayNode gone = stage.putArray("servedGone");
        lastStatuses.keySet().stream().filter(key -> !status.containsKey(key)).forEach(gone::add);
        ArrayNode eventTree = stage.putArray("events");
        for (String[] event : events) {
            if (told.add(String.join("\n", event))) {
                eventTree
                        .addObject()
                        .put("about", event[0])
                        .put("type", event[1])
                        .put("reason", event[2])
                        .put("message", event[3]);
            }
        }
        events.clear();
        if (withPods) {
            stage.set("pods", pods());
        }
        lastObjects = objects;
        lastStatuses = status;
        if (name.equals("ready")
                && changed.isEmpty()
                && statusTree.isEmpty()
                && removed.isEmpty()
                && eventTree.isEmpty()) {
            ((ArrayNode) recording.get("stages")).remove(recording.get("stages").size() - 1);
        }
    }

    private static ObjectNode plain(ObjectNode status) {
        ObjectNode plain = status.deepCopy();
        plain.remove("observedGeneration");
        plain.path("conditions").forEach(one -> ((ObjectNode) one).remove("lastTransitionTime"));
        return plain;
    }

    private ArrayNode pods() {
        ArrayNode all = Trees.object().putArray("pods");
        cluster.objects.forEach((key, deployment) -> {
            if (!deployment.path("kind").asText().equals("Deployment")) {
                return;
            }
            ObjectNode one = all.addObject();
            one.put("of", deployment.at("/metadata/name").asText());
            ObjectNode pod = one.putObject("pod");
            pod.put("apiVersion", "v1").put("kind", "Pod");
            ObjectNode meta =
                    (ObjectNode) deployment.at("/spec/template/metadata").deepCopy();
            meta.put("name", "POD");
            pod.set("metadata", meta);
            ObjectNode spec = (ObjectNode) deployment.at("/spec/template/spec").deepCopy();
            spec.remove("serviceAccount");
            if (!spec.has("serviceAccountName")) {
                spec.put("serviceAccountName", "default");
            }
            for (String list : List.of("containers", "initContainers")) {
                for (JsonNode container : spec.path(list)) {
                    requests(container);
                }
            }
            pod.set("spec", spec);
        });
        return all;
    }

    /** The API server gives pods, not templates, the limits as requests where they ask for nothing. */
    private static void requests(JsonNode container) {
        ObjectNode resources = (ObjectNode) container.path("resources");
        resources.path("limits").properties().forEach(limit -> {
            if (!resources.path("requests").has(limit.getKey())) {
                Trees.object(resources, "requests").set(limit.getKey(), limit.getValue());
            }
        });
    }
}
