// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.standard;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;
import io.nereid.control.api.InferenceService.AutoScaling;
import io.nereid.control.api.InferenceService.ComponentExtensionSpec;
import io.nereid.control.api.InferenceService.Metric;
import io.nereid.control.kubernetes.cluster.Trees;
import org.jspecify.annotations.Nullable;

/** The autoscaler of a component's Deployment: a HorizontalPodAutoscaler, or a ScaledObject of KEDA. Stateless. */
final class AutoscalerObjects {
    private static final int CPU = 80;

    private AutoscalerObjects() {}

    /** The autoscaler by the component's class; null when the service wants none, or has one of its own. */
    static @Nullable ObjectNode of(ComponentObjects component) {
        return switch (component.autoscaler()) {
            case "hpa" -> horizontal(component);
            case "keda" -> scaled(component);
            default -> null;
        };
    }

    private static ObjectNode horizontal(ComponentObjects component) {
        ComponentExtensionSpec scaling = component.extension();
        ObjectNode object = component
                .owner()
                .object(
                        "autoscaling/v2",
                        "HorizontalPodAutoscaler",
                        component.name(),
                        component.labels(),
                        component.annotations());
        ObjectNode spec = object.putObject("spec");
        spec.putObject("scaleTargetRef")
                .put("apiVersion", "apps/v1")
                .put("kind", "Deployment")
                .put("name", component.name());
        int min = scaling.minReplicas() == null ? 1 : Math.max(1, scaling.minReplicas());
        spec.put("minReplicas", min);
        spec.put("maxReplicas", Math.max(min, scaling.maxReplicas()));
        metrics(spec, scaling);
        AutoScaling auto = scaling.autoScaling();
        spec.set(
                "behavior",
                auto != null && auto.behavior() != null ? auto.behavior().deepCopy() : usualBehavior());
        return object;
    }

    /**
     * The defaults of the API server for an empty {@code behavior}. They are written out: an apply of an empty one over an
     * autoscaler of KServe's would remove the fields that KServe's manager has stored with their defaults.
     */
    private static ObjectNode usualBehavior() {
        ObjectNode behavior = Trees.object();
        ObjectNode up = behavior.putObject("scaleUp");
        up.put("stabilizationWindowSeconds", 0);
        up.put("selectPolicy", "Max");
        ArrayNode policies = up.putArray("policies");
        policy(policies, "Pods", 4);
        policy(policies, "Percent", 100);
        ObjectNode down = behavior.putObject("scaleDown");
        down.put("selectPolicy", "Max");
        policy(down.putArray("policies"), "Percent", 100);
        return behavior;
    }

    private static void policy(ArrayNode policies, String type, int value) {
        policies.addObject().put("type", type).put("value", value).put("periodSeconds", 15);
    }

    private static void metrics(ObjectNode spec, ComponentExtensionSpec scaling) {
        AutoScaling auto = scaling.autoScaling();
        if (auto != null) {
            for (Metric metric : auto.metrics()) {
                if (metric.resource() != null) {
                    resource(spec, metric);
                }
            }
            return;
        }
        String name = scaling.scaleMetric() == null ? "cpu" : scaling.scaleMetric();
        Integer target = scaling.scaleTarget();
        if (name.equals("cpu")) {
            target(spec, name).put("type", "Utilization").put("averageUtilization", target == null ? CPU : target);
        } else if (name.equals("memory") && target != null) {
            target(spec, name).put("type", "Utilization").put("averageUtilization", target);
        }
    }

    private static void resource(ObjectNode spec, Metric metric) {
        String name = metric.resource() == null ? "" : metric.resource();
        if (!name.isEmpty() && "AverageValue".equals(metric.targetType())) {
            target(spec, name).put("type", "AverageValue").put("averageValue", metric.averageValue());
        } else if (name.equals("cpu")) {
            Integer average = metric.averageUtilization();
            target(spec, name).put("type", "Utilization").put("averageUtilization", average == null ? CPU : average);
        } else if (name.equals("memory")) {
            target(spec, name).put("type", "Utilization").put("averageUtilization", metric.averageUtilization());
        }
    }

    private static ObjectNode target(ObjectNode spec, String name) {
        ObjectNode metric = Trees.list(spec, "metrics").addObject();
        metric.put("type", "Resource");
        ObjectNode resource = metric.putObject("resource");
        resource.put("name", name);
        return resource.putObject("target");
    }

    private static ObjectNode scaled(ComponentObjects component) {
        ComponentExtensionSpec scaling = component.extension();
        AutoScaling auto = scaling.autoScaling();
        ObjectNode object = component
                .owner()
                .object(
                        "keda.sh/v1alpha1",
                        "ScaledObject",
                        component.name(),
                        component.labels(),
                        component.annotations());
        ObjectNode spec = object.putObject("spec");
        spec.putObject("scaleTargetRef").put("name", component.name());
        int min = scaling.minReplicas() == null ? 1 : scaling.minReplicas();
        spec.put("minReplicaCount", min);
        spec.put("maxReplicaCount", Math.max(min, scaling.maxReplicas()));
        behavior(spec, component, auto == null ? null : auto.behavior());
        if (auto == null || auto.metrics().isEmpty()) {
            throw ServingException.invalidArgument(
                    "the autoscaler class keda needs autoScaling.metrics, and there are none; add one, or leave the"
                            + " annotation serving.kserve.io/autoscalerClass out");
        }
        for (Metric metric : auto.metrics()) {
            trigger(spec, metric, component);
        }
        return object;
    }

    private static void behavior(ObjectNode spec, ComponentObjects component, @Nullable ObjectNode own) {
        ObjectNode behavior = Trees.object();
        for (String direction : new String[] {"scaleDown", "scaleUp"}) {
            JsonNode window = own == null ? Trees.object() : own.path(direction).path("stabilizationWindowSeconds");
            int configured = direction.equals("scaleDown")
                    ? component.settings().config().autoscaler().scaleDownStabilizationWindowSeconds()
                    : component.settings().config().autoscaler().scaleUpStabilizationWindowSeconds();
            ObjectNode rules = behavior.putObject(direction);
            if (own != null && own.path(direction) instanceof ObjectNode written) {
                rules.setAll(written.deepCopy());
            }
            rules.put("stabilizationWindowSeconds", window.isIntegralNumber() ? window.asInt() : configured);
        }
        spec.putObject("advanced").putObject("horizontalPodAutoscalerConfig").set("behavior", behavior);
    }

    private static void trigger(ObjectNode spec, Metric metric, ComponentObjects component) {
        ObjectNode trigger = Trees.list(spec, "triggers").addObject();
        JsonNode source = metric.source() == null ? Trees.object() : metric.source();
        switch (metric.type()) {
            case "Resource" -> {
                trigger.put("type", metric.resource());
                trigger.put("metricType", metric.targetType());
                trigger.putObject("metadata").put("value", value(metric));
            }
            case "External" -> {
                trigger.put("type", source.path("backend").asText());
                ObjectNode metadata = trigger.putObject("metadata");
                metadata.put("serverAddress", source.path("serverAddress").asText(""));
                metadata.put("query", source.path("query").asText(""));
                metadata.put("threshold", orZero(metric.value()));
                if (source.path("backend").asText().equals("prometheus")
                        && !source.path("namespace").asText("").isEmpty()) {
                    metadata.put("namespace", source.path("namespace").asText());
                }
                authentication(trigger, metadata, metric, component);
            }
            default -> {
                trigger.put("type", "external");
                ObjectNode metadata = trigger.putObject("metadata");
                metadata.put(
                        "metricQuery",
                        "sum(" + source.path("query").asText() + "{namespace=\""
                                + component.owner().namespace() + "\", deployment=\"" + component.name() + "\"})");
                metadata.put("targetValue", orZero(metric.value()));
                String address = source.path("serverAddress").asText("");
                metadata.put(
                        "scalerAddress",
                        address.isEmpty()
                                ? component
                                        .settings()
                                        .section("opentelemetryCollector")
                                        .path("metricScalerEndpoint")
                                        .asText()
                                : address);
                if (!source.path("operationOverTime").asText("").isEmpty()) {
                    metadata.put(
                            "operationOverTime",
                            source.path("operationOverTime").asText());
                }
            }
        }
    }

    /** The credentials of an external metric, which stand beside the metric in the specification. */
    private static void authentication(
            ObjectNode trigger, ObjectNode metadata, Metric metric, ComponentObjects component) {
        JsonNode written = component.metrics();
        for (JsonNode one : written) {
            JsonNode external = one.path("external");
            if (external.path("metric").equals(metric.source())) {
                JsonNode authentication = external.path("authenticationRef");
                if (!authentication.path("authModes").asText("").isEmpty()) {
                    metadata.put("authModes", authentication.path("authModes").asText());
                }
                String name =
                        authentication.path("authenticationRef").path("name").asText("");
                if (!name.isEmpty()) {
                    trigger.putObject("authenticationRef").put("name", name);
                }
            }
        }
    }

    private static String value(Metric metric) {
        String type = metric.targetType() == null ? "" : metric.targetType();
        if (type.equals("Utilization")) {
            Integer average = metric.averageUtilization();
            if (average == null) {
                return "cpu".equals(metric.resource()) ? Integer.toString(CPU) : "0";
            }
            return average.toString();
        }
        return orZero(type.equals("AverageValue") ? metric.averageValue() : metric.value());
    }

    private static String orZero(@Nullable String value) {
        return value == null || value.isEmpty() ? "0" : value;
    }
}
