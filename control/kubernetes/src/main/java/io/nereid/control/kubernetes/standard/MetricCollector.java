// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.standard;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.InferenceService.AutoScaling;
import io.nereid.control.api.InferenceService.Metric;
import io.nereid.control.kubernetes.cluster.Trees;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The OpenTelemetryCollector that brings metrics of pods to the scaler of KEDA that a component is scaled by, as KServe's
 * controller makes it: a sidecar, which the operator of OpenTelemetry adds to pods with the annotation {@code
 * sidecar.opentelemetry.io/inject}. Stateless.
 *
 * <p>Fields: {@code opentelemetry.io/v1beta1}, and the configuration of the collector.
 */
final class MetricCollector {
    private static final String KIND = "OpenTelemetryCollector";
    private static final String RECEIVER = "prometheus";
    private static final String EXPORTER = "otlp";
    private static final String DETECTION = "resourcedetection/env";
    private static final String TRANSFORM = "transform";
    private static final String FILTER = "filter/metrics";

    private MetricCollector() {}

    /** The collector of a component; null when it is scaled by no metrics whose names it lists. */
    static @Nullable ObjectNode of(ComponentObjects component) {
        List<String> names = names(component.extension().autoScaling());
        if (names.isEmpty() || !component.autoscaler().equals("keda")) {
            return null;
        }
        JsonNode settings = component.settings().section("opentelemetryCollector");
        ObjectNode object = component
                .owner()
                .object("opentelemetry.io/v1beta1", KIND, component.name(), Map.of(), component.annotations());
        ObjectNode spec = object.putObject("spec");
        spec.put("mode", "sidecar");
        ObjectNode resources = resources(settings);
        if (!resources.isEmpty()) {
            spec.set("resources", resources);
        }
        ObjectNode config = spec.putObject("config");
        receivers(config, settings, component.annotations().getOrDefault("prometheus.kserve.io/port", "8080"));
        config.putObject("exporters")
                .putObject(EXPORTER)
                .put("endpoint", settings.path("metricReceiverEndpoint").asText())
                .put("compression", "none")
                .putObject("tls")
                .put("insecure", true);
        processors(config, names);
        ObjectNode pipeline = config.putObject("service").putObject("pipelines").putObject("metrics");
        pipeline.putArray("receivers").add(RECEIVER);
        pipeline.putArray("processors").add(DETECTION).add(TRANSFORM).add(FILTER);
        pipeline.putArray("exporters").add(EXPORTER);
        return object;
    }

    /** Whether an object is one: it comes last, since a cluster without its definition refuses it. */
    static boolean isOne(ObjectNode object) {
        return object.path("kind").asText().equals(KIND);
    }

    private static List<String> names(@Nullable AutoScaling scaling) {
        List<String> names = new ArrayList<>();
        if (scaling == null) {
            return names;
        }
        for (Metric metric : scaling.metrics()) {
            JsonNode source = metric.source();
            if (metric.type().equals("PodMetric")
                    && source != null
                    && source.path("backend").asText().equals("opentelemetry")) {
                source.path("metricNames").forEach(name -> names.add(name.asText()));
            }
        }
        return names;
    }

    private static ObjectNode resources(JsonNode settings) {
        ObjectNode resources = Trees.object();
        for (String section : List.of("resource", "resources")) {
            JsonNode from = settings.path(section);
            for (String part : List.of("Limit", "Request")) {
                for (String name : List.of("cpu", "memory")) {
                    String value = from.path(name + part).asText("");
                    if (!value.isEmpty()) {
                        Trees.object(resources, part.equals("Limit") ? "limits" : "requests")
                                .put(name, value);
                    }
                }
            }
        }
        return resources;
    }

    private static void receivers(ObjectNode config, JsonNode settings, String port) {
        ObjectNode scrape = config.putObject("receivers")
                .putObject(RECEIVER)
                .putObject("config")
                .putArray("scrape_configs")
                .addObject();
        scrape.put("job_name", "otel-collector");
        scrape.put("scrape_interval", settings.path("scrapeInterval").asText());
        scrape.putArray("static_configs").addObject().putArray("targets").add("localhost:" + port);
    }

    private static void processors(ObjectNode config, List<String> names) {
        ObjectNode processors = config.putObject("processors");
        ObjectNode detection = processors.putObject(DETECTION);
        detection.putArray("detectors").add("env");
        detection.put("timeout", "2s").put("override", false);
        ObjectNode transform =
                processors.putObject(TRANSFORM).putArray("metric_statements").addObject();
        transform.put("context", "datapoint");
        for (String name : List.of("namespace", "deployment", "pod")) {
            Trees.list(transform, "statements")
                    .add("set(attributes[\"" + name + "\"], resource.attributes[\"k8s." + name + ".name\"])");
        }
        ObjectNode include = processors.putObject(FILTER).putObject("metrics").putObject("include");
        include.put("match_type", "strict");
        Trees.texts(include, "metric_names", names);
    }
}
