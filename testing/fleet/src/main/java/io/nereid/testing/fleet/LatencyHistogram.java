// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.testing.fleet;

/** A histogram of nanoseconds with buckets of 2 %. Confined to one simulation. */
final class LatencyHistogram {
    private static final double STEP = Math.log(1.02);
    private static final double SMALLEST = 1e5;
    private final long[] counts = new long[1_200];
    private long total;

    void record(long nanos) {
        int bucket = nanos <= SMALLEST ? 0 : (int) (Math.log(nanos / SMALLEST) / STEP);
        counts[Math.min(counts.length - 1, bucket)]++;
        total++;
    }

    /** A quantile in milliseconds; 0 without values. */
    double millis(double quantile) {
        long rank = (long) Math.ceil(quantile * total);
        long seen = 0;
        for (int i = 0; i < counts.length; i++) {
            seen += counts[i];
            if (seen >= rank && total > 0) {
                return SMALLEST * Math.exp((i + 0.5) * STEP) / 1e6;
            }
        }
        return 0;
    }
}
