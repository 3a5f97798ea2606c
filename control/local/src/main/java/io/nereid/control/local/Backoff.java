// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local;

import java.time.Duration;

/** Times to wait between tries: doubling from the shortest to the longest. Confined to one thread. */
final class Backoff {
    private final Duration shortest;
    private final Duration longest;
    private Duration next;

    Backoff(Duration shortest, Duration longest) {
        this.shortest = shortest;
        this.longest = longest;
        this.next = shortest;
    }

    /** As Kubernetes restarts containers: 10 s doubling to 5 min. */
    static Backoff ofRestarts() {
        return new Backoff(Duration.ofSeconds(10), Duration.ofMinutes(5));
    }

    /** How long to wait now. */
    Duration next() {
        Duration now = next;
        Duration doubled = now.multipliedBy(2);
        next = doubled.compareTo(longest) > 0 ? longest : doubled;
        return now;
    }

    /** It went well. */
    void reset() {
        next = shortest;
    }
}
