// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.autoscaling;

import java.time.Duration;

/** Settings for tests; a test sets the ones that it is about by name. Confined to one test. */
final class TestSettings {
    static final long SECOND = 1_000_000_000L;

    int min;
    int max;
    ScalingSettings.Metric metric = ScalingSettings.Metric.CONCURRENCY;
    double target = 70;
    double total = 100;
    double burst = 211;
    Duration window = Duration.ofSeconds(60);
    Duration panicWindow = Duration.ofSeconds(6);
    double panicThreshold = 2;
    double up = 1000;
    double down = 2;
    boolean toZero = true;
    Duration grace = Duration.ofSeconds(30);
    Duration retention = Duration.ZERO;
    Duration delay = Duration.ZERO;
    double activatorCapacity = 100;
    int initial = 1;
    int activation;
    TimeWindow.Aggregation aggregation = TimeWindow.Aggregation.LINEAR;
    Duration deadline = Duration.ofSeconds(600);
    int containerConcurrency;

    static TestSettings defaults() {
        return new TestSettings();
    }

    ScalingSettings build() {
        return new ScalingSettings(
                min,
                max,
                metric,
                target,
                total,
                burst,
                window,
                panicWindow,
                panicThreshold,
                up,
                down,
                toZero,
                grace,
                retention,
                delay,
                activatorCapacity,
                initial,
                activation,
                aggregation,
                deadline,
                containerConcurrency);
    }
}
