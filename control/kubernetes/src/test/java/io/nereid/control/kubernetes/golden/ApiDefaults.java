// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.golden;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.kubernetes.cluster.Trees;

/** What the API server adds to objects that leave it out, so that they compare with recorded ones. */
final class ApiDefaults {
    private ApiDefaults() {}

    static ObjectNode stored(ObjectNode object) {
        ObjectNode stored = object.deepCopy();
        stored.remove("status");
        ObjectNode spec = stored.get("spec") instanceof ObjectNode there ? there : Trees.object();
        switch (Trees.kind(stored)) {
            case "Deployment" -> deployment(spec);
            case "Service" -> service(spec);
            case Trees.KNATIVE_SERVICE -> revision(spec.at("/template/spec"));
            case "HorizontalPodAutoscaler" -> autoscaler(spec);
            case "HTTPRoute" -> route(spec);
            case "ScaledObject" -> scaled(spec);
            default -> {
                // nothing is added
            }
        }
        return stored;
    }

    private static void set(ObjectNode tree, String field, String value) {
        if (!tree.hasNonNull(field)) {
            tree.put(field, value);
        }
    }

    private static void set(ObjectNode tree, String field, int value) {
        if (!tree.hasNonNull(field)) {
            tree.put(field, value);
        }
    }

    private static void deployment(ObjectNode spec) {
        set(spec, "replicas", 1);
        set(spec, "revisionHistoryLimit", 10);
        set(spec, "progressDeadlineSeconds", 600);
        ObjectNode strategy = Trees.object(spec, "strategy");
        set(strategy, "type", "RollingUpdate");
        if (strategy.path("type").asText().equals("RollingUpdate")) {
            ObjectNode rolling = Trees.object(strategy, "rollingUpdate");
            set(rolling, "maxUnavailable", "25%");
            set(rolling, "maxSurge", "25%");
        }
        pod((ObjectNode) spec.at("/template/spec"));
    }

    static void pod(ObjectNode pod) {
        set(pod, "restartPolicy", "Always");
        set(pod, "terminationGracePeriodSeconds", 30);
        set(pod, "dnsPolicy", "ClusterFirst");
        set(pod, "schedulerName", "default-scheduler");
        if (!pod.has("securityContext")) {
            pod.putObject("securityContext");
        }
        if (pod.hasNonNull("serviceAccountName")) {
            pod.set("serviceAccount", pod.get("serviceAccountName"));
        }
        for (String list : new String[] {"containers", "initContainers"}) {
            for (JsonNode container : pod.path(list)) {
                container((ObjectNode) container);
            }
        }
        for (JsonNode volume : pod.path("volumes")) {
            for (String kind : new String[] {"secret", "configMap", "projected", "downwardAPI"}) {
                if (volume.path(kind) instanceof ObjectNode source) {
                    set(source, "defaultMode", 420);
                }
            }
            if (volume.path("hostPath") instanceof ObjectNode source) {
                set(source, "type", "");
            }
        }
    }

    private static void container(ObjectNode container) {
        set(container, "terminationMessagePath", "/dev/termination-log");
        set(container, "terminationMessagePolicy", "File");
        String image = container.path("image").asText("");
        boolean latest = image.endsWith(":latest")
                || !image.substring(image.lastIndexOf('/') + 1).matches(".*[:@].*");
        set(container, "imagePullPolicy", latest ? "Always" : "IfNotPresent");
        if (!container.has("resources")) {
            container.putObject("resources");
        }
        for (JsonNode port : container.path("ports")) {
            set((ObjectNode) port, "protocol", "TCP");
        }
        for (JsonNode env : container.path("env")) {
            if (env.at("/valueFrom/fieldRef") instanceof ObjectNode field) {
                set(field, "apiVersion", "v1");
            }
            if (env.path("value").asText("x").isEmpty()) {
                ((ObjectNode) env).remove("value");
            }
        }
        for (String name : new String[] {"readinessProbe", "livenessProbe", "startupProbe"}) {
            if (container.get(name) instanceof ObjectNode probe) {
                set(probe, "timeoutSeconds", 1);
                set(probe, "periodSeconds", 10);
                set(probe, "successThreshold", 1);
                set(probe, "failureThreshold", 3);
                if (probe.path("initialDelaySeconds").asInt() == 0) {
                    probe.remove("initialDelaySeconds");
                }
                if (probe.path("httpGet") instanceof ObjectNode get) {
                    set(get, "path", "/");
                    set(get, "scheme", "HTTP");
                }
                if (probe.path("grpc") instanceof ObjectNode grpc) {
                    set(grpc, "service", "");
                }
            }
        }
    }

    /** What a program in Go writes of a Knative Service anyway. */
    private static void revision(JsonNode pod) {
        for (JsonNode one : pod.path("containers")) {
            ObjectNode container = (ObjectNode) one;
            if (!container.has("resources")) {
                container.putObject("resources");
            }
            for (JsonNode port : container.path("ports")) {
                set((ObjectNode) port, "protocol", "TCP");
            }
        }
    }

    private static void service(ObjectNode spec) {
        set(spec, "type", "ClusterIP");
        set(spec, "sessionAffinity", "None");
        if (!spec.path("type").asText().equals("ExternalName")) {
            set(spec, "internalTrafficPolicy", "Cluster");
        }
        if (spec.path("clusterIP").asText("").equals("None") && !spec.has("clusterIPs")) {
            spec.putArray("clusterIPs").add("None");
        }
        for (JsonNode port : spec.path("ports")) {
            set((ObjectNode) port, "protocol", "TCP");
        }
    }

    private static void autoscaler(ObjectNode spec) {
        set(spec, "minReplicas", 1);
        if (!spec.has("behavior")) {
            return;
        }
        ObjectNode behavior = (ObjectNode) spec.get("behavior");
        ObjectNode up = Trees.object(behavior, "scaleUp");
        set(up, "stabilizationWindowSeconds", 0);
        set(up, "selectPolicy", "Max");
        if (!up.has("policies")) {
            up.putArray("policies")
                    .addObject()
                    .put("type", "Pods")
                    .put("value", 4)
                    .put("periodSeconds", 15);
            Trees.list(up, "policies")
                    .addObject()
                    .put("type", "Percent")
                    .put("value", 100)
                    .put("periodSeconds", 15);
        }
        ObjectNode down = Trees.object(behavior, "scaleDown");
        set(down, "selectPolicy", "Max");
        if (!down.has("policies")) {
            down.putArray("policies")
                    .addObject()
                    .put("type", "Percent")
                    .put("value", 100)
                    .put("periodSeconds", 15);
        }
    }

    private static void route(ObjectNode spec) {
        for (JsonNode rule : spec.path("rules")) {
            for (JsonNode backend : rule.path("backendRefs")) {
                set((ObjectNode) backend, "group", "");
                set((ObjectNode) backend, "weight", 1);
            }
        }
    }

    private static void scaled(ObjectNode spec) {
        if (spec.path("advanced") instanceof ObjectNode advanced && !advanced.has("scalingModifiers")) {
            advanced.putObject("scalingModifiers");
        }
    }
}
