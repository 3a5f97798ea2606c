// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.ensemble;

import io.nereid.base.Clock;
import io.nereid.engine.servable.EngineServable;
import io.nereid.engine.statistics.ModelStatistics;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.ModelConfig;

/**
 * A loaded ensemble. It has neither a queue nor memory of its own: the steps of a request wait and run in the
 * schedulers of the composing models. Thread-safe.
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

    @Override
    public long memoryBytes() {
        return 0;
    }

    @Override
    public void submit(InferenceJob job) {
        new EnsembleExecution(graph, members, job, statistics()::executed, clock).start();
    }

    @Override
    public int queued() {
        return 0;
    }

    @Override
    public void unload() {}
}
