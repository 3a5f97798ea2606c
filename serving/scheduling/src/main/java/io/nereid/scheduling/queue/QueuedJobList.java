// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.queue;

import org.jspecify.annotations.Nullable;

/**
 * A doubly linked list of queued jobs whose links are fields of the jobs, so that any job can be removed in constant
 * time (for instance on cancellation). A job is in at most one list. Guarded by the queue's lock.
 */
final class QueuedJobList {
    @Nullable
    QueuedJob head;

    private @Nullable QueuedJob tail;
    private int size;

    int size() {
        return size;
    }

    void append(QueuedJob e) {
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

    void remove(QueuedJob e) {
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
