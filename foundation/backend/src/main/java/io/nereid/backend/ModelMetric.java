// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backend;

import java.util.List;
import java.util.Map;

/**
 * A metric that a model reports itself, for the Prometheus endpoint. Immutable.
 *
 * <pre>{@code
 * new ModelMetric("my_cache_hits", ModelMetric.Kind.COUNTER, "Hits of the tokenizer cache",
 *         List.of(new ModelMetric.Sample(Map.of("model", "bert"), 17)));
 * }</pre>
 *
 * @param name a valid Prometheus name: letters, digits, {@code _} and {@code :}
 * @param kind the metric's type
 * @param help one line of description
 * @param samples one for each combination of labels
 */
public record ModelMetric(String name, Kind kind, String help, List<Sample> samples) {
    /** The types of Prometheus metrics that models may report. */
    public enum Kind {
        COUNTER,
        GAUGE,
        HISTOGRAM
    }

    /**
     * The value of a metric for one combination of labels. Immutable; nothing changes the arrays.
     *
     * @param labels label values by name
     * @param value the value of a counter or a gauge; the sum of the observed values of a histogram
     * @param bounds the upper bounds of a histogram's buckets, ascending, without the last one, which is infinite; empty
     *     for a counter or a gauge
     * @param counts the observed values in each bucket alone, one more than bounds; empty for a counter or a gauge
     */
    public record Sample(Map<String, String> labels, double value, double[] bounds, long[] counts) {
        /** A sample of a counter or a gauge. */
        public Sample(Map<String, String> labels, double value) {
            this(labels, value, new double[0], new long[0]);
        }
    }
}
