// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.api.yaml.ManifestReader;
import io.nereid.control.operator.cluster.ClusterClient;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

/** Writes services and their objects into a cluster as KServe's controller has stored them. Stateless. */
final class KserveObjects {
    private static final ObjectMapper JSON = new ObjectMapper();

    private KserveObjects() {}

    /** The folder of KServe's recordings; null where there is none. */
    static Path recordings() {
        String given = System.getenv("NEREID_KSERVE_GOLDENS");
        if (given != null && !given.isEmpty()) {
            return Path.of(given);
        }
        for (Path up = Path.of("").toAbsolutePath(); up != null; up = up.getParent()) {
            Path usual = up.resolve("shared/reference/kserve-goldens");
            if (Files.isDirectory(usual)) {
                return usual;
            }
        }
        return null;
    }

    /** Writes the sections of KServe's settings as its ConfigMap. */
    static void settings(ClusterClient client, String namespace, ObjectNode sections) {
        ObjectNode map = OperatorCluster.tree("{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':"
                + "'inferenceservice-config','namespace':'" + namespace + "'}}");
        sections.properties()
                .forEach(one -> map.withObjectProperty("data")
                        .put(
                                one.getKey(),
                                one.getValue().isTextual()
                                        ? one.getValue().asText()
                                        : one.getValue().toString()));
        ObjectNode unused = client.apply(ResourceKinds.CONFIG_MAP, map);
    }

    static ObjectNode read(Path file) {
        try {
            return ManifestReader.parse(Files.readString(file), file.toString()).get(0);
        } catch (IOException e) {
            throw new AssertionError(e);
        }
    }

    /** A service and the objects that KServe made of it; the service has a status. */
    static List<ObjectNode> service(String namespace, String name) {
        try (InputStream stream = KserveObjects.class.getResourceAsStream("/kserve/service.yaml")) {
            String text = new String(stream.readAllBytes(), StandardCharsets.UTF_8)
                    .replace("__NAMESPACE__", namespace)
                    .replace("__NAME__", name);
            return ManifestReader.parse(text, "service.yaml");
        } catch (IOException e) {
            throw new AssertionError(e);
        }
    }

    /** Creates an object as KServe's controller, whose program is called manager; returns what is stored. */
    static ObjectNode create(KubernetesClient client, ObjectNode object) {
        return (ObjectNode) send(client, path(object), "POST", object);
    }

    /** Creates a service with its status; returns what is stored. */
    static ObjectNode createService(KubernetesClient client, ObjectNode service, JsonNode status) {
        ObjectNode sent = service.deepCopy();
        sent.remove("status");
        ObjectNode stored = create(client, sent);
        if (status.isObject()) {
            stored.set("status", status.deepCopy());
            String of =
                    path(stored) + "/" + stored.path("metadata").path("name").asText() + "/status";
            stored = (ObjectNode) send(client, of, "PUT", stored);
        }
        return stored;
    }

    /** An object of a service whose uid it now has. */
    static ObjectNode owned(ObjectNode object, String uid) {
        ObjectNode own = object.deepCopy();
        own.path("metadata").path("ownerReferences").forEach(owner -> ((ObjectNode) owner).put("uid", uid));
        return own;
    }

    private static JsonNode send(KubernetesClient client, String path, String method, ObjectNode object) {
        try {
            return JSON.readTree(client.raw(path + "?fieldManager=manager", method, object.toString()));
        } catch (IOException e) {
            throw new AssertionError(e);
        }
    }

    private static String path(ObjectNode object) {
        String version = object.path("apiVersion").asText();
        String kind = object.path("kind").asText().toLowerCase(Locale.ROOT);
        String plural = kind.equals("ingress") ? "ingresses" : kind + "s";
        return (version.contains("/") ? "/apis/" : "/api/") + version
                + (kind.startsWith("cluster") || kind.equals("persistentvolume")
                        ? ""
                        : "/namespaces/"
                                + object.path("metadata").path("namespace").asText())
                + "/" + plural;
    }

    /** The objects at the end of a recording's stage {@code ready}, by kind and name. */
    static Map<String, ObjectNode> objects(ObjectNode expected) {
        Map<String, ObjectNode> all = new TreeMap<>();
        for (JsonNode stage : stages(expected)) {
            for (String section : List.of("objects", "changed")) {
                stage.path(section).forEach(one -> all.put(key(one), (ObjectNode) one));
            }
            stage.path("removed").forEach(one -> all.remove(one.asText().replaceFirst("^.*/([^/]+/[^/]+)$", "$1")));
        }
        return all;
    }

    /** The statuses of services or their stored forms at the end of a recording's stage {@code ready}, by name. */
    static Map<String, ObjectNode> services(ObjectNode expected, String section) {
        Map<String, ObjectNode> all = new TreeMap<>();
        for (JsonNode stage : stages(expected)) {
            stage.path(section).properties().forEach(one -> {
                if (one.getKey().startsWith("InferenceService/")) {
                    all.put(one.getKey().substring("InferenceService/".length()), (ObjectNode) one.getValue());
                }
            });
        }
        return all;
    }

    private static List<JsonNode> stages(ObjectNode expected) {
        List<JsonNode> stages = new ArrayList<>();
        for (JsonNode stage : expected.path("stages")) {
            String name = stage.path("stage").asText();
            if (name.equals("pending") || name.equals("ready")) {
                stages.add(stage);
            }
        }
        return stages;
    }

    static String key(JsonNode object) {
        return object.path("kind").asText() + "/"
                + object.path("metadata").path("name").asText();
    }

    /** A tree in which the order of lists with names does not count. */
    static JsonNode sorted(JsonNode tree) {
        if (tree instanceof ObjectNode object) {
            ObjectNode copy = JSON.createObjectNode();
            object.properties().stream()
                    .sorted(Map.Entry.comparingByKey())
                    .forEach(entry -> copy.set(entry.getKey(), sorted(entry.getValue())));
            return copy;
        }
        if (tree instanceof ArrayNode list) {
            List<JsonNode> elements = new ArrayList<>();
            list.forEach(element -> elements.add(sorted(element)));
            for (String key : List.of("mountPath", "name", "type", "key")) {
                if (!elements.isEmpty() && elements.stream().allMatch(element -> element.has(key))) {
                    elements.sort(
                            Comparator.comparing(element -> element.path(key).asText()));
                    break;
                }
            }
            ArrayNode copy = JSON.createArrayNode();
            elements.forEach(copy::add);
            return copy;
        }
        return tree;
    }

    /** A pod without what the API server, the scheduler and the ReplicaSet add to it. */
    static JsonNode plain(ObjectNode pod) {
        ObjectNode plain = JSON.createObjectNode();
        plain.set("annotations", pod.path("metadata").path("annotations"));
        ObjectNode labels = plain.putObject("labels");
        labels.setAll((ObjectNode) pod.path("metadata").path("labels").deepCopy());
        // The API server adds those of the topology when a pod gets its node.
        labels.remove(List.of("pod-template-hash", "topology.kubernetes.io/zone", "topology.kubernetes.io/region"));
        ObjectNode spec = pod.path("spec").deepCopy();
        spec.remove(List.of(
                "nodeName", "priority", "preemptionPolicy", "enableServiceLinks", "tolerations", "serviceAccount"));
        without(spec, "volumes");
        for (String list : List.of("containers", "initContainers")) {
            spec.path(list).forEach(container -> without((ObjectNode) container, "volumeMounts"));
        }
        // The differences from KServe that golden/differences.txt lists: a reference to a key that is not there, and
        // headers as a copy.
        spec.path("initContainers").forEach(container -> {
            if (container.get("env") instanceof ArrayNode variables) {
                variables.removeIf(one -> one.path("name").asText().equals("AZURE_TENANT_ID"));
                variables.forEach(one -> {
                    if (one.path("name").asText().endsWith("-headers")) {
                        ((ObjectNode) one).remove(List.of("value", "valueFrom"));
                    }
                });
            }
        });
        plain.set("spec", spec);
        return sorted(plain);
    }

    private static void without(ObjectNode object, String list) {
        if (object.get(list) instanceof ArrayNode elements) {
            elements.removeIf(one -> one.path("name").asText().startsWith("kube-api-access-"));
            if (elements.isEmpty()) {
                object.remove(list);
            }
        }
    }

    /** The path of the first difference of two trees with their values; empty for none. */
    static String difference(String path, JsonNode one, JsonNode other) {
        if (one.equals(other)) {
            return "";
        }
        if (one.isObject() && other.isObject() || one.isArray() && other.isArray() && one.size() == other.size()) {
            if (one.isArray()) {
                for (int i = 0; i < one.size(); i++) {
                    String found = difference(path + "/" + i, one.get(i), other.get(i));
                    if (!found.isEmpty()) {
                        return found;
                    }
                }
                return "";
            }
            Set<String> names = new TreeSet<>();
            one.fieldNames().forEachRemaining(names::add);
            other.fieldNames().forEachRemaining(names::add);
            for (String name : names) {
                String found = difference(path + "/" + name, one.path(name), other.path(name));
                if (!found.isEmpty()) {
                    return found;
                }
            }
            return "";
        }
        try {
            if (one.isTextual()
                    && other.isTextual()
                    && one.asText().startsWith("{")
                    && JSON.readTree(one.asText()).equals(JSON.readTree(other.asText()))) {
                return "";
            }
        } catch (JsonProcessingException e) {
            // not JSON: they differ
        }
        return path + ": KServe " + one + ", found " + other;
    }
}
