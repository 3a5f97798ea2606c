// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backend;

import java.util.List;
import java.util.Map;

/**
 * A figure of a model's own, for the page of metrics. Immutable.
 *
 * @param name as Prometheus takes it: letters, digits, {@code _} and {@code :}
 * @param help what it is, in one line
 * @param samples one for each combination of labels
 */
public record ModelMetric(String name, Kind kind, String help, List<Sample> samples) {
    /** How it moves. */
    public enum Kind {
        COUNTER,
        GAUGE,
        HISTOGRAM
    }

    /**
     * A value. Immutable by agreement: nobody changes the arrays.
     *
     * @param labels by name, in the order in which they are shown
     * @param value of a counter or a gauge; the sum of what was observed of a histogram
     * @param bounds of a histogram's buckets, ascending, without infinity; empty for others
     * @param counts of a histogram by bucket, each by itself, one more than bounds; empty for others
     */
    public record Sample(Map<String, String> labels, double value, double[] bounds, long[] counts) {
        /** Of a counter or a gauge. */
        public Sample(Map<String, String> labels, double value) {
            this(labels, value, new double[0], new long[0]);
        }
    }
}
