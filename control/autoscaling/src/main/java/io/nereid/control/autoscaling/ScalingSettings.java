// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.autoscaling;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The autoscaling settings of one revision, with Knative's names and defaults. Immutable.
 *
 * <pre>{@code
 * ScalingSettings settings = ScalingSettings.of(
 *         1, 5, "concurrency", 10.0, 0, Map.of("autoscaling.knative.dev/window", "30s"));
 * }</pre>
 *
 * @param min minimum of replicas; 0 allows to scale to zero
 * @param max maximum of replicas; 0 for no limit
 * @param metric the metric to scale by
 * @param target the desired metric value of one replica: {@code total} times the utilisation, at least 0.01
 * @param total the metric value that one replica can carry
 * @param targetBurstCapacity the burst beyond the present load that must not wait in the queue; 0 for no burst, -1 for
 *     any burst
 * @param stableWindow the window that the metric is averaged over
 * @param panicWindow the shorter window that notices bursts
 * @param panicThreshold panic mode begins when the desired replicas are this multiple of the ready ones
 * @param maxScaleUpRate the greatest growth in one decision, as a factor
 * @param maxScaleDownRate the greatest reduction in one decision, as a divisor
 * @param scaleToZero whether zero replicas are allowed at all
 * @param scaleToZeroGracePeriod the longest time that the last replica stays after the revision has become inactive
 * @param scaleToZeroPodRetentionPeriod the shortest time that it stays
 * @param scaleDownDelay how long fewer replicas must be desired before the number is reduced
 * @param activatorCapacity the number of requests that one activator can hold; decides the number of activators
 * @param initialScale replicas of a new revision, at most {@code max}
 * @param activationScale the minimum of replicas unless it is zero; 0 or 1 for no minimum
 * @param aggregation how the windows weight their seconds
 * @param progressDeadline how long a start may take
 * @param containerConcurrency most requests at once in one replica; 0 for no limit
 */
public record ScalingSettings(
        int min,
        int max,
        Metric metric,
        double target,
        double total,
        double targetBurstCapacity,
        Duration stableWindow,
        Duration panicWindow,
        double panicThreshold,
        double maxScaleUpRate,
        double maxScaleDownRate,
        boolean scaleToZero,
        Duration scaleToZeroGracePeriod,
        Duration scaleToZeroPodRetentionPeriod,
        Duration scaleDownDelay,
        double activatorCapacity,
        int initialScale,
        int activationScale,
        TimeWindow.Aggregation aggregation,
        Duration progressDeadline,
        int containerConcurrency) {
    /** The metric to scale by. */
    public enum Metric {
        /** Requests in flight. */
        CONCURRENCY,
        /** Arriving requests per second. */
        RPS
    }

    /**
     * Builds the settings from a component's specification and its annotations, with Knative's defaults.
     *
     * @param min minimum of replicas
     * @param max maximum of replicas; 0 for no limit
     * @param metric {@code concurrency} or {@code rps}; an annotation overrides {@code concurrency}, the default
     * @param target the metric value for each replica; null for the annotation's value, or the default
     * @param containerConcurrency most requests at once in one replica; 0 for no limit
     * @param annotations {@code autoscaling.knative.dev/…} by name, with the prefix or without, in kebab-case or
     *     camelCase; those of other prefixes are ignored, and unknown ones are reported by {@link #warnings}
     * @throws io.nereid.base.ServingException INVALID_ARGUMENT with every problem, a line each
     */
    public static ScalingSettings of(
            int min,
            int max,
            String metric,
            @Nullable Double target,
            int containerConcurrency,
            Map<String, String> annotations) {
        return of(Map.of(), min, max, metric, target, containerConcurrency, annotations);
    }

    /**
     * Builds the settings as {@link #of(int, int, String, Double, int, Map)} does, with defaults of the installation.
     *
     * @param config the keys of {@code config-autoscaler}, such as {@code stable-window}
     */
    public static ScalingSettings of(
            Map<String, String> config,
            int min,
            int max,
            String metric,
            @Nullable Double target,
            int containerConcurrency,
            Map<String, String> annotations) {
        return new ScalingSettingsReader(config, annotations).read(min, max, metric, target, containerConcurrency);
    }

    /** Warnings about annotations that have no effect: unknown names, and those that the specification overrides. */
    public static List<String> warnings(Map<String, String> annotations) {
        return new ScalingSettingsReader(Map.of(), annotations).warnings();
    }

    int stableSeconds() {
        return (int) stableWindow.toSeconds();
    }

    int panicSeconds() {
        return (int) panicWindow.toSeconds();
    }
}
