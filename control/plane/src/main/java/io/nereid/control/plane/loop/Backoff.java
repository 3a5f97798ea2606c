// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.plane.loop;

import java.time.Duration;

/** Exponential back-off: delays that double from the shortest to the longest. Confined to one thread. */
public final class Backoff {
    private final Duration shortest;
    private final Duration longest;
    private Duration next;

    public Backoff(Duration shortest, Duration longest) {
        this.shortest = shortest;
        this.longest = longest;
        this.next = shortest;
    }

    /** The delays with which Kubernetes restarts containers: 10 s, doubling to 5 min. */
    public static Backoff ofRestarts() {
        return new Backoff(Duration.ofSeconds(10), Duration.ofMinutes(5));
    }

    /** Returns the delay before the next attempt, and doubles the one after it. */
    public Duration next() {
        Duration now = next;
        Duration doubled = now.multipliedBy(2);
        next = doubled.compareTo(longest) > 0 ? longest : doubled;
        return now;
    }

    /** Starts over at the shortest delay, after a success. */
    public void reset() {
        next = shortest;
    }
}
