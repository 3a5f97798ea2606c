// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.perf;

import io.nereid.app.perf.load.LoadLevel;
import io.nereid.app.perf.load.LoadPlan;
import io.nereid.app.perf.load.StabilityCheck;
import io.nereid.app.text.DurationConverter;
import io.nereid.base.Units;
import java.util.List;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/** The options that say which loads are measured, and how. Set by picocli; confined to one thread. */
@SuppressWarnings("NullAway.Init") // options are set by picocli
final class MeasurementOptions {
    private static final int WINDOWS = 3;

    /** When the requests of an open loop are due. */
    enum Arrival {
        CONSTANT,
        POISSON;

        @Override
        public String toString() {
            return this == CONSTANT ? "constant" : "poisson";
        }
    }

    @Option(
            names = {"--concurrency", "-c"},
            paramLabel = "LOADS",
            converter = LoadRange.Converter.class,
            description =
                    "Closed loop: requests at the same time, each followed by the next one. A list as 1,2,4, a range"
                            + " FROM:TO:STEP as 1:16:2, or FROM:TO:xFACTOR as 1:64:x2 (default: 1).")
    private @Nullable LoadRange concurrency;

    @Option(
            names = "--rate",
            paramLabel = "LOADS",
            converter = LoadRange.Converter.class,
            description =
                    "Open loop: requests per second, whatever the responses do; a list or range. Latency counts from"
                            + " the time at which a request is due.")
    private @Nullable LoadRange rate;

    @Option(
            names = "--arrival",
            paramLabel = "KIND",
            defaultValue = "constant",
            description = "Times of the requests of --rate: constant distances, or poisson, as of independent clients"
                    + " (default: ${DEFAULT-VALUE}).")
    private Arrival arrival;

    @Option(
            names = "--max-in-flight",
            paramLabel = "N",
            defaultValue = "1000",
            description = "Most requests in flight of --rate; further ones wait, which counts as latency (default:"
                    + " ${DEFAULT-VALUE}).")
    private int maxInFlight;

    @Option(
            names = "--warmup",
            paramLabel = "TIME",
            defaultValue = "1s",
            converter = DurationConverter.class,
            description = "Time before the measurement of each load, whose requests do not count (default:"
                    + " ${DEFAULT-VALUE}).")
    private String warmup;

    @Option(
            names = "--measurement-interval",
            paramLabel = "TIME",
            defaultValue = "5s",
            converter = DurationConverter.class,
            description = "Length of a window. A load is measured in windows until three in a row agree (default:"
                    + " ${DEFAULT-VALUE}).")
    private String interval;

    @Option(
            names = {"--stability-percentage", "-s"},
            paramLabel = "PERCENT",
            defaultValue = "10",
            description = "How far rate and latency of a window may be from the mean of the three (default:"
                    + " ${DEFAULT-VALUE}).")
    private double stability;

    @Option(
            names = "--percentile",
            paramLabel = "P",
            description = "The percentile of the latency that must agree; the mean by default.")
    private @Nullable Double percentile;

    @Option(
            names = "--max-trials",
            paramLabel = "N",
            defaultValue = "10",
            description = "Most windows of a load; a load that is not stable by then is reported as such (default:"
                    + " ${DEFAULT-VALUE}).")
    private int maxTrials;

    @Option(
            names = "--duration",
            paramLabel = "TIME",
            converter = DurationConverter.class,
            description = "Measure each load for this time, without the check of stability.")
    private @Nullable String duration;

    @Option(
            names = "--request-count",
            paramLabel = "N",
            description = "Measure each load for this number of requests, without the check of stability.")
    private @Nullable Long requestCount;

    /** Checks what one option alone does not show. */
    void check(OptionChecks checks) {
        if (concurrency != null && rate != null) {
            throw checks.wrong("both --concurrency and --rate are given (expected: one of them)");
        }
        if (concurrency != null
                && !(concurrency.isWhole() && concurrency.values().stream().allMatch(c -> c <= 10_000))) {
            throw checks.wrong("--concurrency " + concurrency.values() + " (expected: whole numbers up to 10000)");
        }
        if (rate != null && !rate.values().stream().allMatch(r -> r <= 1_000_000)) {
            throw checks.wrong("--rate " + rate.values() + " (expected: at most 1000000)");
        }
        checks.within("--max-in-flight", maxInFlight, 1, 100_000);
        checks.within("--max-trials", maxTrials, WINDOWS, 10_000);
        checks.above("--stability-percentage", stability, 0);
        if (percentile != null && !(percentile > 0 && percentile < 100)) {
            throw checks.wrong("--percentile " + percentile + " (expected: between 0 and 100)");
        }
        positive(checks, "--measurement-interval", interval);
        if (requestCount != null) {
            checks.within("--request-count", requestCount, 1, 1_000_000_000);
        }
        if (duration != null && requestCount != null) {
            throw checks.wrong("both --duration and --request-count are given (expected: one of them)");
        }
        if (duration != null) {
            positive(checks, "--duration", duration);
        }
    }

    private static void positive(OptionChecks checks, String option, String value) {
        if (Units.duration(value).isZero()) {
            throw checks.wrong(option + " " + value + " (expected: more than 0)");
        }
    }

    /** The loads in the order of their measurement. */
    List<LoadLevel> levels() {
        LoadRange given = rate != null ? rate : concurrency;
        List<Double> values = given == null ? List.of(1.0) : given.values();
        return values.stream().map(value -> new LoadLevel(rate != null, value)).toList();
    }

    /** The most requests in flight of any load. */
    int mostInFlight() {
        return rate != null
                ? maxInFlight
                : (int) levels().stream().mapToDouble(LoadLevel::value).max().orElse(1);
    }

    LoadPlan plan(long seed) {
        return new LoadPlan(
                Units.duration(warmup).toNanos(),
                Units.duration(interval).toNanos(),
                maxTrials,
                duration == null ? null : Units.duration(duration).toNanos(),
                requestCount,
                new StabilityCheck(stability, WINDOWS),
                percentile == null ? 0 : percentile,
                arrival == Arrival.POISSON,
                seed,
                maxInFlight);
    }
}
