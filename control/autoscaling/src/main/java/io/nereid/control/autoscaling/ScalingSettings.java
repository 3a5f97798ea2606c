// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.autoscaling;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * How one revision scales. Immutable.
 *
 * @param min fewest replicas; 0 may scale to zero
 * @param max most replicas; 0 for no limit
 * @param metric what is measured
 * @param target what one replica should carry: {@code total} times the utilisation, 0.01 at least
 * @param total what one replica can carry
 * @param targetBurstCapacity how much more than the present load must find room at once; 0 for none, -1 for any
 * @param stableWindow what the metric is averaged over
 * @param panicWindow the shorter window that notices bursts
 * @param panicThreshold how many times the ready replicas must be asked for to scale at once
 * @param maxScaleUpRate most growth in one decision, as a factor
 * @param maxScaleDownRate most shrinking in one decision, as a divisor
 * @param scaleToZero whether zero replicas are allowed at all
 * @param scaleToZeroGracePeriod most time that the last replica stays after the revision has become inactive
 * @param scaleToZeroPodRetentionPeriod least time that it stays
 * @param scaleDownDelay how long fewer replicas must be asked for
 * @param activatorCapacity how many requests one queue can hold, for the number of queues
 * @param initialScale replicas of a new revision, {@code max} at most
 * @param activationScale fewest replicas when there are any; 0 or 1 for no such rule
 * @param aggregation how the windows weigh their seconds
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
        MetricWindow.Aggregation aggregation,
        Duration progressDeadline,
        int containerConcurrency) {
    /** What is measured. */
    public enum Metric {
        /** Requests in flight. */
        CONCURRENCY,
        /** Requests that arrive in a second. */
        RPS
    }

    /**
     * Settings with the defaults and what a revision says.
     *
     * @param min fewest replicas
     * @param max most replicas; 0 for no limit
     * @param metric {@code concurrency} or {@code rps}; an annotation overrules {@code concurrency}, the default
     * @param target of the metric per replica; null for the annotation's, or the default
     * @param containerConcurrency most requests at once in one replica; 0 for no limit
     * @param annotations {@code autoscaling.knative.dev/…} by name, with the prefix or without, in kebab-case or camelCase;
     *     those of other prefixes are left alone, and unknown ones are in {@link #warnings}
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
     * As {@link #of(int, int, String, Double, int, Map)}, with other defaults.
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
        return new SettingsReader(config, annotations).read(min, max, metric, target, containerConcurrency);
    }

    /** Sentences about autoscaling annotations that change nothing: unknown names, and what the specification overrules. */
    public static List<String> warnings(Map<String, String> annotations) {
        return new SettingsReader(Map.of(), annotations).warnings();
    }

    /** Seconds of the stable window. */
    int stableSeconds() {
        return (int) stableWindow.toSeconds();
    }

    /** Seconds of the panic window. */
    int panicSeconds() {
        return (int) panicWindow.toSeconds();
    }
}
