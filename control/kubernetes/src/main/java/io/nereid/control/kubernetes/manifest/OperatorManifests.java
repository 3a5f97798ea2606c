// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.manifest;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.ServingEngine;
import io.nereid.control.api.config.InferenceServiceConfig;
import io.nereid.control.api.yaml.ManifestReader;
import io.nereid.control.core.runtime.BuiltInRuntimes;
import io.nereid.control.kubernetes.cluster.KserveCatalog;
import io.nereid.control.kubernetes.crd.CustomResourceDefinitions;
import io.nereid.control.kubernetes.manifest.ManifestOptions.Part;
import io.nereid.control.kubernetes.pod.EngineContainer;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

/**
 * The objects of an installation, in the order in which they are applied. The same options give the same objects. The
 * built-in runtimes and the storage container are data of a ConfigMap, from which the operator creates them: kubectl
 * cannot create them in the same call as their definitions. Stateless.
 *
 * <pre>{@code
 * for (ObjectNode object : OperatorManifests.of(options, yaml::writeValueAsString)) {
 *     System.out.println("---\n" + yaml.writeValueAsString(object));
 * }
 * }</pre>
 */
public final class OperatorManifests {
    /** The ConfigMap of the resources that the operator creates when they are missing; a key for each. */
    public static final String BUILT_IN = "nereid-built-in-resources";

    /** Where the operator finds them. */
    public static final String BUILT_IN_DIRECTORY = "/etc/nereid/built-in";

    private OperatorManifests() {}

    /**
     * The objects.
     *
     * @param text writes a tree as the text of a value of a ConfigMap
     */
    public static List<ObjectNode> of(ManifestOptions options, Function<JsonNode, String> text) {
        List<ObjectNode> all = new ArrayList<>();
        if (options.has(Part.NAMESPACE)) {
            all.addAll(template("namespace", options));
        }
        if (options.has(Part.DEFINITIONS)) {
            all.addAll(CustomResourceDefinitions.all());
        }
        if (options.hasPriorityClass()) {
            all.addAll(template("priority", options));
        }
        all.addAll(new AccessRules(options).all());
        if (options.has(Part.CONFIG)) {
            all.add(settings(options));
        }
        if (options.has(Part.RUNTIMES)) {
            all.add(builtIn(options, text));
        }
        all.addAll(operator(options));
        if (options.has(Part.NETWORK_POLICIES)) {
            all.addAll(template("operator-network", options));
        }
        if (options.has(Part.POD_MONITORS)) {
            all.addAll(template("operator-monitor", options));
        }
        if (options.wholeCluster()) {
            // Nodes, and most of what their models are about, are of the cluster.
            all.addAll(template("node-agent", options));
            if (options.has(Part.NETWORK_POLICIES)) {
                all.addAll(template("node-agent-network", options));
            }
        }
        if (options.has(Part.GATEWAY)) {
            all.addAll(gateway(options));
        }
        if (webhook(options)) {
            all.addAll(template("webhook", options));
        }
        return all;
    }

    /** A webhook belongs to the cluster, as its certificate's authority in it does. */
    private static boolean webhook(ManifestOptions options) {
        return options.has(Part.WEBHOOK) && options.wholeCluster();
    }

    private static List<ObjectNode> operator(ManifestOptions options) {
        List<ObjectNode> objects = template("operator", options);
        ObjectNode pod = pod(objects);
        ObjectNode container = (ObjectNode) pod.path("containers").path(0);
        ArrayNode arguments = container.withArrayProperty("args");
        watched(options, arguments);
        if (webhook(options)) {
            arguments.add("--webhook-port=9443");
            arguments.add("--webhook-configuration=" + options.clusterName());
            container
                    .withArrayProperty("ports")
                    .addObject()
                    .put("name", "webhook")
                    .put("containerPort", 9443)
                    .put("protocol", "TCP");
        }
        if (options.upgradeBudget() != 1) {
            arguments.add("--upgrade-budget=" + options.upgradeBudget());
        }
        if (options.has(Part.RUNTIMES)) {
            arguments.add("--built-in-resources=" + BUILT_IN_DIRECTORY);
            container
                    .withArrayProperty("volumeMounts")
                    .addObject()
                    .put("name", "built-in")
                    .put("mountPath", BUILT_IN_DIRECTORY)
                    .put("readOnly", true);
            pod.withArrayProperty("volumes")
                    .addObject()
                    .put("name", "built-in")
                    .putObject("configMap")
                    .put("name", BUILT_IN);
        }
        return objects;
    }

    private static List<ObjectNode> gateway(ManifestOptions options) {
        List<ObjectNode> objects = new ArrayList<>(template("gateway", options));
        if (options.gateways().least() < options.gateways().most()) {
            // Without a number in the Deployment, so that an apply does not undo what the autoscaler has set.
            objects.addAll(template("gateway-autoscaler", options));
        } else {
            ((ObjectNode) deployment(objects).path("spec"))
                    .put("replicas", options.gateways().least());
        }
        ObjectNode container = (ObjectNode) pod(objects).path("containers").path(0);
        ArrayNode arguments = container.withArrayProperty("args");
        watched(options, arguments);
        zone(options.gateways().zone(), container, arguments);
        reviews(options, arguments);
        if (options.has(Part.NETWORK_POLICIES)) {
            objects.addAll(template("gateway-network", options));
        }
        if (options.has(Part.POD_MONITORS)) {
            objects.addAll(template("gateway-monitor", options));
        }
        return objects;
    }

    private static void zone(ManifestOptions.Zone zone, ObjectNode container, ArrayNode arguments) {
        if (!zone.name().isEmpty()) {
            arguments.add("--zone=" + zone.name());
        }
        if (zone.fromPodLabel()) {
            // Without the label, as before Kubernetes 1.35, the value is empty, which means no zone.
            container
                    .withArrayProperty("env")
                    .addObject()
                    .put("name", "NEREID_ZONE")
                    .putObject("valueFrom")
                    .putObject("fieldRef")
                    .put("fieldPath", "metadata.labels['" + ManifestOptions.Zone.LABEL + "']");
        }
    }

    /** Options of the program, where they are not its defaults. */
    private static void reviews(ManifestOptions options, ArrayNode arguments) {
        if (!options.reviewMode().equals("annotated")) {
            arguments.add("--kubernetes-auth=" + options.reviewMode());
        }
        ManifestOptions.CallerReviews reviews = options.gateways().reviews();
        if (!reviews.audiences().isEmpty()) {
            arguments.add("--kubernetes-audiences=" + String.join(",", reviews.audiences()));
        }
        if (!reviews.cache().isEmpty()) {
            arguments.add("--kubernetes-auth-cache=" + reviews.cache());
        }
    }

    private static void watched(ManifestOptions options, ArrayNode arguments) {
        if (!options.wholeCluster()) {
            arguments.add("--watch-namespaces=" + String.join(",", options.watchNamespaces()));
        }
    }

    /** The pod of the only Deployment. */
    private static ObjectNode pod(List<ObjectNode> objects) {
        return (ObjectNode) deployment(objects).path("spec").path("template").path("spec");
    }

    private static ObjectNode deployment(List<ObjectNode> objects) {
        for (ObjectNode object : objects) {
            if (object.path("kind").asText().equals("Deployment")) {
                return object;
            }
        }
        throw new IllegalStateException("a template has no Deployment");
    }

    private static ObjectNode settings(ManifestOptions options) {
        ObjectNode sections = KserveCatalog.settings();
        sections.withObjectProperty("deploy").put("defaultDeploymentMode", options.defaultMode());
        ObjectNode ingress = sections.withObjectProperty("ingress");
        ingress.put("ingressDomain", options.ingressDomain());
        ingress.put("ingressClassName", options.ingressClass());
        sections.putObject("nereid")
                .put("servingEngine", ServingEngine.KSERVE.text())
                .put("image", options.image())
                .put(EngineContainer.GPU_IMAGE, EngineContainer.gpuImage(options.image()));
        ObjectNode map = configMap(InferenceServiceConfig.CONFIG_MAP, options);
        ObjectNode data = map.putObject("data");
        sections.properties().forEach(entry -> data.put(entry.getKey(), json(entry.getValue())));
        return map;
    }

    /** A text of JSON that is the same on all systems. */
    private static String json(JsonNode section) {
        return section.toPrettyString().replace(System.lineSeparator(), "\n");
    }

    private static ObjectNode builtIn(ManifestOptions options, Function<JsonNode, String> text) {
        ObjectNode map = configMap(BUILT_IN, options);
        ObjectNode data = map.putObject("data");
        for (ObjectNode resource : resources(options)) {
            data.put(resource.path("metadata").path("name").asText() + ".yaml", text.apply(resource));
        }
        return map;
    }

    /**
     * KServe's runtimes with its images, those of Nereid's engine and the storage container with this server's image.
     * Without rights on the cluster the runtimes are those of the namespaces, and there is no storage container, which belongs to the cluster.
     */
    static List<ObjectNode> resources(ManifestOptions options) {
        List<ObjectNode> resources = new ArrayList<>();
        List<ObjectNode> all = new ArrayList<>(KserveCatalog.manifests());
        all.addAll(BuiltInRuntimes.ofEngine(options.image()));
        for (ObjectNode resource : all) {
            if (resource.path("kind").asText().equals("ClusterStorageContainer")) {
                if (!options.wholeCluster()) {
                    continue;
                }
                ObjectNode container = (ObjectNode) resource.path("spec").path("container");
                container.put("image", options.image());
                container.putArray("command").add("nereid").add("fetch");
            } else if (!options.wholeCluster()) {
                resource.put("kind", "ServingRuntime");
            }
            resources.add(resource);
        }
        return resources;
    }

    private static ObjectNode configMap(String name, ManifestOptions options) {
        ObjectNode map = JsonNodeFactory.instance.objectNode();
        map.put("apiVersion", "v1").put("kind", "ConfigMap");
        map.putObject("metadata")
                .put("name", name)
                .put("namespace", options.namespace())
                .putObject("labels")
                .put("app.kubernetes.io/part-of", "nereid");
        return map;
    }

    private static List<ObjectNode> template(String name, ManifestOptions options) {
        String file = name + ".yaml";
        try (InputStream stream = OperatorManifests.class.getResourceAsStream(file)) {
            if (stream == null) {
                throw new IllegalStateException("the data file " + file + " is missing from the module's jar");
            }
            String text = new String(stream.readAllBytes(), StandardCharsets.UTF_8);
            Map<String, String> values = Map.of(
                    "namespace", options.namespace(),
                    "prefix", options.clusterName(),
                    "image", options.image(),
                    "replicas", Integer.toString(options.replicas()),
                    "least", Integer.toString(options.gateways().least()),
                    "most", Integer.toString(options.gateways().most()));
            for (Map.Entry<String, String> value : values.entrySet()) {
                text = text.replace("${" + value.getKey() + "}", value.getValue());
            }
            List<ObjectNode> objects = ManifestReader.parse(text, file);
            for (ObjectNode object : objects) {
                if (options.hasPriorityClass() && object.path("kind").asText().equals("Deployment")) {
                    pod(List.of(object)).put("priorityClassName", options.clusterName());
                }
            }
            return objects;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
