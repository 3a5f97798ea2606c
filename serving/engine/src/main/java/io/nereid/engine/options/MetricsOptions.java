// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.options;

import io.nereid.base.NameSuggestions;
import io.nereid.base.ServingException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * Selects the optional metrics. Immutable.
 *
 * @param counterLatencies whether the sums of latencies are shown
 * @param histogramLatencies whether the time to the first response is measured, under Triton's name
 * @param summaryLatencies whether quantiles over the last minute are measured
 * @param quantiles the quantiles, each with its requested error. The actual error is three per cent of the value
 * @param host whether the CPU time and memory of the host are shown
 * @param slowRequestNanos the time from which on a request is kept as a sample of slow ones; 0 for one that follows from
 *     the model's recent requests
 */
public record MetricsOptions(
        boolean counterLatencies,
        boolean histogramLatencies,
        boolean summaryLatencies,
        Map<Double, Double> quantiles,
        boolean host,
        long slowRequestNanos) {
    /** Triton's defaults: sums of latencies and host metrics. */
    public static final MetricsOptions DEFAULT = new MetricsOptions(true, false, false, standardQuantiles(), true);

    public static final String FIRST_RESPONSE = "nv_inference_first_response_histogram_ms";
    private static final List<Double> FIRST_RESPONSE_MS = List.of(100.0, 500.0, 2000.0, 5000.0);
    private static final List<String> SETTINGS = List.of(
            "counter_latencies", "histogram_latencies", "summary_latencies", "summary_quantiles", "slow_request_ms");

    private static final long MAX_SLOW_MS = 3_600_000;

    /** Options in which the time of slow requests follows from the recent ones. */
    public MetricsOptions(
            boolean counterLatencies,
            boolean histogramLatencies,
            boolean summaryLatencies,
            Map<Double, Double> quantiles,
            boolean host) {
        this(counterLatencies, histogramLatencies, summaryLatencies, quantiles, host, 0);
    }

    /** Returns these options with another value of {@link #host}. */
    public MetricsOptions withHost(boolean newHost) {
        return new MetricsOptions(
                counterLatencies, histogramLatencies, summaryLatencies, quantiles, newHost, slowRequestNanos);
    }

    /**
     * Returns these options with a setting in Triton's notation: {@code counter_latencies},
     * {@code histogram_latencies}, {@code summary_latencies} (true or false), {@code summary_quantiles}
     * ({@code 0.5:0.05,0.99:0.001}) or {@code slow_request_ms} (milliseconds, or {@code auto}).
     *
     * @throws ServingException INVALID_ARGUMENT for an unknown name or an invalid value
     */
    public MetricsOptions with(String name, String value) {
        return switch (name) {
            case "counter_latencies" ->
                new MetricsOptions(
                        flag(name, value), histogramLatencies, summaryLatencies, quantiles, host, slowRequestNanos);
            case "histogram_latencies" ->
                new MetricsOptions(
                        counterLatencies, flag(name, value), summaryLatencies, quantiles, host, slowRequestNanos);
            case "summary_latencies" ->
                new MetricsOptions(
                        counterLatencies, histogramLatencies, flag(name, value), quantiles, host, slowRequestNanos);
            case "summary_quantiles" ->
                new MetricsOptions(
                        counterLatencies,
                        histogramLatencies,
                        summaryLatencies,
                        parseQuantiles(value),
                        host,
                        slowRequestNanos);
            case "slow_request_ms" ->
                new MetricsOptions(
                        counterLatencies, histogramLatencies, summaryLatencies, quantiles, host, slowRequest(value));
            default ->
                throw ServingException.invalidArgument(
                        "metrics setting '" + name + "' is unknown (expected: one of " + SETTINGS + ")",
                        NameSuggestions.didYouMean(name, SETTINGS, "correct its name"));
        };
    }

    private static long slowRequest(String value) {
        if (value.equals("auto")) {
            return 0;
        }
        try {
            double millis = Double.parseDouble(value);
            if (millis > 0 && millis <= MAX_SLOW_MS) {
                return Math.max(1, Math.round(millis * 1e6));
            }
        } catch (NumberFormatException e) {
            // reported below
        }
        throw ServingException.invalidArgument("metrics setting 'slow_request_ms' is '" + value
                + "' (expected: milliseconds above 0 and up to " + MAX_SLOW_MS + ", or auto)");
    }

    private static boolean flag(String name, String value) {
        return switch (value) {
            case "true", "1" -> true;
            case "false", "0" -> false;
            default ->
                throw ServingException.invalidArgument(
                        "metrics setting '" + name + "' is '" + value + "' (expected: true or false)");
        };
    }

    private static Map<Double, Double> parseQuantiles(String value) {
        Map<Double, Double> quantiles = new TreeMap<>();
        for (String pair : value.split(",")) {
            String[] parts = pair.split(":");
            try {
                double q = Double.parseDouble(parts[0].strip());
                double error = parts.length > 1 ? Double.parseDouble(parts[1].strip()) : 0.01;
                if (parts.length > 2 || !(q >= 0 && q <= 1) || !(error >= 0 && error <= 1)) {
                    throw new NumberFormatException();
                }
                quantiles.put(q, error);
            } catch (NumberFormatException e) {
                throw ServingException.invalidArgument("metrics setting 'summary_quantiles' has '" + pair
                        + "' (expected: quantile:error, both from 0 to 1, such as 0.99:0.001)");
            }
        }
        return quantiles;
    }

    private static Map<Double, Double> standardQuantiles() {
        return parseQuantiles("0.5:0.05,0.9:0.01,0.95:0.001,0.99:0.001,0.999:0.001");
    }

    /** The upper bounds in nanoseconds. A model may define its own bounds, in milliseconds by metric family. */
    public static long[] firstResponseBounds(Map<String, List<Double>> own) {
        List<Double> millis = new ArrayList<>(own.getOrDefault(FIRST_RESPONSE, FIRST_RESPONSE_MS));
        return millis.stream().mapToLong(ms -> Math.round(ms * 1e6)).sorted().toArray();
    }
}
