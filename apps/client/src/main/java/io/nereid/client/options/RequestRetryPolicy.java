// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.client.options;

import java.time.Duration;

/**
 * When and after which delays a call that failed is repeated. Immutable.
 *
 * <p>A call is repeated only if it may be: health, metadata and inference, but not a request of a sequence, and loading and
 * unloading only with {@link #withManagement()}. And only after a failure that another attempt may change: no connection, a
 * connection that was lost before a response began, 502, 503 and UNAVAILABLE, and 429 and RESOURCE_EXHAUSTED if the server
 * says when to come again. Never after a response has begun, and never beyond the deadline of the call.
 *
 * <p>The delay doubles with each attempt, and is drawn at random between half of it and all of it. What the server asks for
 * ({@code retry-after}, {@code grpc-retry-pushback-ms}) is the least delay.
 *
 * @param maxAttempts the attempts together, the first one included; 1 for no retries
 * @param initialDelay the delay before the second attempt
 * @param maxDelay the longest delay that the client chooses
 * @param management whether loading and unloading are repeated
 */
public record RequestRetryPolicy(int maxAttempts, Duration initialDelay, Duration maxDelay, boolean management) {
    public RequestRetryPolicy {
        if (maxAttempts < 1) {
            throw new IllegalArgumentException("maxAttempts " + maxAttempts + " (expected: 1 or more)");
        }
        if (initialDelay.isNegative() || maxDelay.compareTo(initialDelay) < 0) {
            throw new IllegalArgumentException("delays from " + initialDelay + " to " + maxDelay
                    + " (expected: from 0 or more to the same or more)");
        }
    }

    /** Three attempts, with delays from 100 milliseconds to 2 seconds. The default of the client. */
    public static RequestRetryPolicy standard() {
        return ofAttempts(3);
    }

    /** One attempt. */
    public static RequestRetryPolicy none() {
        return ofAttempts(1);
    }

    /** A number of attempts, with delays from 100 milliseconds to 2 seconds. */
    public static RequestRetryPolicy ofAttempts(int maxAttempts) {
        return new RequestRetryPolicy(maxAttempts, Duration.ofMillis(100), Duration.ofSeconds(2), false);
    }

    /** The same attempts with other delays. */
    public RequestRetryPolicy withDelays(Duration initial, Duration max) {
        return new RequestRetryPolicy(maxAttempts, initial, max, management);
    }

    /** Repeats loading and unloading too. */
    public RequestRetryPolicy withManagement() {
        return new RequestRetryPolicy(maxAttempts, initialDelay, maxDelay, true);
    }

    /**
     * The delay after an attempt, in nanoseconds.
     *
     * @param attempt the attempt that failed, from 1
     * @param random a number from 0 to 1
     */
    public long delayNanos(int attempt, double random) {
        double full = Math.min(maxDelay.toNanos(), initialDelay.toNanos() * Math.pow(2, attempt - 1));
        return (long) (full * (0.5 + random / 2));
    }
}
