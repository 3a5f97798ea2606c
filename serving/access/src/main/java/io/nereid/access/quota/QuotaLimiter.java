// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.access.quota;

import io.nereid.access.config.Quota;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/**
 * Counts the use of one key or one model against its quota. Thread-safe, lock-free.
 */
final class QuotaLimiter {
    /** Why a request was refused: which limit, and after how many nanoseconds a try may succeed. Immutable. */
    record Refusal(String limit, long retryNanos) {}

    private static final long RETRY_CONCURRENT_NANOS = 1_000_000_000L;

    private final Quota quota;
    private final @Nullable TokenBucket requests;
    private final @Nullable TokenBucket bytes;
    private final AtomicInteger running = new AtomicInteger();

    QuotaLimiter(Quota quota, long nowNanos) {
        this.quota = quota;
        this.requests = quota.requestsPerSecond() > 0 ? new TokenBucket(quota.requestsPerSecond(), nowNanos) : null;
        this.bytes = quota.bytesPerSecond() > 0 ? new TokenBucket(quota.bytesPerSecond(), nowNanos) : null;
    }

    Quota quota() {
        return quota;
    }

    /** Whether the size of requests counts. */
    boolean countsBytes() {
        return bytes != null;
    }

    /** Requests in progress. */
    int running() {
        return running.get();
    }

    /** Begins a request, which {@link #end} ends. Returns null when it may begin, else the reason. */
    @Nullable Refusal begin(long size, long nowNanos) {
        int most = quota.concurrentRequests();
        if (running.incrementAndGet() > most && most > 0) {
            running.decrementAndGet();
            return new Refusal("concurrentRequests of " + most, RETRY_CONCURRENT_NANOS);
        }
        if (requests != null) {
            long wait = requests.take(1, nowNanos);
            if (wait > 0) {
                running.decrementAndGet();
                return new Refusal("requestsPerSecond of " + number(quota.requestsPerSecond()), wait);
            }
        }
        if (bytes != null) {
            long wait = bytes.take(size, nowNanos);
            if (wait > 0) {
                running.decrementAndGet();
                return new Refusal("bytesPerSecond of " + quota.bytesPerSecond(), wait);
            }
        }
        return null;
    }

    private static String number(double value) {
        return value == Math.rint(value) ? Long.toString((long) value) : Double.toString(value);
    }

    void end() {
        running.decrementAndGet();
    }
}
