// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.testing.fleet;

import java.util.PriorityQueue;
import org.jspecify.annotations.Nullable;

/** Events in virtual time; those of one time in the order in which they were added. Confined to one simulation. */
final class EventQueue<K> {
    /**
     * An event.
     *
     * @param at its time
     * @param order the order of adding
     * @param kind what happens
     * @param subject to what, if it is an object
     * @param first a number
     * @param second another one
     */
    record Event<K>(long at, long order, K kind, @Nullable Object subject, int first, int second)
            implements Comparable<Event<K>> {
        @Override
        public int compareTo(Event<K> other) {
            return at != other.at ? Long.compare(at, other.at) : Long.compare(order, other.order);
        }
    }

    private final PriorityQueue<Event<K>> queue = new PriorityQueue<>();
    private long order;

    void add(long at, K kind, @Nullable Object subject, int first, int second) {
        queue.add(new Event<>(at, order++, kind, subject, first, second));
    }

    Event<K> poll() {
        return queue.remove();
    }
}
