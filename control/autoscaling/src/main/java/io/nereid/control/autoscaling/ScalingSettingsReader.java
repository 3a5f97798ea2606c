// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.autoscaling;

import io.nereid.base.NameSuggestions;
import io.nereid.base.ServingException;
import io.nereid.control.api.GoDuration;
import io.nereid.control.autoscaling.ScalingSettings.Metric;
import io.nereid.control.autoscaling.TimeWindow.Aggregation;
import java.math.BigDecimal;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * Reads {@link ScalingSettings} from annotations and the keys of {@code config-autoscaler}, and collects all problems
 * so that one exception reports them together. Confined to one call.
 */
final class ScalingSettingsReader {
    private static final String PREFIX = "autoscaling.knative.dev/";
    private static final String SERVING_PREFIX = "serving.knative.dev/";
    private static final String DEADLINE = "progress-deadline";
    private static final double SMALLEST_TARGET = 0.01;
    private static final Duration LONGEST = Duration.ofHours(1);
    private static final Duration SHORTEST_WINDOW = Duration.ofSeconds(6);

    private static final List<String> ANNOTATIONS = List.of(
            "class",
            "metric",
            "target",
            "target-utilization-percentage",
            "target-burst-capacity",
            "window",
            "panic-window-percentage",
            "panic-threshold-percentage",
            "scale-to-zero-pod-retention-period",
            "scale-down-delay",
            "initial-scale",
            "min-scale",
            "max-scale",
            "activation-scale",
            "metric-aggregation-algorithm",
            DEADLINE);

    private static final List<String> CONFIG = List.of(
            "pod-autoscaler-class",
            "container-concurrency-target-default",
            "container-concurrency-target-percentage",
            "requests-per-second-target-default",
            "target-burst-capacity",
            "stable-window",
            "panic-window-percentage",
            "panic-threshold-percentage",
            "max-scale-up-rate",
            "max-scale-down-rate",
            "enable-scale-to-zero",
            "scale-to-zero-grace-period",
            "scale-to-zero-pod-retention-period",
            "scale-down-delay",
            "activator-capacity",
            "initial-scale",
            "allow-zero-initial-scale",
            "min-scale",
            "max-scale",
            "max-scale-limit",
            DEADLINE,
            "tick-interval",
            "_example");

    private final Map<String, String> config;
    private final Map<String, String> annotations = new TreeMap<>();
    private final List<String> problems = new ArrayList<>();
    private final List<String> unknown = new ArrayList<>();

    ScalingSettingsReader(Map<String, String> config, Map<String, String> given) {
        this.config = config;
        for (String key : config.keySet()) {
            if (!CONFIG.contains(key)) {
                problems.add(key + " is not a setting of the autoscaler ("
                        + NameSuggestions.didYouMean(key, CONFIG, "expected one of " + String.join(", ", CONFIG))
                        + ")");
            }
        }
        for (Map.Entry<String, String> entry : new TreeMap<>(given).entrySet()) {
            String key = entry.getKey();
            String name = key.startsWith(PREFIX) ? key.substring(PREFIX.length()) : key;
            if (key.equals(SERVING_PREFIX + DEADLINE)) {
                name = DEADLINE;
            }
            if (name.indexOf('/') >= 0) {
                continue;
            }
            String kebab = kebab(name);
            if (!ANNOTATIONS.contains(kebab)) {
                unknown.add("annotation " + key + " is not an annotation of the autoscaler and has no effect ("
                        + NameSuggestions.didYouMean(
                                kebab, ANNOTATIONS, "expected one of " + String.join(", ", ANNOTATIONS))
                        + ")");
            } else if (name.equals(kebab)) {
                annotations.put(kebab, entry.getValue());
            } else {
                // The kebab-case spelling has precedence, whichever comes first.
                annotations.putIfAbsent(kebab, entry.getValue());
            }
        }
    }

    private static String kebab(String name) {
        StringBuilder text = new StringBuilder(name.length() + 4);
        for (int i = 0; i < name.length(); i++) {
            char c = name.charAt(i);
            if (c >= 'A' && c <= 'Z') {
                text.append('-').append((char) (c + ('a' - 'A')));
            } else {
                text.append(c);
            }
        }
        return text.toString();
    }

    List<String> warnings() {
        List<String> sentences = new ArrayList<>(unknown);
        for (String name : List.of("min-scale", "max-scale")) {
            if (annotations.containsKey(name)) {
                sentences.add("annotation " + PREFIX + name + " has no effect (expected "
                        + (name.startsWith("min") ? "minReplicas" : "maxReplicas") + " of the component)");
            }
        }
        return List.copyOf(sentences);
    }

    ScalingSettings read(int min, int max, String metricName, @Nullable Double givenTarget, int containerConcurrency) {
        checkClass();
        Metric metric = metric(metricName);
        bounds(min, max, containerConcurrency);
        double utilisation = utilisation(metric);
        double total = total(metric, givenTarget, containerConcurrency);
        Duration window = window();
        double panicPercentage = number("panic-window-percentage", 10, 1, 100);
        long panicSeconds = Math.max(1, Math.round(window.toMillis() * panicPercentage / 100_000));
        ScalingSettings settings = new ScalingSettings(
                min,
                max,
                metric,
                Math.max(SMALLEST_TARGET, total * utilisation),
                total,
                burst(),
                window,
                Duration.ofSeconds(panicSeconds),
                number("panic-threshold-percentage", 200, 110, 1000) / 100,
                rate("max-scale-up-rate", 1000),
                rate("max-scale-down-rate", 2),
                bool("enable-scale-to-zero", true),
                grace(),
                duration("scale-to-zero-pod-retention-period", Duration.ZERO, Duration.ZERO, LONGEST, false),
                duration("scale-down-delay", Duration.ZERO, Duration.ZERO, LONGEST, true),
                number("activator-capacity", 100, 1, Double.MAX_VALUE),
                // Limited so that a new revision does not exceed its maximum.
                max > 0 ? Math.min(initial(), max) : initial(),
                activation(min, max),
                aggregation(),
                duration(DEADLINE, Duration.ofSeconds(600), Duration.ofSeconds(1), Duration.ofDays(365), false),
                containerConcurrency);
        if (!problems.isEmpty()) {
            throw ServingException.invalidArgument(String.join("\n", problems));
        }
        return settings;
    }

    private void checkClass() {
        String key = annotations.containsKey("class") ? "class" : "pod-autoscaler-class";
        String value = text(key);
        if (value != null && !value.equals("kpa.autoscaling.knative.dev") && !value.equals("kpa")) {
            problem(key, value, "kpa.autoscaling.knative.dev; other autoscalers need Kubernetes");
        }
    }

    private Metric metric(String given) {
        String annotation = annotations.get("metric");
        String name = annotation != null && given.equals("concurrency") ? annotation : given;
        switch (name) {
            case "concurrency":
                return Metric.CONCURRENCY;
            case "rps":
                return Metric.RPS;
            default:
                problem("metric", name, "concurrency or rps");
                return Metric.CONCURRENCY;
        }
    }

    private void bounds(int min, int max, int containerConcurrency) {
        if (min < 0) {
            problem("minimum of replicas", String.valueOf(min), "0 or more");
        }
        if (max < 0) {
            problem("maximum of replicas", String.valueOf(max), "0 for no limit, or more");
        }
        if (max > 0 && max < min) {
            problems.add("maximum of replicas " + max + " is less than the minimum " + min);
        }
        if (containerConcurrency < 0) {
            problem("containerConcurrency", String.valueOf(containerConcurrency), "0 for no limit, or more");
        }
        for (String name : List.of("min-scale", "max-scale")) {
            integer(name, 0);
        }
        int limit = integer("max-scale-limit", 0);
        if (limit > 0 && (max == 0 || max > limit)) {
            problems.add("maximum of replicas " + (max == 0 ? "0 (unlimited)" : max)
                    + " is over max-scale-limit (expected 1 to " + limit + ")");
        }
    }

    private double utilisation(Metric metric) {
        String configured = config.get("container-concurrency-target-percentage");
        double fraction = 0.7;
        if (configured != null) {
            Double value = decimal(configured);
            double f = value == null ? -1 : value > 1 ? value / 100 : value;
            if (f <= 0 || f > 1) {
                problem("container-concurrency-target-percentage", configured, "a number over 0 and up to 100");
            } else if (metric == Metric.CONCURRENCY) {
                fraction = f;
            }
        }
        return annotations.containsKey("target-utilization-percentage")
                ? number("target-utilization-percentage", 70, 1, 100) / 100
                : fraction;
    }

    private double total(Metric metric, @Nullable Double given, int containerConcurrency) {
        double fallback = metric == Metric.RPS
                ? number("requests-per-second-target-default", 200, SMALLEST_TARGET, Double.MAX_VALUE)
                : number("container-concurrency-target-default", 100, SMALLEST_TARGET, Double.MAX_VALUE);
        boolean limited = metric == Metric.CONCURRENCY && containerConcurrency > 0;
        Double target = given;
        if (target == null && annotations.containsKey("target")) {
            target = number("target", fallback, SMALLEST_TARGET, Double.MAX_VALUE);
        } else if (target != null && !(target >= SMALLEST_TARGET && target <= Double.MAX_VALUE)) {
            problem("target", String.valueOf(target), "a number of " + SMALLEST_TARGET + " or more");
            target = null;
        }
        if (target == null) {
            return limited ? containerConcurrency : fallback;
        }
        return limited ? Math.min(target, containerConcurrency) : target;
    }

    private double burst() {
        String value = text("target-burst-capacity");
        if (value == null) {
            return 211;
        }
        Double number = decimal(value);
        if (number == null || number < 0 && number != -1) {
            problem("target-burst-capacity", value, "0 or more, or -1 for any burst");
            return 0;
        }
        return number;
    }

    private Duration window() {
        String key = annotations.containsKey("window") ? "window" : "stable-window";
        return duration(key, Duration.ofSeconds(60), SHORTEST_WINDOW, LONGEST, true);
    }

    private Duration grace() {
        return duration(
                "scale-to-zero-grace-period", Duration.ofSeconds(30), Duration.ofNanos(1), Duration.ofDays(365), false);
    }

    private double rate(String key, double fallback) {
        double rate = number(key, fallback, 1, Double.MAX_VALUE);
        if (rate == 1) {
            problem(key, "1", "more than 1");
        }
        return rate;
    }

    private int initial() {
        int configured = whole(config, "initial-scale", 1);
        boolean zero = bool("allow-zero-initial-scale", false);
        int scale = annotations.containsKey("initial-scale") ? whole(annotations, "initial-scale", 1) : configured;
        if (scale == 0 && !zero) {
            problem("initial-scale", "0", "1 or more; 0 needs allow-zero-initial-scale");
        }
        return scale;
    }

    private int activation(int min, int max) {
        String value = annotations.get("activation-scale");
        if (value == null) {
            return 0;
        }
        int scale = integer("activation-scale", 2);
        if (scale < 2) {
            problem("activation-scale", value, "2 or more");
        } else if (min > scale) {
            problems.add("minimum of replicas " + min + " is greater than activation-scale=" + scale);
        } else if (max != 0 && max < scale) {
            problems.add("maximum of replicas " + max + " is less than activation-scale=" + scale);
        }
        return scale;
    }

    private Aggregation aggregation() {
        String value = annotations.getOrDefault("metric-aggregation-algorithm", "");
        switch (value) {
            case "", "linear":
                return Aggregation.LINEAR;
            case "weighted-exponential", "weightedExponential":
                return Aggregation.WEIGHTED_EXPONENTIAL;
            default:
                problem("metric-aggregation-algorithm", value, "linear or weighted-exponential");
                return Aggregation.LINEAR;
        }
    }

    private @Nullable String text(String key) {
        String value = annotations.get(key);
        return value != null ? value : config.get(key);
    }

    private int integer(String key, int fallback) {
        int configured = whole(config, key, fallback);
        return annotations.containsKey(key) ? whole(annotations, key, fallback) : configured;
    }

    private int whole(Map<String, String> from, String key, int fallback) {
        String value = from.get(key);
        if (value == null) {
            return fallback;
        }
        if (value.matches("[+-]?[0-9]{1,18}")) {
            long number = Long.parseLong(value);
            if (number >= 0 && number <= Integer.MAX_VALUE) {
                return (int) number;
            }
        }
        problem(key, value, "an integer of 0 to " + Integer.MAX_VALUE);
        return fallback;
    }

    private double number(String key, double fallback, double least, double most) {
        String value = text(key);
        if (value == null) {
            return fallback;
        }
        Double number = decimal(value);
        if (number == null || number < least || number > most) {
            problem(
                    key,
                    value,
                    most == Double.MAX_VALUE
                            ? "a number of " + plain(least) + " or more"
                            : "a number of " + plain(least) + " to " + plain(most));
            return fallback;
        }
        return number;
    }

    private static String plain(double value) {
        return BigDecimal.valueOf(value).stripTrailingZeros().toPlainString();
    }

    private static @Nullable Double decimal(String value) {
        if (value.length() > 64 || !value.matches("[+-]?([0-9]+\\.?[0-9]*|\\.[0-9]+)([eE][+-]?[0-9]{1,3})?")) {
            return null;
        }
        double number = Double.parseDouble(value);
        return Double.isFinite(number) ? number : null;
    }

    private boolean bool(String key, boolean fallback) {
        String value = config.get(key);
        if (value == null) {
            return fallback;
        }
        switch (value.toLowerCase(Locale.ROOT)) {
            case "true", "t", "1":
                return true;
            case "false", "f", "0":
                return false;
            default:
                problem(key, value, "true or false");
                return fallback;
        }
    }

    private Duration duration(String key, Duration fallback, Duration least, Duration most, boolean seconds) {
        String value = text(key);
        if (value == null) {
            return fallback;
        }
        Duration duration = GoDuration.parse(value);
        if (duration == null || duration.compareTo(least) < 0 || duration.compareTo(most) > 0) {
            problem(
                    key,
                    value,
                    most.compareTo(LONGEST) > 0
                            ? "a duration over 0s, such as 30s"
                            : "a duration of " + GoDuration.format(least) + " to " + GoDuration.format(most));
            return fallback;
        }
        if (seconds && duration.toNanos() % 1_000_000_000L != 0) {
            problem(key, value, "whole seconds");
            return fallback;
        }
        return duration;
    }

    private void problem(String key, String value, String expected) {
        problems.add(key + " is '" + value + "' (expected " + expected + ")");
    }
}
