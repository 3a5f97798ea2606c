// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine;

import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelSource;
import io.nereid.base.Clock;
import io.nereid.scheduling.DevicePool;
import io.nereid.scheduling.RateLimiter;
import io.nereid.scheduling.SchedulerOptions;
import io.nereid.spi.ModelConfig;
import io.nereid.spi.ServableId;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** Makes servables on the one device pool, and knows those whose figures are shown. Thread-safe. */
final class Servables {
    private final DevicePool pool;
    private final EngineOptions options;
    private final SchedulerOptions scheduling;
    private final Clock clock;
    private final Set<EngineServable> shown = ConcurrentHashMap.newKeySet();

    Servables(DevicePool pool, EngineOptions options, Clock clock) {
        this.pool = pool;
        this.options = options;
        this.clock = clock;
        List<RateLimiter.Total> totals = options.rateLimits();
        this.scheduling = new SchedulerOptions(options.maxQueueSize(), SchedulerOptions.Inline.MEASURED)
                .withLimiter(totals == null ? null : new RateLimiter(totals))
                .delayed(options.delays().scheduler(), options.delays().backlog());
    }

    /** Puts a loaded model behind its queue. On an exception the model stays with the caller. */
    ModelServable make(ModelSource source, BackendModel model) {
        return ModelServable.of(
                source.id(),
                model,
                statistics(source.id(), model.config()),
                pool,
                scheduling.withStrategy(StrategyJar.find(source, model.config())),
                clock);
    }

    /** Empty figures for a version. */
    ModelStatistics statistics(ServableId id, ModelConfig config) {
        return new ModelStatistics(id, config, options.metrics(), clock);
    }

    /** A complete configuration with its document. */
    ModelConfig completed(ModelConfig config) {
        return config;
    }

    Clock clock() {
        return clock;
    }

    void show(EngineServable servable) {
        shown.add(servable);
    }

    void hide(EngineServable servable) {
        shown.remove(servable);
    }

    /** By name and version. */
    Collection<EngineServable> shown() {
        List<EngineServable> all = new ArrayList<>(shown);
        all.sort(Comparator.comparing(s -> s.metadata().id()));
        return all;
    }
}
