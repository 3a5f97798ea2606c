// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.autoscaling;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;

/**
 * Measures the requests in flight of one revision, weighted by time, and how many come. Thread-safe without locks: the
 * request path writes to a stripe of its own thread; {@link #report} is for one thread at a time.
 *
 * <p>Count every request that is for the revision from its arrival to its answer, held ones too: what waits is what more
 * replicas are for. Times are nanoseconds of {@code Clock.nanos()}; a stripe never goes back in time, so that clocks read
 * a moment earlier by another thread do no harm.
 */
public final class ConcurrencyMeter {
    /**
     * One period.
     *
     * @param concurrency the mean number of requests in flight
     * @param requestsPerSecond how many arrived each second
     * @param requests how many arrived
     * @param inFlight how many are in flight at its end
     */
    public record Report(double concurrency, double requestsPerSecond, long requests, long inFlight) {}

    /*
     * A stripe's state is one word: its requests in flight in the upper 24 bits (it may be negative where requests end on
     * other threads than they began on; only the sum of all stripes means anything) and the time of its last change in the
     * lower 40 bits, in units of 1024 ns modulo 2^40. Whoever changes the state adds what the old one was worth to the area.
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

    /** A meter with a stripe for each processor. */
    public ConcurrencyMeter(long now) {
        this(now, Runtime.getRuntime().availableProcessors());
    }

    /** A meter with so many stripes, rounded up to a power of two and 64 at most. */
    ConcurrencyMeter(long now, int stripes) {
        int count = Integer.highestOneBit(Math.max(1, Math.min(64, stripes) * 2 - 1));
        this.mask = count - 1;
        // One stride of space at either end keeps neighbours on the heap off the stripes' cache lines.
        this.words = new long[(count + 2) * STRIDE];
        this.reportedAt = now;
        long start = units(now);
        for (int i = 0; i < count; i++) {
            words[(i + 1) * STRIDE] = start;
        }
    }

    /** A request has arrived. */
    public void begin(long now) {
        int at = stripe();
        change(at, now, 1L << TIME_BITS);
        WORDS.getAndAdd(words, at + REQUESTS, 1L);
    }

    /** A request that {@linkplain #begin began} has its answer, or will have none. */
    public void end(long now) {
        change(stripe(), now, -1L << TIME_BITS);
    }

    /** How many requests are in flight. */
    public long inFlight() {
        long sum = 0;
        for (int i = 0; i <= mask; i++) {
            sum += (long) WORDS.getVolatile(words, (i + 1) * STRIDE) >> TIME_BITS;
        }
        return Math.max(0, sum);
    }

    /** How many requests have arrived since the meter was made. */
    public long requests() {
        long sum = 0;
        for (int i = 0; i <= mask; i++) {
            sum += (long) WORDS.getVolatile(words, (i + 1) * STRIDE + REQUESTS);
        }
        return sum;
    }

    /**
     * What was measured since the last report; call it every second, also while nothing comes. A report of no time at all
     * has the requests in flight as its concurrency, and leaves the requests to the next.
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
        // A segment that a writer has not added yet comes with the next report; the sum can lie a little below zero
        // then.
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
