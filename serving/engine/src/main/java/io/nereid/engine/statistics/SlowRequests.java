// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.statistics;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.base.ServingException;
import io.nereid.observe.RequestSamples;
import io.nereid.observe.RequestSamples.FailedRequest;
import io.nereid.observe.RequestSamples.SlowRequest;
import io.nereid.spi.ServableId;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Deque;
import java.util.List;
import java.util.PriorityQueue;

/**
 * Keeps samples of a version's slow and failed requests. A request is slow when it takes longer than a fixed time, or,
 * without one, longer than the bucket of the histogram that has the 99th percentile of the last window: at least
 * {@link #WINDOW_NANOS} and {@link #WINDOW_REQUESTS} requests. A request that is not slow costs two comparisons.
 * Thread-safe.
 */
public final class SlowRequests {
    /** The most samples of each list of the latest ones. */
    static final int LATEST = 32;
    /** The most samples of the slowest ones. */
    static final int SLOWEST = 16;
    /** The most characters of an error's message. */
    static final int MESSAGE = 200;

    static final long WINDOW_NANOS = 10_000_000_000L;
    static final long WINDOW_REQUESTS = 100;

    private final Histogram requests;
    private final boolean fixed;
    /** Neither volatile nor written under the lock: any recent value suffices. */
    private long threshold;

    private long windowEnd;

    @GuardedBy("this") private final Deque<SlowRequest> slow = new ArrayDeque<>(0);

    @GuardedBy("this") private final PriorityQueue<SlowRequest> slowest =
            new PriorityQueue<>(1, Comparator.comparingLong(SlowRequest::totalNanos));

    @GuardedBy("this") private final Deque<FailedRequest> failed = new ArrayDeque<>(0);

    @GuardedBy("this") private final long[] windowStart;

    /**
     * Creates an empty store.
     *
     * @param requests the times of all requests
     * @param fixedNanos the time from which on a request is slow; 0 for one that follows the requests
     * @param now the current time
     */
    SlowRequests(Histogram requests, long fixedNanos, long now) {
        this.requests = requests;
        this.fixed = fixedNanos > 0;
        this.threshold = fixed ? fixedNanos : Long.MAX_VALUE;
        this.windowEnd = fixed ? Long.MAX_VALUE : now + WINDOW_NANOS;
        this.windowStart = new long[requests.bounds().length + 1];
    }

    /** Whether {@link #add} is to be called for a request that took this long. */
    boolean noteworthy(long now, long nanos) {
        return nanos >= threshold || (now - windowEnd >= 0 && !fixed);
    }

    /** Keeps a request if it is slow, and begins a new window when the last one has ended. */
    synchronized void add(long now, SlowRequest request) {
        if (request.totalNanos() >= threshold) {
            push(slow, request);
            slowest.add(request);
            if (slowest.size() > SLOWEST) {
                slowest.poll();
            }
        }
        if (!fixed && now - windowEnd >= 0) {
            newWindow(now);
        }
    }

    @GuardedBy("this") private void newWindow(long now) {
        long[] counts = new long[windowStart.length];
        long all = 0;
        for (int i = 0; i < counts.length; i++) {
            counts[i] = requests.count(i);
            all += counts[i] - windowStart[i];
        }
        if (all < WINDOW_REQUESTS) {
            // Waits for more requests, and looks again in a tenth of the time.
            windowEnd = now + WINDOW_NANOS / 10;
            return;
        }
        long[] bounds = requests.bounds();
        long below = 0;
        int at = 0;
        while (at < bounds.length - 1) {
            below += counts[at] - windowStart[at];
            if (below * 100 >= all * 99) {
                break;
            }
            at++;
        }
        System.arraycopy(counts, 0, windowStart, 0, counts.length);
        threshold = bounds[at];
        windowEnd = now + WINDOW_NANOS;
    }

    /** Keeps a failed request. */
    synchronized void add(long endMillis, long nanos, String id, ServingException e) {
        String message = String.valueOf(e.getMessage());
        push(
                failed,
                new FailedRequest(
                        id,
                        endMillis,
                        nanos,
                        e.code().name(),
                        message.length() <= MESSAGE ? message : message.substring(0, MESSAGE - 1) + "…"));
    }

    private static <T> void push(Deque<T> latest, T sample) {
        if (latest.size() == LATEST) {
            latest.removeLast();
        }
        latest.addFirst(sample);
    }

    /** The samples of a version. */
    public synchronized RequestSamples samples(ServableId id) {
        List<SlowRequest> ranked = new ArrayList<>(slowest);
        ranked.sort(Comparator.comparingLong(SlowRequest::totalNanos).reversed());
        return new RequestSamples(
                id.model(), id.version(), threshold, List.copyOf(slow), List.copyOf(ranked), List.copyOf(failed));
    }
}
