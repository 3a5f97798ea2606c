// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.upgrade;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.ClusterStorageContainer;
import io.nereid.control.api.ServingRuntime;
import io.nereid.control.api.config.InferenceServiceConfig;
import io.nereid.control.core.runtime.RuntimeCatalog;
import io.nereid.control.kubernetes.cluster.ClusterSettings;
import io.nereid.control.kubernetes.revision.GatewayObjects;
import io.nereid.control.operator.objects.ObjectTrimmer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;

/**
 * Separates what a pod template is planned from into what users give, and what comes with the operator. Both are told by
 * digests. Stateless.
 *
 * <ul>
 *   <li>The form: the version of the operator, its built-in resources, and the images in {@code inferenceservice-config},
 *       which an installation brings along.
 *   <li>The inputs: the specification of the service but for scaling and traffic, its labels and annotations, its runtime,
 *       the storage containers and the settings, but for what is of the form.
 * </ul>
 */
final class TemplateInputs {
    /** Fields of components that do not reach pods. */
    private static final Set<String> NOT_OF_PODS = Set.of(
            "minReplicas",
            "maxReplicas",
            "scaleTarget",
            "scaleMetric",
            "scaleMetricType",
            "autoScaling",
            "canaryTrafficPercent",
            "deploymentStrategy",
            "trafficPercent");

    /** Sections of the settings that do not reach pods. */
    private static final Set<String> NOT_OF_POD_SETTINGS = Set.of("ingress", "router", "autoscaler", "service");

    /** Beginnings of annotations that do not reach pods. */
    private static final List<String> NOT_OF_POD_ANNOTATIONS = List.of(
            "autoscaling.knative.dev/",
            "nereid.io/",
            "serving.knative.dev/",
            "kubectl.kubernetes.io/",
            "argocd.argoproj.io/",
            GatewayObjects.ENABLE_AUTH);

    private TemplateInputs() {}

    /**
     * The digest of the form.
     *
     * @param shipped the version of the operator and its built-in resources
     */
    static String form(String shipped, InferenceServiceConfig config) {
        ObjectNode tree = JsonNodeFactory.instance.objectNode();
        tree.put("shipped", shipped);
        ClusterSettings settings = ClusterSettings.of(config);
        config.tree().fieldNames().forEachRemaining(section -> tree.set(section, images(settings.section(section))));
        return digest(tree);
    }

    /** The images of a section, by the paths of their fields. */
    private static JsonNode images(JsonNode section) {
        ObjectNode images = JsonNodeFactory.instance.objectNode();
        section.properties().forEach(field -> {
            if (isImage(field.getKey())) {
                images.set(field.getKey(), field.getValue());
            } else if (field.getValue().isObject()) {
                images.set(field.getKey(), images(field.getValue()));
            }
        });
        return images;
    }

    private static boolean isImage(String field) {
        return field.equals("image") || field.equals("defaultImageVersion") || field.endsWith("Image");
    }

    private static JsonNode withoutImages(JsonNode section) {
        if (!(section instanceof ObjectNode object)) {
            return section;
        }
        ObjectNode rest = JsonNodeFactory.instance.objectNode();
        object.properties().forEach(field -> {
            if (!isImage(field.getKey())) {
                rest.set(field.getKey(), withoutImages(field.getValue()));
            }
        });
        return rest;
    }

    /**
     * The digest of the inputs.
     *
     * @param service the stored service
     * @param runtimes its runtimes, of {@link #runtimes}
     * @param given the digest of {@link #given}
     */
    static String inputs(ObjectNode service, Set<String> runtimes, String given) {
        ObjectNode tree = JsonNodeFactory.instance.objectNode();
        JsonNode spec = service.path("spec").deepCopy();
        spec.forEach(TemplateInputs::prune);
        spec.path("canary").forEach(canary -> {
            prune(canary);
            canary.forEach(TemplateInputs::prune);
        });
        tree.set("spec", spec);
        JsonNode metadata = service.path("metadata");
        tree.set("labels", metadata.path("labels"));
        ObjectNode annotations = tree.putObject("annotations");
        metadata.path("annotations").properties().forEach(entry -> {
            String key = entry.getKey();
            if (key.equals(TemplateRollout.NOW)
                    || NOT_OF_POD_ANNOTATIONS.stream().noneMatch(key::startsWith)) {
                annotations.set(key, entry.getValue());
            }
        });
        tree.put("runtimes", runtimes.toString());
        tree.put("given", given);
        return digest(tree);
    }

    /**
     * The digest of what services are given besides their own specification.
     *
     * @param names the runtimes that count
     */
    static String given(String namespace, Set<String> names, RuntimeCatalog catalog) {
        ObjectNode tree = JsonNodeFactory.instance.objectNode();
        ObjectNode runtimes = tree.putObject("runtimes");
        for (List<ServingRuntime> all : List.of(catalog.namespaceRuntimes(), catalog.clusterRuntimes())) {
            all.stream()
                    .filter(runtime -> names.contains(runtime.metadata().name()))
                    .forEach(runtime -> runtimes.set(runtime.metadata().name(), own(runtime.tree())));
        }
        ObjectNode containers = tree.putObject("containers");
        for (ClusterStorageContainer container : catalog.storageContainers()) {
            containers.put(container.metadata().name(), own(container));
        }
        ObjectNode settings = tree.putObject("settings");
        catalog.config().forNamespace(namespace).tree().properties().forEach(section -> {
            if (!NOT_OF_POD_SETTINGS.contains(section.getKey())) {
                settings.set(section.getKey(), withoutImages(section.getValue()));
            }
        });
        return digest(tree);
    }

    private static void prune(JsonNode component) {
        if (component instanceof ObjectNode object) {
            object.remove(NOT_OF_PODS);
        }
    }

    /**
     * The names of the runtimes of a service.
     *
     * @param status its status as planned, which names its runtime
     */
    static Set<String> runtimes(ObjectNode service, JsonNode status) {
        Set<String> names = new TreeSet<>();
        names.add(status.path("clusterServingRuntimeName").asText());
        names.add(status.path("servingRuntimeName").asText());
        names.add(service.at("/spec/predictor/model/runtime").asText());
        names.remove("");
        return names;
    }

    /** What is not of the operator in a runtime or storage container. */
    private static JsonNode own(ObjectNode resource) {
        JsonNode metadata = resource.path("metadata");
        if (!metadata.has("resourceVersion")) {
            // Built into the operator, not stored.
            return metadata.path("name");
        }
        JsonNode others = metadata.path("annotations").path(ObjectTrimmer.OTHERS);
        return others.isMissingNode() ? resource.path("spec") : others;
    }

    private static String own(ClusterStorageContainer container) {
        String others = container.metadata().annotations().get(ObjectTrimmer.OTHERS);
        return others != null
                ? others
                : container.container() + " " + container.supportedUriFormats() + " " + container.workloadType() + " "
                        + container.disabled();
    }

    /** A digest, in which the order of keys has no meaning. */
    static String digest(JsonNode tree) {
        try {
            return HexFormat.of()
                    .formatHex(
                            MessageDigest.getInstance("SHA-256")
                                    .digest(sorted(tree).toString().getBytes(StandardCharsets.UTF_8)),
                            0,
                            8);
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("every Java platform has SHA-256", e);
        }
    }

    private static JsonNode sorted(JsonNode tree) {
        if (tree instanceof ObjectNode object) {
            ObjectNode copy = JsonNodeFactory.instance.objectNode();
            object.properties().stream()
                    .sorted(Map.Entry.comparingByKey())
                    .forEach(entry -> copy.set(entry.getKey(), sorted(entry.getValue())));
            return copy;
        }
        if (tree instanceof ArrayNode list) {
            ArrayNode copy = JsonNodeFactory.instance.arrayNode();
            list.forEach(element -> copy.add(sorted(element)));
            return copy;
        }
        return tree;
    }
}
