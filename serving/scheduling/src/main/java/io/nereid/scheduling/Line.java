// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

import org.jspecify.annotations.Nullable;

/** Waiting entries in order, linked through themselves so that any can leave. Guarded by the queue's lock. */
final class Line {
    @Nullable Entry head;

    private @Nullable Entry tail;
    private int size;

    int size() {
        return size;
    }

    void append(Entry e) {
        e.line = this;
        e.previous = tail;
        if (tail == null) {
            head = e;
        } else {
            tail.next = e;
        }
        tail = e;
        size++;
    }

    void remove(Entry e) {
        if (e.previous == null) {
            head = e.next;
        } else {
            e.previous.next = e.next;
        }
        if (e.next == null) {
            tail = e.previous;
        } else {
            e.next.previous = e.previous;
        }
        e.previous = null;
        e.next = null;
        e.line = null;
        size--;
    }
}
