// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api.admission;

import io.nereid.control.api.InferenceService.AutoScaling;
import io.nereid.control.api.InferenceService.ComponentExtensionSpec;
import io.nereid.control.api.InferenceService.Metric;
import io.nereid.control.api.Quantity;
import io.nereid.control.api.ValidationErrors;
import io.nereid.control.api.config.InferenceServiceConfig.DeploymentMode;
import java.math.BigDecimal;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Validates the scaling of components: numbers of replicas, metrics, targets, and the annotations of Knative's
 * autoscaler. Confined to one admission.
 */
final class ScalingValidator {
    static final String CLASS_ANNOTATION = "serving.kserve.io/autoscalerClass";
    private static final String METRICS_ANNOTATION = "serving.kserve.io/metrics";
    private static final String TARGET_ANNOTATION = "serving.kserve.io/targetUtilizationPercentage";
    private static final String KNATIVE = "autoscaling.knative.dev/";
    private static final String KNATIVE_HPA = "hpa.autoscaling.knative.dev";
    private static final List<String> CLASSES = List.of("hpa", "external", "keda", "none");
    private static final List<String> KNATIVE_METRICS = List.of("concurrency", "rps");
    private static final List<String> POD_METRICS = List.of("cpu", "memory");
    private static final BigDecimal MEBI = BigDecimal.valueOf(1 << 20);

    private static final Pattern DURATION = Pattern.compile(
            "(?:(\\d{1,9}(?:\\.\\d{1,9})?)h)?(?:(\\d{1,9}(?:\\.\\d{1,9})?)m)?(?:(\\d{1,9}(?:\\.\\d{1,9})?)s)?(?:(\\d{1,9}(?:\\.\\d{1,9})?)ms)?");

    private final Map<String, String> annotations;
    private final DeploymentMode mode;
    private final ValidationErrors problems;

    ScalingValidator(Map<String, String> annotations, DeploymentMode mode, ValidationErrors problems) {
        this.annotations = annotations;
        this.mode = mode;
        this.problems = problems;
    }

    /** Validates the service's own annotations. */
    void service() {
        String path = "metadata.annotations.";
        String autoscaler = annotations.get(CLASS_ANNOTATION);
        if (autoscaler != null && !CLASSES.contains(autoscaler)) {
            problems.add(path + CLASS_ANNOTATION, ValidationErrors.unknownValue(autoscaler, CLASSES));
        }
        String metric = annotations.get(METRICS_ANNOTATION);
        if (metric != null && "hpa".equals(autoscaler) && !POD_METRICS.contains(metric)) {
            problems.add(path + METRICS_ANNOTATION, ValidationErrors.unknownValue(metric, POD_METRICS));
        }
        if (annotations.containsKey(TARGET_ANNOTATION)) {
            number(path + TARGET_ANNOTATION, annotations.get(TARGET_ANNOTATION), "1", "100", true);
        }
        knative(path, annotations);
    }

    /** Validates one component; its annotations override those of the service. */
    void component(String path, ComponentExtensionSpec spec) {
        knative(path + ".annotations.", spec.annotations());
        int min = spec.minReplicas() == null ? 1 : spec.minReplicas();
        notNegative(path + ".minReplicas", min);
        notNegative(path + ".maxReplicas", spec.maxReplicas());
        if (spec.maxReplicas() > 0 && spec.minReplicas() != null && min > spec.maxReplicas()) {
            problems.add(path + ".minReplicas", min + " is more than maxReplicas, " + spec.maxReplicas());
        }
        if (spec.containerConcurrency() != null) {
            notNegative(path + ".containerConcurrency", spec.containerConcurrency());
        }
        Map<String, String> all = new HashMap<>(annotations);
        all.putAll(spec.annotations());
        if (mode == DeploymentMode.KNATIVE) {
            if (KNATIVE_HPA.equals(all.get(KNATIVE + "class"))) {
                pods(path, spec);
            } else {
                requests(path, spec);
            }
            if (spec.deploymentStrategy() != null) {
                problems.add(
                        path + ".deploymentStrategy",
                        "only for the deployment mode Standard; this service's mode is " + mode.text());
            }
        } else if (mode == DeploymentMode.STANDARD) {
            String autoscaler = all.getOrDefault(CLASS_ANNOTATION, "hpa");
            if (autoscaler.equals("hpa")) {
                pods(path, spec);
            } else if (autoscaler.equals("keda")) {
                keda(path, spec);
            }
        }
    }

    /** Validates Knative's request-based scaling. */
    private void requests(String path, ComponentExtensionSpec spec) {
        String metric = spec.scaleMetric();
        if (metric != null && !KNATIVE_METRICS.contains(metric)) {
            problems.add(
                    path + ".scaleMetric",
                    ValidationErrors.unknownValue(metric, KNATIVE_METRICS)
                            + ", the metrics of the deployment mode Knative");
        }
        if (spec.scaleTarget() != null && spec.scaleTarget() < 1) {
            problems.add(path + ".scaleTarget", spec.scaleTarget() + " is less than 1");
        }
    }

    /** Validates the settings of the horizontal pod autoscaler. */
    private void pods(String path, ComponentExtensionSpec spec) {
        String metric = spec.scaleMetric() == null ? "cpu" : spec.scaleMetric();
        Integer target = spec.scaleTarget();
        if (!POD_METRICS.contains(metric)) {
            problems.add(
                    path + ".scaleMetric",
                    ValidationErrors.unknownValue(metric, POD_METRICS) + ", the metrics of the autoscaler class hpa");
        } else if (target != null && metric.equals("cpu") && (target < 1 || target > 100)) {
            problems.add(path + ".scaleTarget", target + " is not a percentage of cpu from 1 to 100");
        } else if (target != null && target < 1) {
            problems.add(path + ".scaleTarget", target + " is less than 1");
        }
        AutoScaling several = spec.autoScaling();
        if (several == null) {
            return;
        }
        for (int i = 0; i < several.metrics().size(); i++) {
            Metric one = several.metrics().get(i);
            String at = path + ".autoScaling.metrics[" + i + "]";
            if (!one.type().equals("Resource")) {
                problems.add(
                        at + ".type", "the autoscaler class hpa knows only Resource, found \"" + one.type() + "\"");
            } else {
                if ("Value".equals(one.targetType())) {
                    problems.add(
                            at + ".resource.target.type",
                            "the autoscaler class hpa knows only Utilization and AverageValue of resources, found"
                                    + " \"Value\"");
                }
                resource(at, one);
            }
        }
    }

    private void keda(String path, ComponentExtensionSpec spec) {
        if (spec.scaleMetric() != null) {
            problems.add(path + ".scaleMetric", "not for the autoscaler class keda; write autoScaling.metrics");
        }
        AutoScaling several = spec.autoScaling();
        if (several == null) {
            return;
        }
        for (int i = 0; i < several.metrics().size(); i++) {
            Metric one = several.metrics().get(i);
            String at = path + ".autoScaling.metrics[" + i + "]";
            if (one.type().equals("Resource")) {
                if ("cpu".equals(one.resource())
                        && one.targetType() != null
                        && !one.targetType().equals("Utilization")) {
                    problems.add(
                            at + ".resource.target.type",
                            "for cpu it must be Utilization, found \"" + one.targetType() + "\"");
                }
                if ("memory".equals(one.resource()) && "Value".equals(one.targetType())) {
                    problems.add(
                            at + ".resource.target.type",
                            "for memory it must be Utilization or AverageValue, found \"Value\"");
                }
                resource(at, one);
            } else {
                String block = at + (one.type().equals("External") ? ".external" : ".podmetric");
                if (one.source() == null
                        || one.source().path("query").asText("").isBlank()) {
                    problems.add(block + ".metric.query", "missing; it must be given");
                }
                if (one.value() == null) {
                    problems.add(block + ".target.value", "missing; it must be given");
                }
            }
        }
    }

    private void resource(String path, Metric metric) {
        String target = path + ".resource.target";
        if (metric.resource() == null) {
            problems.add(path + ".resource", "missing; it must be given for the type Resource");
            return;
        }
        Integer utilization = metric.averageUtilization();
        if (utilization != null && (utilization < 1 || utilization > 100)) {
            problems.add(target + ".averageUtilization", utilization + " is not a percentage from 1 to 100");
        }
        if (metric.resource().equals("memory")
                && metric.averageValue() != null
                && Quantity.parse(metric.averageValue()).value().compareTo(MEBI) < 0) {
            problems.add(target + ".averageValue", metric.averageValue() + " is less than 1Mi");
        }
        if ("Utilization".equals(metric.targetType()) && utilization == null) {
            problems.add(target + ".averageUtilization", "missing; the target's type is Utilization");
        }
        if ("AverageValue".equals(metric.targetType()) && metric.averageValue() == null) {
            problems.add(target + ".averageValue", "missing; the target's type is AverageValue");
        }
    }

    /** Validates the annotations of Knative's autoscaler with the bounds of Knative's own webhook. */
    private void knative(String path, Map<String, String> all) {
        all.forEach((key, value) -> {
            if (!key.startsWith(KNATIVE)) {
                return;
            }
            String at = path + key;
            switch (key.substring(KNATIVE.length())) {
                case "class" -> {
                    List<String> classes = List.of("kpa.autoscaling.knative.dev", KNATIVE_HPA);
                    if (!classes.contains(value)) {
                        problems.add(at, ValidationErrors.unknownValue(value, classes));
                    }
                }
                case "min-scale", "minScale", "max-scale", "maxScale", "initial-scale", "initialScale" ->
                    number(at, value, "0", "2147483647", true);
                case "activation-scale", "activationScale" -> number(at, value, "2", "2147483647", true);
                case "target" -> number(at, value, "0.01", "1000000000", false);
                case "target-utilization-percentage", "targetUtilizationPercentage" ->
                    number(at, value, "1", "100", false);
                case "target-burst-capacity", "targetBurstCapacity" -> number(at, value, "-1", "1000000000", false);
                case "panic-window-percentage", "panicWindowPercentage" -> number(at, value, "1", "100", false);
                case "panic-threshold-percentage", "panicThresholdPercentage" ->
                    number(at, value, "110", "1000", false);
                case "window" -> duration(at, value, 6, 3600);
                case "scale-down-delay",
                        "scaleDownDelay",
                        "scale-to-zero-pod-retention-period",
                        "scaleToZeroPodRetentionPeriod" -> duration(at, value, 0, 3600);
                case "metric-aggregation-algorithm" -> {
                    List<String> known = List.of("linear", "weighted-exponential");
                    if (!known.contains(value)) {
                        problems.add(at, ValidationErrors.unknownValue(value, known));
                    }
                }
                default -> {} // metric may be any name; others are kept
            }
        });
    }

    private void number(String path, @Nullable String text, String from, String to, boolean whole) {
        String kind = whole ? "an integer" : "a number";
        BigDecimal value = null;
        if (text != null && text.matches("[-+]?\\d{1,18}(\\.\\d{1,18})?")) {
            value = new BigDecimal(text);
        }
        if (value == null
                || whole && value.stripTrailingZeros().scale() > 0
                || value.compareTo(new BigDecimal(from)) < 0
                || value.compareTo(new BigDecimal(to)) > 0) {
            problems.add(
                    path,
                    "expected " + kind + " from " + from + " to " + to + ", found \""
                            + ValidationErrors.clip(String.valueOf(text)) + "\"");
        }
    }

    private void duration(String path, String text, int from, int to) {
        Matcher matcher = DURATION.matcher(text);
        double seconds = -1;
        if (text.equals("0")) {
            seconds = 0;
        } else if (!text.isEmpty() && matcher.matches()) {
            seconds = part(matcher, 1) * 3600 + part(matcher, 2) * 60 + part(matcher, 3) + part(matcher, 4) / 1000;
        }
        if (seconds < from || seconds > to) {
            problems.add(
                    path,
                    "expected a duration such as 90s or 1m30s, from " + from + "s to " + to / 3600 + "h, found \""
                            + ValidationErrors.clip(text) + "\"");
        }
    }

    private static double part(Matcher matcher, int group) {
        String text = matcher.group(group);
        return text == null ? 0 : Double.parseDouble(text);
    }

    private void notNegative(String path, long value) {
        if (value < 0) {
            problems.add(path, value + " is less than 0");
        }
    }
}
