// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.pool;

import io.nereid.control.placement.PoolScaler;
import java.time.Duration;

/**
 * What a pod of a pool offers, and how many pods there may be. Immutable.
 *
 * @param memoryBytes for models
 * @param workers requests that it computes at once
 * @param min the fewest pods
 * @param max the most pods
 */
record PoolSize(long memoryBytes, int workers, int min, int max) {
    private static final double UTILISATION = 0.6;
    private static final double FILL = 0.85;

    /** The settings of the pool's scaling: windows as in Knative's autoscaler. */
    PoolScaler.Settings scaling() {
        return new PoolScaler.Settings(
                min,
                max,
                workers,
                memoryBytes,
                UTILISATION,
                FILL,
                Duration.ofSeconds(60),
                Duration.ofSeconds(6),
                Duration.ofMinutes(5));
    }
}
