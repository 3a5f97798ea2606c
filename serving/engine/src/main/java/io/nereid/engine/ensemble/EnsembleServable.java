// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.ensemble;

import io.nereid.base.Clock;
import io.nereid.base.ServingException;
import io.nereid.engine.servable.EngineServable;
import io.nereid.engine.statistics.ModelStatistics;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.ModelConfig;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A loaded ensemble. It has neither a queue nor memory of its own: the steps of a request wait and run in the
 * schedulers of the composing models. It refuses a request while one of those that always run is overloaded.
 * Thread-safe.
 */
final class EnsembleServable extends EngineServable {
    private final EnsembleGraph graph;
    private final ComposingModels members;
    private final Clock clock;

    /** Creates the servable for a validated configuration. */
    EnsembleServable(
            ServableId id,
            ModelConfig config,
            ModelStatistics statistics,
            EnsembleGraph graph,
            ComposingModels members,
            Clock clock) {
        super(id, config, statistics);
        this.graph = graph;
        this.members = members;
        this.clock = clock;
    }

    /** Shows a configuration with another maximum batch size, which limits the requests from now on. */
    void configure(ModelConfig next) {
        config(next);
    }

    @Override
    public long memoryBytes() {
        return 0;
    }

    /**
     * {@inheritDoc}
     *
     * @throws ServingException UNAVAILABLE when one of the models is overloaded: the steps of a request that has begun
     *     are not refused, so it must not begin
     */
    @Override
    public void submit(InferenceJob job) {
        if (members.refuse() && job.refusable()) {
            ServingException refusal = refusal(job, graph.plan(job.request().outputs()));
            if (refusal != null) {
                throw refusal;
            }
        }
        new EnsembleExecution(graph, members, job, statistics()::executed, clock).start();
    }

    @Override
    public @Nullable ServingException refusal(InferenceJob job) {
        return refusal(job, graph.plan(List.of()));
    }

    private @Nullable ServingException refusal(InferenceJob job, EnsembleGraph.Plan plan) {
        for (EnsembleGraph.Step step : graph.steps) {
            boolean runs = plan.pending[step.index()] >= 0 && step.when() < 0;
            ServingException refusal = runs ? members.refusal(step.model(), job) : null;
            if (refusal != null) {
                return refusal;
            }
        }
        return null;
    }

    @Override
    public int queued() {
        return 0;
    }

    @Override
    public void unload() {}
}
