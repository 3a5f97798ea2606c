// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.python;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.backend.ModelMetric;
import io.nereid.backend.ModelMetric.Kind;
import io.nereid.backend.ModelMetric.Sample;
import io.nereid.base.ServingException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Pattern;

/**
 * The custom metrics of a Python model ({@code pb_utils.MetricFamily}). The values are kept in the server and summed
 * over all instances of the model, so they survive the restart of a worker; they end when the model is unloaded.
 * Thread-safe, by its own lock.
 */
final class CustomMetrics {
    private static final Pattern NAME = Pattern.compile("[a-zA-Z_:][a-zA-Z0-9_:]*");
    private static final Pattern LABEL = Pattern.compile("[a-zA-Z_][a-zA-Z0-9_]*");
    private static final int MOST = 10_000;

    @GuardedBy("this") private final Map<String, Family> families = new TreeMap<>();
    /** All series; the index is the number by which workers name them. */
    @GuardedBy("this") private final List<Series> all = new ArrayList<>();

    private record Family(Kind kind, String help, Map<Map<String, String>, Series> series) {}

    /** One combination of labels. Guarded by the outer lock. */
    private static final class Series {
        final int number;
        final Kind kind;
        final double[] bounds;
        final long[] counts;
        double value;

        Series(int number, Kind kind, double[] bounds) {
            this.number = number;
            this.kind = kind;
            this.bounds = bounds;
            this.counts = new long[kind == Kind.HISTOGRAM ? bounds.length + 1 : 0];
        }
    }

    /**
     * Handles a worker's frame: registers a family, registers a metric, or reads a value.
     *
     * @return 0, the metric's number, or its value
     * @throws ServingException INVALID_ARGUMENT for an invalid or conflicting definition, or an unknown metric
     */
    synchronized double handle(Map<String, Object> frame) {
        String name = FrameCodec.string(frame, "name");
        switch (FrameCodec.string(frame, "op")) {
            case "family":
                family(name, FrameCodec.string(frame, "help"), (int) FrameCodec.number(frame, "kind", -1));
                return 0;
            case "metric":
                return metric(name, FrameCodec.map(frame.get("labels")), FrameCodec.list(frame, "buckets"));
            default:
                return series(FrameCodec.number(frame, "i", -1)).value;
        }
    }

    @GuardedBy("this") private void family(String name, String help, int kind) {
        if (!NAME.matcher(name).matches() || name.startsWith("nv_") || name.startsWith("nereid_")) {
            throw ServingException.invalidArgument("metric '" + name
                    + "' (expected: a name of letters, digits, '_' and ':', that does not begin with 'nv_' or"
                    + " 'nereid_')");
        }
        if (kind < 0 || kind >= Kind.values().length) {
            throw ServingException.invalidArgument(
                    "metric '" + name + "' is of kind " + kind + " (expected: COUNTER, GAUGE or HISTOGRAM)");
        }
        Kind wanted = Kind.values()[kind];
        Family there = families.putIfAbsent(name, new Family(wanted, help, new LinkedHashMap<>()));
        if (there != null && (there.kind() != wanted || !there.help().equals(help))) {
            throw ServingException.invalidArgument("metric '" + name + "' exists already as a " + there.kind()
                    + " with the description '" + there.help() + "'");
        }
    }

    @GuardedBy("this") private int metric(String name, Map<String, Object> given, List<?> buckets) {
        Family family = families.get(name);
        if (family == null) {
            throw ServingException.invalidArgument("there is no metric '" + name + "'");
        }
        Map<String, String> labels = new TreeMap<>();
        given.forEach((label, value) -> {
            if (!LABEL.matcher(label).matches() || label.equals("le")) {
                throw ServingException.invalidArgument("metric '" + name + "' has a label '" + label
                        + "' (expected: letters, digits and '_', and not 'le')");
            }
            labels.put(label, String.valueOf(value));
        });
        double[] bounds = new double[buckets.size()];
        for (int i = 0; i < bounds.length; i++) {
            bounds[i] = buckets.get(i) instanceof Number n ? n.doubleValue() : Double.NaN;
            if (!Double.isFinite(bounds[i]) || (i > 0 && !(bounds[i] > bounds[i - 1]))) {
                throw ServingException.invalidArgument("buckets of metric '" + name + "' do not ascend: " + buckets);
            }
        }
        if (family.kind() == Kind.HISTOGRAM != bounds.length > 0) {
            throw ServingException.invalidArgument("metric '" + name + "' is a " + family.kind()
                    + (bounds.length > 0 ? ", which has no buckets" : ", which needs buckets"));
        }
        Series there = family.series().get(labels);
        if (there != null) {
            if (!Arrays.equals(there.bounds, bounds)) {
                throw ServingException.invalidArgument(
                        "metric '" + name + "' has other buckets already: " + Arrays.toString(there.bounds));
            }
            return there.number;
        }
        if (all.size() == MOST) {
            throw ServingException.invalidArgument(
                    "the model has " + MOST + " combinations of labels, which is the limit");
        }
        Series made = new Series(all.size(), family.kind(), bounds);
        family.series().put(labels, made);
        all.add(made);
        return made.number;
    }

    @GuardedBy("this") private Series series(long number) {
        if (number < 0 || number >= all.size()) {
            throw ServingException.invalidArgument("there is no metric with the number " + number);
        }
        return all.get((int) number);
    }

    /**
     * Applies a worker's updates, each {@code [number, operation, value]}. Invalid ones are ignored: the worker has
     * validated its own, and a frame also carries other data, which must not be lost.
     */
    synchronized void count(List<?> updates) {
        for (Object one : updates) {
            if (!(one instanceof List<?> l)
                    || l.size() != 3
                    || !(l.get(0) instanceof Long number)
                    || !(l.get(2) instanceof Number amount)
                    || number < 0
                    || number >= all.size()) {
                continue;
            }
            Series series = all.get(number.intValue());
            double value = amount.doubleValue();
            switch (String.valueOf(l.get(1))) {
                case "set" -> series.value = value;
                case "observe" -> {
                    if (series.kind == Kind.HISTOGRAM) {
                        int bucket = 0;
                        while (bucket < series.bounds.length && value > series.bounds[bucket]) {
                            bucket++;
                        }
                        series.counts[bucket]++;
                        series.value += value;
                    }
                }
                default -> series.value += value;
            }
        }
    }

    /** A snapshot of all metrics. */
    synchronized List<ModelMetric> all() {
        List<ModelMetric> metrics = new ArrayList<>();
        families.forEach((name, family) -> {
            List<Sample> samples = new ArrayList<>();
            family.series()
                    .forEach((labels, s) -> samples.add(new Sample(labels, s.value, s.bounds, s.counts.clone())));
            metrics.add(new ModelMetric(name, family.kind(), family.help(), samples));
        });
        return metrics;
    }
}
