// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.tune;

import io.nereid.app.perf.load.LoadLevel;
import io.nereid.app.perf.load.LoadMeasurement;
import io.nereid.app.perf.load.LoadPlan;
import io.nereid.app.perf.load.LoadResult;
import io.nereid.app.perf.load.LoadTarget;
import io.nereid.app.perf.load.LoadTimer;
import io.nereid.app.perf.load.StabilityCheck;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.config.parameters.LatencyObjective;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** Loads a model with each configuration that is measured, and sends it requests. Confined to one thread. */
final class LoadedVariants implements VariantTarget {
    /** A measurement is lengthened up to so many intervals when there are too few requests for the percentile. */
    private static final int MOST_INTERVALS = 4;

    /** The longest measurement of a model that has not answered at all: two minutes. */
    private static final long LONGEST_NANOS = 120_000_000_000L;

    private static final int WINDOWS = 3;

    /** So many requests of a measurement must be slower than its percentile to show it. */
    private static final double SLOWER = 5;

    private final TunedModel model;
    private final VariantConfig config;
    private final LoadTarget target;
    private final LatencyObjective objective;
    private final Timing timing;
    private final BooleanSupplier interrupted;
    private final Consumer<VariantResult> listener;
    private final LoadTimer timer = LoadTimer.system();
    private ConfigVariant loaded;
    private double lastRate;
    private int count;
    private long nanos;

    /**
     * Times of a measurement in nanoseconds.
     *
     * @param warmupNanos before it, whose requests do not count
     * @param intervalNanos its least length
     */
    record Timing(long warmupNanos, long intervalNanos, long seed) {}

    /** @param listener gets each result */
    LoadedVariants(
            TunedModel model,
            VariantConfig config,
            LoadTarget target,
            LatencyObjective objective,
            Timing timing,
            BooleanSupplier interrupted,
            Consumer<VariantResult> listener) {
        this.model = model;
        this.config = config;
        this.target = target;
        this.objective = objective;
        this.timing = timing;
        this.interrupted = interrupted;
        this.listener = listener;
        this.loaded = config.first();
    }

    @Override
    public @Nullable VariantResult measure(ConfigVariant variant, int concurrency) {
        if (interrupted.getAsBoolean()) {
            return null;
        }
        long began = timer.nanos();
        load(variant);
        LoadResult result = measure(concurrency, length());
        // Runs that are longer than the measurement: until one ends.
        for (long length = 4 * length();
                result != null && isEmpty(result) && length <= LONGEST_NANOS && !interrupted.getAsBoolean();
                length *= 4) {
            result = measure(concurrency, length);
        }
        if (result == null || interrupted.getAsBoolean()) {
            return null;
        }
        if (result.succeeded() == 0 && variant.equals(config.first())) {
            String reason = result.failures().isEmpty()
                    ? "no response came within its time"
                    : result.failures().keySet().iterator().next();
            throw ServingException.of(
                    ErrorCode.UNAVAILABLE,
                    "not one request succeeded with the stored configuration: " + reason,
                    "give inputs that the model takes, with --data or --shape; nereid perf tries them");
        }
        lastRate = result.rate();
        count++;
        nanos += timer.nanos() - began;
        VariantResult measured = new VariantResult(
                variant,
                concurrency,
                result.rate(),
                result.percentileMillis(objective.percentile()),
                result.failed() + result.unfinished());
        listener.accept(measured);
        return measured;
    }

    /** The time that a measurement takes, with the loading of the model; 0 before the first one. */
    long meanNanos() {
        return count == 0 ? 0 : nanos / count;
    }

    /** Gives the model a configuration, unless it has it. */
    void load(ConfigVariant variant) {
        if (!variant.equals(loaded)) {
            model.load(config.json(variant));
            loaded = variant;
        }
    }

    /** Gives the model its stored configuration. */
    void restore() {
        if (!loaded.equals(config.first())) {
            model.load(null);
            loaded = config.first();
        }
    }

    private @Nullable LoadResult measure(int concurrency, long length) {
        LoadPlan plan = new LoadPlan(
                timing.warmupNanos,
                timing.intervalNanos,
                WINDOWS,
                length,
                null,
                new StabilityCheck(10, WINDOWS),
                objective.percentile(),
                false,
                timing.seed,
                1);
        return new LoadMeasurement(target, plan, timer, interrupted).measure(new LoadLevel(false, concurrency));
    }

    /** Whether nothing ended while it was measured. The rate counts what ended, the latencies what began. */
    private static boolean isEmpty(LoadResult result) {
        return result.rate() == 0 && result.failed() + result.unfinished() == 0;
    }

    private long length() {
        double wanted = lastRate > 0 ? Math.ceil(SLOWER * 100 / (100 - objective.percentile())) / lastRate * 1e9 : 0;
        return (long) Math.min(MOST_INTERVALS * timing.intervalNanos, Math.max(timing.intervalNanos, wanted));
    }
}
