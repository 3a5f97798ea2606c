// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.perf.load;

import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import org.HdrHistogram.ConcurrentHistogram;
import org.HdrHistogram.Histogram;

/**
 * The requests that were due in an interval: all of them count, also those whose responses come after it. The rate of an interval
 * is that of the responses received in it. Thread-safe.
 */
final class MeasurementWindow {
    /** Latencies have this many significant digits. */
    static final int DIGITS = 3;

    private static final long LONGEST = 3_600_000_000_000L;

    private final Histogram latencies = new ConcurrentHistogram(LONGEST, DIGITS);
    private final Histogram delays = new ConcurrentHistogram(LONGEST, DIGITS);
    private final LongAdder failed = new LongAdder();
    /** Requests that have begun and not ended. */
    private final AtomicLong unfinished = new AtomicLong();

    void begin() {
        unfinished.incrementAndGet();
    }

    /** Takes back {@link #begin} of a request that belongs to another window. */
    void leave() {
        unfinished.decrementAndGet();
    }

    void success(long latencyNanos) {
        latencies.recordValue(clamp(latencyNanos));
        unfinished.decrementAndGet();
    }

    void failure() {
        failed.increment();
        unfinished.decrementAndGet();
    }

    /** Records how much later than due a request was sent. */
    void delayed(long nanos) {
        delays.recordValue(clamp(nanos));
    }

    private static long clamp(long nanos) {
        return Math.max(0, Math.min(nanos, LONGEST));
    }

    boolean finished() {
        return unfinished.get() == 0;
    }

    long unfinished() {
        return unfinished.get();
    }

    long failed() {
        return failed.sum();
    }

    /** Latencies of the successful requests in nanoseconds; to be read once {@link #finished}, or when the load has stopped. */
    Histogram latencies() {
        return latencies;
    }

    /** How much later than due the requests of an open loop were sent, in nanoseconds. */
    Histogram delays() {
        return delays;
    }
}
