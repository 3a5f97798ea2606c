// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.embedded.micrometer;

import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.FunctionTimer;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tags;
import io.micrometer.core.instrument.binder.MeterBinder;
import io.nereid.base.Clock;
import io.nereid.base.Threads;
import io.nereid.embedded.Nereid;
import io.nereid.observe.ModelStatisticsSnapshot;
import io.nereid.observe.ModelStatisticsSnapshot.Total;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.function.ToDoubleFunction;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Shows the counters of embedded models in a Micrometer registry. Meters of a version come when it is loaded and go when it is
 * unloaded, within a second. Thread-safe; requests do not pass through it.
 *
 * <p>Each meter has the tags {@code model} and {@code version}:
 *
 * <ul>
 *   <li>{@code nereid.requests} with {@code outcome} {@code success} or {@code error}: requests, and their time
 *   <li>{@code nereid.queue}: requests that have left the queue, and the time in it
 *   <li>{@code nereid.compute}: runs of the model, and their time
 *   <li>{@code nereid.inferences}: rows that were computed
 *   <li>{@code nereid.cache.hits}: requests that the response cache answered
 *   <li>{@code nereid.waiting}, without {@code version}: requests that wait now
 * </ul>
 *
 * <pre>{@code
 * try (Nereid nereid = Nereid.builder().repository(models).build();
 *         NereidMetrics metrics = new NereidMetrics(nereid)) {
 *     metrics.bindTo(registry);
 * }
 * }</pre>
 */
public final class NereidMetrics implements MeterBinder, AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(NereidMetrics.class);

    /** A reading of the counters is shared by the meters that are read together. */
    private static final long FRESH_NANOS = Duration.ofMillis(500).toNanos();

    private record Version(String model, long version) {}

    private final Nereid nereid;
    private final Clock clock = Clock.system();
    private final ScheduledThreadPoolExecutor timer = Threads.timer("nereid-metrics");
    private final List<Registered> registries = new ArrayList<>();
    private Map<Version, ModelStatisticsSnapshot> read = Map.of();
    private long readAt;

    private record Registered(MeterRegistry registry, Map<Version, List<Meter>> meters) {}

    /** Creates metrics without a registry. */
    public NereidMetrics(Nereid nereid) {
        this.nereid = nereid;
        Object unused = timer.scheduleWithFixedDelay(this::update, 1, 1, TimeUnit.SECONDS);
    }

    /** Adds the meters of all versions, now and from now on, to a registry. */
    @Override
    public synchronized void bindTo(MeterRegistry registry) {
        registries.add(new Registered(registry, new HashMap<>()));
        readAt = 0;
        follow();
    }

    private synchronized void update() {
        try {
            follow();
        } catch (RuntimeException e) {
            LOG.error("the meters could not follow the models", e);
        }
    }

    private void follow() {
        Set<Version> served = new HashSet<>(snapshots().keySet());
        for (Registered one : registries) {
            one.meters.entrySet().removeIf(entry -> {
                if (served.contains(entry.getKey())) {
                    return false;
                }
                entry.getValue().forEach(one.registry::remove);
                return true;
            });
            for (Version version : served) {
                one.meters.computeIfAbsent(version, v -> register(one.registry, v));
            }
        }
    }

    private synchronized Map<Version, ModelStatisticsSnapshot> snapshots() {
        long now = clock.nanos();
        if (readAt == 0 || now - readAt > FRESH_NANOS) {
            Map<Version, ModelStatisticsSnapshot> all = new HashMap<>();
            for (ModelStatisticsSnapshot one : nereid.statistics()) {
                all.put(new Version(one.model(), one.version()), one);
            }
            read = all;
            readAt = now;
        }
        return read;
    }

    private double value(Version version, ToDoubleFunction<ModelStatisticsSnapshot> of) {
        ModelStatisticsSnapshot one = snapshots().get(version);
        return one == null ? 0 : of.applyAsDouble(one);
    }

    private List<Meter> register(MeterRegistry registry, Version of) {
        Tags tags = Tags.of("model", of.model, "version", Long.toString(of.version));
        List<Meter> meters = new ArrayList<>();
        meters.add(
                timer(registry, "nereid.requests", "Requests", tags.and("outcome", "success"), of, s -> s.success()));
        meters.add(timer(registry, "nereid.requests", "Requests", tags.and("outcome", "error"), of, s -> s.failure()));
        meters.add(timer(registry, "nereid.queue", "Requests that have left the queue", tags, of, s -> s.queue()));
        meters.add(timer(
                registry,
                "nereid.compute",
                "Runs of the model",
                tags,
                of,
                s -> new Total(s.executions(), s.computeInfer().nanos())));
        meters.add(FunctionCounter.builder(
                        "nereid.inferences", this, m -> m.value(of, ModelStatisticsSnapshot::inferences))
                .description("Rows that were computed")
                .tags(tags)
                .register(registry));
        meters.add(FunctionCounter.builder(
                        "nereid.cache.hits",
                        this,
                        m -> m.value(of, s -> s.cacheHit().count()))
                .description("Requests that the response cache answered")
                .tags(tags)
                .register(registry));
        meters.add(Gauge.builder("nereid.waiting", nereid, n -> n.waiting().getOrDefault(of.model, 0L))
                .description("Requests that wait")
                .tags("model", of.model)
                .register(registry));
        return meters;
    }

    private Meter timer(
            MeterRegistry registry,
            String name,
            String description,
            Tags tags,
            Version of,
            Function<ModelStatisticsSnapshot, Total> total) {
        return FunctionTimer.builder(
                        name,
                        this,
                        m -> (long) m.value(of, s -> total.apply(s).count()),
                        m -> m.value(of, s -> total.apply(s).nanos()),
                        TimeUnit.NANOSECONDS)
                .description(description)
                .tags(tags)
                .register(registry);
    }

    /** Removes the meters. */
    @Override
    public synchronized void close() {
        timer.shutdownNow();
        for (Registered one : registries) {
            one.meters.values().forEach(meters -> meters.forEach(one.registry::remove));
        }
        registries.clear();
    }
}
