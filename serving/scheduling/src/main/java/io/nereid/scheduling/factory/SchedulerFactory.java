// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.factory;

import io.nereid.base.ServingException;
import io.nereid.scheduling.BatchRunner;
import io.nereid.scheduling.InitialStateFiles;
import io.nereid.scheduling.Scheduler;
import io.nereid.scheduling.SchedulerOptions;
import io.nereid.scheduling.batcher.DynamicBatcher;
import io.nereid.scheduling.execution.DeviceExecutor;
import io.nereid.scheduling.sequence.SequenceBatcher;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.parameters.LatencyObjective;

/**
 * Creates schedulers. A package of its own, because it uses every implementation, and every implementation uses the
 * interface. Has no state.
 */
public final class SchedulerFactory {
    private SchedulerFactory() {}

    /**
     * Creates the scheduler that a configuration selects: the sequence batcher, the dynamic batcher, or the dynamic
     * batcher with one job at a time. {@code pool} provides threads, timer and clock and must outlive the scheduler.
     *
     * @throws ServingException when the configuration cannot be scheduled, such as INVALID_ARGUMENT for an instance
     *     that requires more of a rate limiter resource than exists
     */
    public static Scheduler create(
            ModelConfig config, BatchRunner runner, DeviceExecutor pool, SchedulerOptions options) {
        return create(config, runner, pool, options, InitialStateFiles.NONE);
    }

    /** As above, for a model whose sequences may start with states that are read from files. */
    public static Scheduler create(
            ModelConfig config,
            BatchRunner runner,
            DeviceExecutor pool,
            SchedulerOptions options,
            InitialStateFiles initialStates) {
        if (config.sequence() != null && LatencyObjective.of(config) != null) {
            throw ServingException.invalidArgument(
                    "parameter " + LatencyObjective.PARAMETER + " of model '" + config.name()
                            + "': a latency objective is not supported with sequence batching",
                    "remove it");
        }
        return config.sequence() != null
                ? new SequenceBatcher(config, runner, pool, options, initialStates)
                : new DynamicBatcher(config, runner, pool, options);
    }
}
