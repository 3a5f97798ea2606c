// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.perf.report;

/** The percentiles of the reports. Stateless. */
final class Percentiles {
    /** In tables and in machine-readable reports. */
    static final double[] SHOWN = {50, 90, 95, 99, 99.9};

    /** Of curves: at equal distances on an axis of nines. */
    static final double[] CURVE = {
        0, 25, 50, 75, 82, 90, 93.7, 95, 96.8, 98.4, 99, 99.37, 99.5, 99.68, 99.84, 99.9, 99.95, 99.98, 99.99, 99.995,
        99.999
    };

    private Percentiles() {}

    /** The name of a percentile in a machine-readable report: {@code p50}, {@code p999}. */
    static String key(double percentile) {
        String text = Double.toString(percentile);
        return "p" + (text.endsWith(".0") ? text.substring(0, text.length() - 2) : text.replace(".", ""));
    }
}
