// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.autoscaling;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;

/**
 * Measures the time-weighted concurrency of one revision and its rate of requests. Thread-safe without locks: the
 * request path writes to a stripe of its own thread; {@link #report} is for one thread at a time.
 *
 * <p>Count every request of the revision from its arrival to its response, held requests included: waiting requests are
 * the reason for more replicas. Times are nanoseconds of {@code Clock.nanos()}; a stripe never goes back in time, so a
 * clock that another thread read a moment earlier does no harm.
 *
 * <pre>{@code
 * meter.begin(clock.nanos());   // for each request
 * try {
 *     handle(request);
 * } finally {
 *     meter.end(clock.nanos());
 * }
 * ConcurrencyMeter.Report report = meter.report(clock.nanos());   // every second, from one thread
 * }</pre>
 */
public final class ConcurrencyMeter {
    /**
     * The measurements of one period.
     *
     * @param concurrency the mean number of requests in flight
     * @param requestsPerSecond the rate of arriving requests
     * @param requests the number of requests that arrived
     * @param inFlight the number of requests in flight at the end of the period
     */
    public record Report(double concurrency, double requestsPerSecond, long requests, long inFlight) {}

    /*
     * A stripe's state is one word: its requests in flight in the upper 24 bits (it may be negative where requests end
     * on other threads than they began on; only the sum of all stripes means anything) and the time of its last change
     * in the lower 40 bits, in units of 1024 ns modulo 2^40. The thread that changes the state adds (old requests in
     * flight) x (elapsed units) to the stripe's area, the integral of the requests in flight over time. The mean
     * concurrency of a period is the growth of all areas divided by the length of the period.
     */
    private static final int TIME_BITS = 40;
    private static final int UNIT_BITS = 10;
    private static final long TIME_MASK = (1L << TIME_BITS) - 1;
    private static final double UNITS_PER_SECOND = 1e9 / (1 << UNIT_BITS);
    private static final int STRIDE = 16;
    private static final int AREA = 1;
    private static final int REQUESTS = 2;
    private static final VarHandle WORDS = MethodHandles.arrayElementVarHandle(long[].class);

    private final int mask;
    private final long[] words;
    private long reportedAt;
    private long reportedArea;
    private long reportedRequests;

    /** Creates a meter with one stripe for each processor. */
    public ConcurrencyMeter(long now) {
        this(now, Runtime.getRuntime().availableProcessors());
    }

    /** Creates a meter with that many stripes, rounded up to a power of two, at most 64. */
    ConcurrencyMeter(long now, int stripes) {
        int count = Integer.highestOneBit(Math.max(1, Math.min(64, stripes) * 2 - 1));
        this.mask = count - 1;
        // One stride of padding at either end keeps other heap objects off the stripes' cache lines.
        this.words = new long[(count + 2) * STRIDE];
        this.reportedAt = now;
        long start = units(now);
        for (int i = 0; i < count; i++) {
            words[(i + 1) * STRIDE] = start;
        }
    }

    /** Counts a request that has arrived. */
    public void begin(long now) {
        int at = stripe();
        change(at, now, 1L << TIME_BITS);
        WORDS.getAndAdd(words, at + REQUESTS, 1L);
    }

    /** Counts the end, successful or not, of a request that {@link #begin} has counted. Any thread may call it. */
    public void end(long now) {
        change(stripe(), now, -1L << TIME_BITS);
    }

    /** The number of requests in flight. */
    public long inFlight() {
        long sum = 0;
        for (int i = 0; i <= mask; i++) {
            sum += (long) WORDS.getVolatile(words, (i + 1) * STRIDE) >> TIME_BITS;
        }
        return Math.max(0, sum);
    }

    /** The number of requests that have arrived since the meter was created. */
    public long requests() {
        long sum = 0;
        for (int i = 0; i <= mask; i++) {
            sum += (long) WORDS.getVolatile(words, (i + 1) * STRIDE + REQUESTS);
        }
        return sum;
    }

    /**
     * Returns the measurements since the last report. Call it every second, also without traffic. A report over no time
     * has the requests in flight as its concurrency and leaves the arrived requests to the next report.
     */
    public Report report(long now) {
        long inFlight = 0;
        long area = 0;
        long requests = 0;
        for (int i = 0; i <= mask; i++) {
            int at = (i + 1) * STRIDE;
            inFlight += change(at, now, 0) >> TIME_BITS;
            area += (long) WORDS.getVolatile(words, at + AREA);
            requests += (long) WORDS.getVolatile(words, at + REQUESTS);
        }
        inFlight = Math.max(0, inFlight);
        double seconds = (now - reportedAt) / 1e9;
        if (seconds <= 0) {
            return new Report(inFlight, 0, 0, inFlight);
        }
        // A writer changes the state first and adds to the area afterwards, so a segment may come with the next report
        // only. The difference can then be slightly below zero.
        double concurrency = Math.max(0, (area - reportedArea) / UNITS_PER_SECOND / seconds);
        long arrived = requests - reportedRequests;
        reportedAt = now;
        reportedArea = area;
        reportedRequests = requests;
        return new Report(concurrency, arrived / seconds, arrived, inFlight);
    }

    /** Moves a stripe to {@code now}, adds to its requests in flight, and returns its new state. */
    private long change(int at, long now, long delta) {
        long time = units(now);
        while (true) {
            long old = (long) WORDS.getVolatile(words, at);
            // Sign-extended difference modulo 2^40: negative when this thread read its clock before the last one did.
            long elapsed = ((time - old) << (64 - TIME_BITS)) >> (64 - TIME_BITS);
            long state = (elapsed > 0 ? (old & ~TIME_MASK) | time : old) + delta;
            if (WORDS.compareAndSet(words, at, old, state)) {
                long worth = elapsed > 0 ? (old >> TIME_BITS) * elapsed : 0;
                if (worth != 0) {
                    WORDS.getAndAdd(words, at + AREA, worth);
                }
                return state;
            }
        }
    }

    private static long units(long nanos) {
        return (nanos >> UNIT_BITS) & TIME_MASK;
    }

    private int stripe() {
        return (((int) Thread.currentThread().getId() & mask) + 1) * STRIDE;
    }
}
