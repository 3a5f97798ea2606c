// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.localmodel;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.kubernetes.cluster.ClusterSettings;
import io.nereid.control.kubernetes.cluster.Trees;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/**
 * The objects of the caches on nodes: for each LocalModelNodeGroup a DaemonSet of agents with a volume and its claim; for
 * each node the LocalModelNode with what it shall keep; in each namespace a claim with a volume for the models that its
 * services use. Every object has the label {@value #OWN}. A pure function; confined to one call.
 *
 * <pre>{@code
 * NodeCacheObjects objects = new NodeCacheObjects(plan, cluster, settings, "nereid");
 * objects.agents().forEach(api::apply);
 * }</pre>
 */
public final class NodeCacheObjects {
    /** The label of all objects, whose value says what they are for. */
    public static final String OWN = "nereid.io/local-models";

    /** The service account of the agents. */
    public static final String AGENT = "nereid-node-agent";

    /** Where an agent finds the volume of its group. */
    static final String DIRECTORY = "/mnt/local-models";

    private static final int USER = 65532;
    private static final int HEALTH = 8081;

    private final NodeCachePlan plan;
    private final NodeCacheCluster cluster;
    private final ClusterSettings settings;
    private final String home;

    /**
     * @param settings of the operator's namespace
     * @param home the operator's own namespace, where the agents run
     */
    public NodeCacheObjects(NodeCachePlan plan, NodeCacheCluster cluster, ClusterSettings settings, String home) {
        this.plan = plan;
        this.cluster = cluster;
        this.settings = settings;
        this.home = home;
    }

    private static ObjectNode object(String apiVersion, String kind, String name, String namespace, String purpose) {
        ObjectNode object = Trees.object().put("apiVersion", apiVersion).put("kind", kind);
        ObjectNode metadata = object.putObject("metadata").put("name", name);
        if (!namespace.isEmpty()) {
            metadata.put("namespace", namespace);
        }
        metadata.putObject("labels").put("app.kubernetes.io/part-of", "nereid").put(OWN, purpose);
        return object;
    }

    private static void owner(ObjectNode object, ObjectNode owner) {
        ((ObjectNode) object.get("metadata"))
                .putArray("ownerReferences")
                .addObject()
                .put("apiVersion", owner.path("apiVersion").asText())
                .put("kind", owner.path("kind").asText())
                .put("name", NodeCachePlan.name(owner))
                .put("uid", owner.path("metadata").path("uid").asText())
                .put("controller", true);
    }

    /** Why there are no agents; empty when there can be. */
    public String problem() {
        return settings.section("nereid").path("image").asText("").isEmpty()
                ? "nereid.image of the ConfigMap inferenceservice-config is empty, so that no agents run; set it to the image"
                        + " of the operator"
                : "";
    }

    /** The volume, the claim and the DaemonSet of each group, in this order; by the name of the group. */
    public Map<String, List<ObjectNode>> agents() {
        Map<String, List<ObjectNode>> all = new TreeMap<>();
        cluster.groups().forEach((name, group) -> {
            if (plan.limits().containsKey(name)) {
                String volume = AGENT + "-" + name;
                List<ObjectNode> objects = new ArrayList<>(volume(group, volume, volume, home, "agent"));
                objects.forEach(one -> owner(one, group));
                objects.add(agent(group, volume));
                all.put(name, objects);
            }
        });
        return all;
    }

    /** A volume of a group that is reserved for a claim, and the claim. */
    private static List<ObjectNode> volume(
            ObjectNode group, String volume, String claim, String namespace, String purpose) {
        ObjectNode of = object("v1", "PersistentVolume", volume, "", purpose);
        ObjectNode spec = of.putObject("spec");
        if (group.path("spec").path("persistentVolumeSpec") instanceof ObjectNode given) {
            spec.setAll(given.deepCopy());
        }
        spec.putObject("claimRef")
                .put("apiVersion", "v1")
                .put("kind", "PersistentVolumeClaim")
                .put("name", claim)
                .put("namespace", namespace);
        ObjectNode by = object("v1", "PersistentVolumeClaim", claim, namespace, purpose);
        ObjectNode claimed = by.putObject("spec");
        if (group.path("spec").path("persistentVolumeClaimSpec") instanceof ObjectNode given) {
            claimed.setAll(given.deepCopy());
        }
        // Without the volume's name, as with KServe, whose claims may be there: the reservation binds the two.
        return List.of(of, by);
    }

    private ObjectNode agent(ObjectNode group, String claim) {
        String name = NodeCachePlan.name(group);
        JsonNode local = settings.section("localModel");
        ObjectNode set = object("apps/v1", "DaemonSet", AGENT + "-" + name, home, "agent");
        owner(set, group);
        // A label has 63 characters at most, a name more.
        Map<String, String> labels =
                Map.of("app.kubernetes.io/name", AGENT, "nereid.io/local-model-group", CachedModels.folder(name));
        ObjectNode spec = set.putObject("spec");
        Trees.map(spec.putObject("selector"), "matchLabels", labels);
        ObjectNode rolling = spec.putObject("updateStrategy").put("type", "RollingUpdate");
        rolling.putObject("rollingUpdate").put("maxUnavailable", "10%");
        ObjectNode template = spec.putObject("template");
        ObjectNode podLabels = template.putObject("metadata").putObject("labels");
        new TreeMap<>(labels).forEach(podLabels::put);
        podLabels.put("app.kubernetes.io/part-of", "nereid");
        ObjectNode pod = template.putObject("spec");
        pod.put("serviceAccountName", AGENT).put("terminationGracePeriodSeconds", 30);
        JsonNode required = NodeSelection.of(group);
        if (required.isObject()) {
            pod.putObject("affinity")
                    .putObject("nodeAffinity")
                    .set("requiredDuringSchedulingIgnoredDuringExecution", required.deepCopy());
        }
        // Nodes with accelerators are usually tainted.
        pod.putArray("tolerations").addObject().put("operator", "Exists").put("effect", "NoSchedule");
        ObjectNode security = pod.putObject("securityContext");
        security.put("runAsNonRoot", true).put("runAsUser", USER).put("runAsGroup", USER);
        security.put("fsGroup", local.path("fsGroup").asLong(1000));
        security.putObject("seccompProfile").put("type", "RuntimeDefault");
        container(pod.putArray("containers").addObject(), name, local);
        ArrayNode volumes = pod.putArray("volumes");
        volumes.addObject()
                .put("name", "models")
                .putObject("persistentVolumeClaim")
                .put("claimName", claim);
        volumes.addObject().put("name", "tmp").putObject("emptyDir");
        return set;
    }

    private void container(ObjectNode container, String group, JsonNode local) {
        container.put("name", "agent");
        container.put("image", settings.section("nereid").path("image").asText());
        container.putArray("command").add("nereid");
        container
                .putArray("args")
                .add("operator")
                .add("node-agent")
                .add("--namespace=" + home)
                .add("--group=" + group)
                .add("--directory=" + DIRECTORY)
                .add("--credentials-namespace=" + local.path("jobNamespace").asText("kserve-localmodel-jobs"))
                .add("--retry="
                        + Math.max(1, local.path("reconcilationFrequencyInSecs").asLong(60)) + "s")
                .add("--health-port=" + HEALTH);
        ObjectNode node = container.putArray("env").addObject().put("name", "NODE_NAME");
        node.putObject("valueFrom").putObject("fieldRef").put("fieldPath", "spec.nodeName");
        container
                .putArray("ports")
                .addObject()
                .put("name", "health")
                .put("containerPort", HEALTH)
                .put("protocol", "TCP");
        probe(container.putObject("startupProbe").put("periodSeconds", 2).put("failureThreshold", 60), "/healthz");
        probe(container.putObject("livenessProbe").put("periodSeconds", 10).put("timeoutSeconds", 5), "/healthz");
        probe(container.putObject("readinessProbe").put("periodSeconds", 5).put("timeoutSeconds", 5), "/readyz");
        ObjectNode resources = container.putObject("resources");
        resources.putObject("requests").put("cpu", "50m").put("memory", "256Mi");
        resources.putObject("limits").put("memory", "1Gi");
        ObjectNode security = container.putObject("securityContext");
        security.put("allowPrivilegeEscalation", false).put("readOnlyRootFilesystem", true);
        security.putObject("capabilities").putArray("drop").add("ALL");
        ArrayNode mounts = container.putArray("volumeMounts");
        mounts.addObject().put("name", "models").put("mountPath", DIRECTORY);
        mounts.addObject().put("name", "tmp").put("mountPath", "/tmp");
    }

    private static void probe(ObjectNode probe, String path) {
        probe.putObject("httpGet").put("path", path).put("port", "health");
    }

    /** The LocalModelNodes of the nodes that keep models. */
    public List<ObjectNode> nodes() {
        Map<String, ArrayNode> lists = new TreeMap<>();
        for (NodeCachePlan.Model model : plan.models()) {
            for (String group : model.groups()) {
                for (String node : cluster.nodes(group)) {
                    lists.computeIfAbsent(node, key -> Trees.object().arrayNode())
                            .add(entry(model, group));
                }
            }
        }
        List<ObjectNode> nodes = new ArrayList<>();
        lists.forEach((name, list) -> {
            ObjectNode node = object("serving.kserve.io/v1alpha1", "LocalModelNode", name, "", "node");
            node.putObject("spec").set("localModels", list);
            nodes.add(node);
        });
        return nodes;
    }

    private static ObjectNode entry(NodeCachePlan.Model model, String group) {
        JsonNode spec = model.cache().path("spec");
        ObjectNode entry = Trees.object();
        entry.put("sourceModelUri", model.uri()).put("modelName", model.name());
        if (!model.namespace().isEmpty()) {
            entry.put("namespace", model.namespace());
        }
        entry.put("nodeGroup", group).put("modelSize", Long.toString(model.size()));
        String account = spec.path("serviceAccountName").asText("");
        if (!account.isEmpty()) {
            entry.put("serviceAccountName", account);
        }
        if (spec.path("storage").isObject()) {
            entry.set("storage", spec.path("storage").deepCopy());
        }
        return entry;
    }

    /**
     * The volumes and claims of the services, each volume before its claim. A claim is made when the downloads of its
     * group have ended, so that pods wait for their model.
     *
     * @param services the InferenceServices
     * @param existing the claims that are there, as {@code namespace/name}
     */
    public List<ObjectNode> claims(List<ObjectNode> services, Set<String> existing) {
        if (settings.section("localModel").path("disableVolumeManagement").asBoolean()) {
            return List.of();
        }
        Map<String, List<ObjectNode>> all = new LinkedHashMap<>();
        for (ObjectNode service : services) {
            NodeCachePlan.Use use = plan.use(service);
            ObjectNode group = use == null ? null : cluster.groups().get(use.group());
            if (use == null || group == null) {
                continue;
            }
            String namespace = service.path("metadata").path("namespace").asText();
            String key = namespace + "/" + use.claim();
            if (!all.containsKey(key) && (existing.contains(key) || cluster.isUsable(use.model(), use.group()))) {
                List<ObjectNode> objects =
                        volume(group, use.claim() + "-" + namespace, use.claim(), namespace, "service");
                // A volume, which is of the cluster, cannot belong to a resource of a namespace.
                if (use.model().namespace().isEmpty()) {
                    objects.forEach(one -> owner(one, use.model().cache()));
                } else {
                    owner(objects.get(1), use.model().cache());
                }
                all.put(key, objects);
            }
        }
        return all.values().stream().flatMap(List::stream).toList();
    }
}
