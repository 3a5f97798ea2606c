// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.top;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.NavigableMap;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The samples of a page of metrics in Prometheus' text format, of those with the labels {@code model} and {@code version}. Immutable once
 * read.
 */
final class PrometheusSamples {
    private static final Pattern LINE = Pattern.compile("([a-zA-Z_:][a-zA-Z0-9_:]*)\\{(.*)\\} ([^ ]+)(?: .*)?");
    private static final Pattern LABEL = Pattern.compile("([a-zA-Z_][a-zA-Z0-9_]*)=\"((?:[^\"\\\\]|\\\\.)*)\"");

    /** Sums by model and version, then by the name of the metric. */
    private final Map<String, Map<String, Double>> sums = new LinkedHashMap<>();

    /** Cumulative buckets by model and version, then by their upper bounds. */
    private final Map<String, TreeMap<Double, Double>> latencies = new LinkedHashMap<>();

    /**
     * Reads a page.
     *
     * @param histogram the name of the histogram of latencies
     */
    static PrometheusSamples read(String page, String histogram) {
        PrometheusSamples samples = new PrometheusSamples();
        page.lines().forEach(line -> samples.line(line, histogram + "_bucket"));
        return samples;
    }

    private void line(String line, String bucket) {
        Matcher form = LINE.matcher(line);
        if (!form.matches()) {
            return;
        }
        Map<String, String> labels = new LinkedHashMap<>();
        Matcher label = LABEL.matcher(form.group(2));
        while (label.find()) {
            labels.put(label.group(1), label.group(2).replace("\\\"", "\"").replace("\\\\", "\\"));
        }
        String model = labels.get("model");
        String version = labels.get("version");
        if (model == null || version == null) {
            return;
        }
        double value;
        try {
            value = number(form.group(3));
        } catch (NumberFormatException e) {
            return;
        }
        String key = key(model, version);
        String bound = labels.get("le");
        if (form.group(1).equals(bucket) && bound != null) {
            latencies.computeIfAbsent(key, k -> new TreeMap<>()).merge(number(bound), value, Double::sum);
        } else {
            sums.computeIfAbsent(key, k -> new LinkedHashMap<>()).merge(form.group(1), value, Double::sum);
        }
    }

    private static double number(String text) {
        return switch (text) {
            case "+Inf" -> Double.POSITIVE_INFINITY;
            case "-Inf" -> Double.NEGATIVE_INFINITY;
            default -> Double.parseDouble(text);
        };
    }

    /** The key of a version of a model. */
    static String key(String model, String version) {
        return model + "\n" + version;
    }

    /** The sum of a metric over its other labels; NaN without the metric. */
    double sum(String key, String metric) {
        return sums.getOrDefault(key, Map.of()).getOrDefault(metric, Double.NaN);
    }

    /** The cumulative buckets of the latencies in seconds, by upper bounds; empty without the histogram. */
    NavigableMap<Double, Double> buckets(String key) {
        return latencies.getOrDefault(key, new TreeMap<>());
    }

    /**
     * A quantile of what was counted between two moments, interpolated within its bucket as Prometheus' {@code histogram_quantile} does.
     *
     * @return NaN when nothing was counted
     */
    static double quantile(double quantile, NavigableMap<Double, Double> before, NavigableMap<Double, Double> after) {
        if (after.isEmpty()) {
            return Double.NaN;
        }
        double total = after.lastEntry().getValue() - before.getOrDefault(after.lastKey(), 0.0);
        if (!(total > 0)) {
            return Double.NaN;
        }
        double rank = quantile * total;
        double lower = 0;
        double below = 0;
        for (Map.Entry<Double, Double> bucket : after.entrySet()) {
            double count = bucket.getValue() - before.getOrDefault(bucket.getKey(), 0.0);
            if (count >= rank) {
                // of the last bucket only the lower bound is known
                return Double.isInfinite(bucket.getKey()) || count == below
                        ? lower
                        : lower + (bucket.getKey() - lower) * (rank - below) / (count - below);
            }
            lower = bucket.getKey();
            below = count;
        }
        return lower;
    }
}
