// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core.component;

import com.fasterxml.jackson.databind.JsonNode;
import io.nereid.control.api.InferenceService.ComponentExtensionSpec;
import io.nereid.control.api.InferenceService.Metric;
import io.nereid.control.core.Workload.Scaling;
import io.nereid.control.core.component.WorkloadForms.Site;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/** Plans the scaling of a component from its fields and the annotations of Knative's autoscaler. Stateless. */
public final class ScalingPlanner {
    static final String PREFIX = "autoscaling.knative.dev/";

    private static final String PROGRESS_DEADLINE = "serving.knative.dev/progress-deadline";

    /** Annotations that have a field of their own in {@link Scaling}. */
    private static final Set<String> FIELDS = Set.of("class", "metric", "target", "min-scale", "max-scale");

    private ScalingPlanner() {}

    /**
     * The scaling of a component.
     *
     * @param where the path of the component in the service, for messages
     * @param site where it is scaled, for messages about what has no effect there
     */
    public static Scaling of(PlanningContext context, ComponentExtensionSpec spec, String where, Site site) {
        Map<String, String> settings = new TreeMap<>();
        collect(context.service.metadata().annotations(), settings);
        collect(spec.annotations(), settings);
        String autoscaler = autoscaler(context, spec, where, settings, site);
        int min = count(context, spec.minReplicas(), settings.get("min-scale"), 1, where + ".minReplicas", "min-scale");
        int max = count(
                context,
                spec.maxReplicas() == 0 ? null : (Integer) spec.maxReplicas(),
                settings.get("max-scale"),
                0,
                where + ".maxReplicas",
                "max-scale");
        String metric =
                spec.scaleMetric() != null ? spec.scaleMetric() : settings.getOrDefault("metric", "concurrency");
        Double target = spec.scaleTarget() != null
                ? (Double) spec.scaleTarget().doubleValue()
                : number(context, settings.get("target"), "target");
        if (!metric.equals("concurrency") && !metric.equals("rps")) {
            context.advice.add(where + ": "
                    + (site == Site.ONE_MACHINE
                            ? "replicas share this machine, so " + metric
                                    + " cannot be measured for one of them; they are scaled by concurrency instead"
                            : metric + " is not measured " + site.place()
                                    + "; replicas are scaled by concurrency instead")
                    + (target == null ? "" : ", by its default target"));
            metric = "concurrency";
            target = null;
        }
        if (spec.scaleMetricType() != null) {
            context.advice.add(where + ".scaleMetricType has no effect " + site.place() + ": it is for cpu and memory");
        }
        autoScaling(context, spec, where, settings, site);
        dropBad(context, settings);
        settings.keySet().removeAll(FIELDS);
        if (max > 0 && min > max) {
            min = max;
        }
        return new Scaling(min, max, metric, target, autoscaler, java.util.Collections.unmodifiableMap(settings));
    }

    private static String autoscaler(
            PlanningContext context,
            ComponentExtensionSpec spec,
            String where,
            Map<String, String> settings,
            Site site) {
        String found = spec.annotations().get("serving.kserve.io/autoscalerClass");
        if (found == null) {
            found = context.annotation("serving.kserve.io/autoscalerClass");
        }
        if ("none".equals(found)) {
            return "none";
        }
        if ("external".equals(found)) {
            context.advice.add(
                    where + ": the autoscaler is external; the number of replicas stays at minReplicas until it is "
                            + "changed there");
            return "none";
        }
        if (found != null || settings.getOrDefault("class", "").startsWith("hpa.")) {
            context.advice.add(where + ": the autoscaler class " + (found == null ? settings.get("class") : found)
                    + " is not available " + site.place() + "; replicas are scaled by requests as in Knative (kpa)");
        }
        return "kpa";
    }

    private static void autoScaling(
            PlanningContext context,
            ComponentExtensionSpec spec,
            String where,
            Map<String, String> settings,
            Site site) {
        if (spec.autoScaling() == null) {
            return;
        }
        for (Metric metric : spec.autoScaling().metrics()) {
            context.advice.add(where + ".autoScaling.metrics: " + metric.type()
                    + (metric.resource() == null ? "" : " " + metric.resource())
                    + " has no effect " + site.place() + "; set scaleMetric to concurrency or rps");
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
            context.advice.add(where + ".autoScaling.behavior: only scaleDown.stabilizationWindowSeconds has an effect "
                    + site.place() + "; see " + PREFIX + "scale-down-delay and " + PREFIX + "window");
        }
    }

    private static void collect(Map<String, String> annotations, Map<String, String> settings) {
        annotations.forEach((key, value) -> {
            if (key.startsWith(PREFIX)) {
                settings.put(kebab(key.substring(PREFIX.length())), value);
            } else if (key.equals(PROGRESS_DEADLINE)) {
                settings.put("progress-deadline", value);
            }
        });
    }

    /** The name in kebab case: Knative accepts {@code minScale} as well as {@code min-scale}. */
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
            PlanningContext context,
            @Nullable Integer field,
            @Nullable String annotation,
            int orElse,
            String where,
            String name) {
        Double annotated = number(context, annotation, name);
        if (annotated != null
                && (annotated < 0 || annotated != Math.rint(annotated) || annotated > Integer.MAX_VALUE)) {
            context.advice.add(PREFIX + name + ": \"" + annotation + "\" is ignored: expected a whole number");
            annotated = null;
        }
        if (field != null) {
            if (annotated != null && annotated.intValue() != field) {
                context.advice.add(PREFIX + name + ": " + annotation + " is ignored: " + where + " is " + field);
            }
            return field;
        }
        return annotated == null ? orElse : annotated.intValue();
    }

    private static @Nullable Double number(PlanningContext context, @Nullable String text, String name) {
        if (text == null) {
            return null;
        }
        try {
            double number = Double.parseDouble(text.strip());
            if (Double.isFinite(number)) {
                return number;
            }
        } catch (NumberFormatException e) {
            // reported below
        }
        context.advice.add(PREFIX + name + ": \"" + text + "\" is ignored: expected a number");
        return null;
    }

    private static void dropBad(PlanningContext context, Map<String, String> settings) {
        String initial = settings.get("initial-scale");
        if (initial != null && !initial.matches("[0-9]{1,9}")) {
            context.advice.add(PREFIX + "initial-scale: \"" + initial + "\" is ignored: expected a whole number");
            settings.remove("initial-scale");
        }
    }
}
