// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.objective;

import io.nereid.spi.config.parameters.LatencyObjective;

/**
 * What the scheduler of a model does at the moment to keep its latency objective. Immutable.
 *
 * @param objective the objective
 * @param latencyNanos the objective's percentile of the requests of the last window, in nanoseconds; 0 before the first one
 * @param delayNanos the longest wait of a batch for further requests, in nanoseconds
 * @param maxRows the largest batch that is formed of several requests
 * @param instances the instances that get runs
 * @param plannedShare the share of the objective that the expected time of an accepted request may take
 * @param refused requests that were refused because they would have missed the objective
 * @param changes how often delay, batch size or instances were changed
 */
public record ObjectiveStatus(
        LatencyObjective objective,
        long latencyNanos,
        long delayNanos,
        int maxRows,
        int instances,
        double plannedShare,
        long refused,
        long changes) {}
