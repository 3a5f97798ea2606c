// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.observe.metrics;

/** The types of metric families. */
public enum MetricType {
    /** A number that only increases. */
    COUNTER,
    /** A number that increases and decreases. */
    GAUGE,
    /** Counts of values by upper bounds. */
    HISTOGRAM,
    /** Quantiles of values. */
    SUMMARY
}
