// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

import org.jspecify.annotations.Nullable;

/** The waiting entries in order, linked through themselves so that any can leave. Guarded by the queue's lock. */
final class Line {
    @Nullable Entry head;

    private @Nullable Entry tail;
    private long rows;

    long rows() {
        return rows;
    }

    void append(Entry e) {
        e.state = Entry.State.QUEUED;
        e.previous = tail;
        if (tail == null) {
            head = e;
        } else {
            tail.next = e;
        }
        tail = e;
        rows += e.rows;
    }

    void remove(Entry e, Entry.State because) {
        e.state = because;
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
        rows -= e.rows;
    }
}
