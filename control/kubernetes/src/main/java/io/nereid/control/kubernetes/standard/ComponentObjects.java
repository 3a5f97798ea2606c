// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.standard;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.InferenceService.ComponentExtensionSpec;
import io.nereid.control.kubernetes.cluster.ClusterSettings;
import io.nereid.control.kubernetes.cluster.Owner;
import io.nereid.control.kubernetes.cluster.Trees;
import io.nereid.control.kubernetes.pod.PodNames;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The Deployment and the Services of a component, named and labelled as by KServe. Confined to one planning.
 *
 * @param name the component's name, such as {@code iris-predictor}
 * @param metrics the metrics to scale by, as written
 */
record ComponentObjects(
        Owner owner,
        ClusterSettings settings,
        String name,
        Map<String, String> labels,
        Map<String, String> annotations,
        ComponentExtensionSpec extension,
        ObjectNode pod,
        JsonNode metrics) {
    /** The Deployment; its number of replicas is left out where an autoscaler decides it. */
    ObjectNode deployment() {
        ObjectNode deployment = owner.object("apps/v1", "Deployment", name, labels, annotations);
        ObjectNode spec = deployment.putObject("spec");
        if ("none".equals(autoscaler()) && extension.minReplicas() != null) {
            spec.put("replicas", extension.minReplicas());
        }
        spec.putObject("selector").putObject("matchLabels").put("app", labels.get("app"));
        template(spec);
        strategy(spec);
        return deployment;
    }

    /** The Deployment of the workers, of a fixed number. */
    ObjectNode workers(int replicas) {
        ObjectNode deployment = deployment();
        ObjectNode spec = (ObjectNode) deployment.get("spec");
        spec.put("replicas", replicas);
        if (spec.path("strategy").path("type").asText().equals("RollingUpdate")) {
            // the workers that serve go when all new ones are ready: a part of them is of no use
            ((ObjectNode) spec.get("strategy"))
                    .putObject("rollingUpdate")
                    .put("maxUnavailable", "0%")
                    .put("maxSurge", "100%");
        }
        return deployment;
    }

    private void template(ObjectNode spec) {
        ObjectNode template = spec.putObject("template");
        ObjectNode meta = template.putObject("metadata");
        meta.put("name", name).put("namespace", owner.namespace());
        Trees.map(meta, "labels", labels);
        Trees.map(meta, "annotations", annotations);
        template.set("spec", pod.deepCopy());
    }

    private void strategy(ObjectNode spec) {
        if (extension.deploymentStrategy() != null) {
            spec.set("strategy", extension.deploymentStrategy().deepCopy());
            return;
        }
        ObjectNode strategy = spec.putObject("strategy");
        strategy.put("type", "RollingUpdate");
        ObjectNode rolling = strategy.putObject("rollingUpdate");
        rolling.put("maxUnavailable", "25%").put("maxSurge", "25%");
        if (settings.config().deploy().defaultDeploymentMode().text().equals("Standard")) {
            settings.config().deploy().defaultRollout().forEach((field, value) -> {
                if (value.matches("[0-9]+")) {
                    rolling.put(field, Integer.parseInt(value));
                } else {
                    rolling.put(field, value);
                }
            });
        }
        spec.put("revisionHistoryLimit", 10);
        spec.put("progressDeadlineSeconds", 600);
    }

    /** The class of the autoscaler: {@code hpa} by default, {@code keda}, {@code external} or {@code none}. */
    String autoscaler() {
        String named = annotations.get(PodNames.GROUP + "autoscalerClass");
        return named == null || named.isEmpty() ? "hpa" : named;
    }

    /** The Service that clients and routes call. */
    ObjectNode service() {
        ObjectNode service = owner.object("v1", "Service", name, labels, annotations);
        ObjectNode spec = service.putObject("spec");
        ObjectNode selected = Trees.named(pod.path("containers"), PodNames.TRANSFORMER);
        JsonNode container = selected == null ? pod.path("containers").path(0) : selected;
        JsonNode ports = container.path("ports");
        if (ports.isEmpty()) {
            port(spec, name, 80, 8080, "TCP");
        }
        boolean first = true;
        for (JsonNode port : ports) {
            int number = port.path("containerPort").asInt();
            port(
                    spec,
                    port.path("name").asText(""),
                    first ? 80 : number,
                    number,
                    port.path("protocol").asText("TCP"));
            first = false;
        }
        if (extension.logger() != null || extension.batcher() != null) {
            ((ObjectNode) spec.path("ports").path(0)).put("targetPort", PodNames.AGENT_PORT);
        }
        spec.putObject("selector").put("app", labels.get("app"));
        if (settings.headless()) {
            spec.put("clusterIP", "None");
        }
        return service;
    }

    private static void port(ObjectNode spec, String name, int number, int target, String protocol) {
        ObjectNode port = Trees.list(spec, "ports").addObject();
        if (!name.isEmpty()) {
            port.put("name", name);
        }
        port.put("port", number).put("targetPort", target).put("protocol", protocol);
        if (name.contains("grpc") || name.contains("h2c")) {
            port.put("appProtocol", "kubernetes.io/h2c");
        }
    }

    /**
     * A Service by which the nodes of one model find each other.
     *
     * @param role {@code head} or {@code worker}
     */
    ObjectNode node(String serviceName, String role, @Nullable String app, String generation) {
        Map<String, String> all = new LinkedHashMap<>(labels);
        all.put("multinode/role", role);
        ObjectNode service = owner.object("v1", "Service", serviceName, all, annotations);
        ObjectNode spec = service.putObject("spec");
        spec.putObject("selector")
                .put("app", app == null ? labels.get("app") : app)
                .put("isvc.generation", generation);
        spec.put("clusterIP", "None");
        spec.put("publishNotReadyAddresses", true);
        return service;
    }
}
