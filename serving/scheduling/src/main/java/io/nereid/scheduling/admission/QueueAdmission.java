// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.admission;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.time.Duration;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/**
 * The admission of one queue: its policy, the number of requests that it has refused, and the messages about it. Guarded
 * by the queue's lock, except for {@link #refusal}, which has no state.
 */
public final class QueueAdmission {
    /** At most one message about the begin of a refusal in this time. */
    private static final long QUIET_NANOS = TimeUnit.MINUTES.toNanos(1);

    private final AdmissionPolicy policy;
    private final AtomicInteger refusing;
    private boolean refuses;
    private boolean closed;
    private boolean logged;
    private boolean everLogged;
    private long loggedAt;
    private long since;
    private long refused;

    QueueAdmission(AdmissionPolicy policy, AtomicInteger refusing) {
        this.policy = policy;
        this.refusing = refusing;
    }

    public AdmissionPolicy policy() {
        return policy;
    }

    /** As {@link AdmissionPolicy#admits}; counts refused requests. */
    public boolean admits(long now, int ahead, long deadline) {
        boolean admits = policy.admits(now, ahead, deadline);
        if (!admits) {
            refused++;
        }
        return admits;
    }

    /** Counts requests that had been accepted, and were refused later. */
    public void refused(int count) {
        refused += count;
    }

    /**
     * Returns a line for the log if the policy has begun or ended to refuse requests since the last call, and a line is
     * due. To be logged without the lock.
     *
     * @param queue names the queue, such as {@code model 'm'}
     */
    public @Nullable String changed(long now, String queue) {
        if (policy.refuses() == refuses || closed) {
            return null;
        }
        refuses = !refuses;
        if (refuses) {
            refusing.incrementAndGet();
            since = now;
            refused = 0;
            logged = !everLogged || now - loggedAt >= QUIET_NANOS;
            if (!logged) {
                return null;
            }
            everLogged = true;
            loggedAt = now;
            return queue + " is overloaded: " + policy.reason();
        }
        refusing.decrementAndGet();
        return logged
                ? String.format(
                        Locale.ROOT,
                        "%s is not overloaded any more: %d requests were refused in %.1f s",
                        queue,
                        refused,
                        (now - since) / 1e9)
                : null;
    }

    /** The queue is gone. */
    public void close() {
        if (refuses && !closed) {
            refusing.decrementAndGet();
        }
        closed = true;
    }

    /**
     * The error of a refused request.
     *
     * @param queue names the queue
     * @param retryNanos the time after which it may be sent again
     */
    public static ServingException refusal(String prefix, String queue, int waiting, long retryNanos) {
        long seconds = Math.max(1, (retryNanos + 999_999_999) / 1_000_000_000);
        return ServingException.retryable(
                ErrorCode.UNAVAILABLE,
                prefix + queue + " is overloaded: " + waiting + " requests wait, and more arrive than are served",
                "try again in " + seconds + " s",
                Duration.ofSeconds(seconds));
    }
}
