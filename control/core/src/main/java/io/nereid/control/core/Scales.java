// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core;

import com.fasterxml.jackson.databind.JsonNode;
import io.nereid.control.api.InferenceService.ComponentExtensionSpec;
import io.nereid.control.api.InferenceService.Metric;
import io.nereid.control.core.Workload.Scaling;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/** How many replicas a component has, from its fields and annotations. Stateless. */
final class Scales {
    static final String PREFIX = "autoscaling.knative.dev/";

    /** Annotations that have a field of their own in {@link Scaling}. */
    private static final Set<String> FIELDS = Set.of("class", "metric", "target", "min-scale", "max-scale");

    private Scales() {}

    static Scaling of(Scene scene, ComponentExtensionSpec spec, String where) {
        Map<String, String> settings = new TreeMap<>();
        collect(scene.service.metadata().annotations(), settings);
        collect(spec.annotations(), settings);
        String autoscaler = autoscaler(scene, spec, where, settings);
        int min = count(scene, spec.minReplicas(), settings.get("min-scale"), 1, where + ".minReplicas", "min-scale");
        int max = count(
                scene,
                spec.maxReplicas() == 0 ? null : (Integer) spec.maxReplicas(),
                settings.get("max-scale"),
                0,
                where + ".maxReplicas",
                "max-scale");
        String metric =
                spec.scaleMetric() != null ? spec.scaleMetric() : settings.getOrDefault("metric", "concurrency");
        Double target = spec.scaleTarget() != null
                ? (Double) spec.scaleTarget().doubleValue()
                : number(scene, settings.get("target"), "target");
        if (!metric.equals("concurrency") && !metric.equals("rps")) {
            scene.advice.add(where + ": replicas share this machine, so that " + metric
                    + " tells nothing of one of them; they are scaled by concurrency instead"
                    + (target == null ? "" : ", by its default target"));
            metric = "concurrency";
            target = null;
        }
        if (spec.scaleMetricType() != null) {
            scene.advice.add(where + ".scaleMetricType has no effect on one machine: it is for cpu and memory");
        }
        autoScaling(scene, spec, where, settings);
        dropBad(scene, settings);
        settings.keySet().removeAll(FIELDS);
        if (max > 0 && min > max) {
            min = max;
        }
        return new Scaling(min, max, metric, target, autoscaler, java.util.Collections.unmodifiableMap(settings));
    }

    private static String autoscaler(
            Scene scene, ComponentExtensionSpec spec, String where, Map<String, String> settings) {
        String found = spec.annotations().get("serving.kserve.io/autoscalerClass");
        if (found == null) {
            found = scene.annotation("serving.kserve.io/autoscalerClass");
        }
        if ("none".equals(found)) {
            return "none";
        }
        if ("external".equals(found)) {
            scene.advice.add(
                    where + ": the autoscaler is external; the number of replicas stays at minReplicas until it is "
                            + "changed there");
            return "none";
        }
        if (found != null || settings.getOrDefault("class", "").startsWith("hpa.")) {
            scene.advice.add(where + ": the autoscaler class " + (found == null ? settings.get("class") : found)
                    + " is not there on one machine; requests are counted as Knative does (kpa)");
        }
        return "kpa";
    }

    private static void autoScaling(
            Scene scene, ComponentExtensionSpec spec, String where, Map<String, String> settings) {
        if (spec.autoScaling() == null) {
            return;
        }
        for (Metric metric : spec.autoScaling().metrics()) {
            scene.advice.add(where + ".autoScaling.metrics: " + metric.type()
                    + (metric.resource() == null ? "" : " " + metric.resource())
                    + " has no effect on one machine; set scaleMetric to concurrency or rps");
        }
        JsonNode behavior = spec.autoScaling().behavior();
        if (behavior == null) {
            return;
        }
        JsonNode window = behavior.path("scaleDown").path("stabilizationWindowSeconds");
        if (window.isIntegralNumber() && !settings.containsKey("scale-down-delay")) {
            settings.put("scale-down-delay", Math.min(3600, window.asLong()) + "s");
        }
        boolean policies = behavior.path("scaleUp").size() > 0;
        for (Map.Entry<String, JsonNode> entry : behavior.path("scaleDown").properties()) {
            policies |= !entry.getKey().equals("stabilizationWindowSeconds");
        }
        if (policies) {
            scene.advice.add(
                    where + ".autoScaling.behavior: of it, only scaleDown.stabilizationWindowSeconds has an effect on "
                            + "one machine; see " + PREFIX + "scale-down-delay and " + PREFIX + "window");
        }
    }

    private static void collect(Map<String, String> annotations, Map<String, String> settings) {
        annotations.forEach((key, value) -> {
            if (key.startsWith(PREFIX)) {
                settings.put(kebab(key.substring(PREFIX.length())), value);
            }
        });
    }

    /** {@code minScale} is another writing of {@code min-scale}, and so on. */
    private static String kebab(String name) {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < name.length(); i++) {
            char c = name.charAt(i);
            if (c >= 'A' && c <= 'Z') {
                text.append('-').append((char) (c + 32));
            } else {
                text.append(c);
            }
        }
        return text.toString();
    }

    private static int count(
            Scene scene, @Nullable Integer field, @Nullable String annotation, int orElse, String where, String name) {
        Double told = number(scene, annotation, name);
        if (told != null && (told < 0 || told != Math.rint(told) || told > Integer.MAX_VALUE)) {
            scene.advice.add(PREFIX + name + ": \"" + annotation + "\" is left out: expected a whole number");
            told = null;
        }
        if (field != null) {
            if (told != null && told.intValue() != field) {
                scene.advice.add(PREFIX + name + ": " + annotation + " is left out: " + where + " says " + field);
            }
            return field;
        }
        return told == null ? orElse : told.intValue();
    }

    private static @Nullable Double number(Scene scene, @Nullable String text, String name) {
        if (text == null) {
            return null;
        }
        try {
            double number = Double.parseDouble(text.strip());
            if (Double.isFinite(number)) {
                return number;
            }
        } catch (NumberFormatException e) {
            // told below
        }
        scene.advice.add(PREFIX + name + ": \"" + text + "\" is left out: expected a number");
        return null;
    }

    private static void dropBad(Scene scene, Map<String, String> settings) {
        String initial = settings.get("initial-scale");
        if (initial != null && !initial.matches("[0-9]{1,9}")) {
            scene.advice.add(PREFIX + "initial-scale: \"" + initial + "\" is left out: expected a whole number");
            settings.remove("initial-scale");
        }
    }
}
