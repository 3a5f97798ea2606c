// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.batcher;

import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * The queued jobs that can time out: a binary heap, the next timeout first. Each job knows its index, so that any job
 * can be removed in logarithmic time when it is taken or cancelled; {@link java.util.PriorityQueue} would have to
 * search for it. Guarded by the batcher's lock.
 */
final class TimeoutHeap {
    private @Nullable QueuedJob[] heap = new @Nullable QueuedJob[16];
    private int size;

    /** Returns the job with the earliest timeout; null for none. */
    @Nullable QueuedJob next() {
        return heap[0];
    }

    void add(QueuedJob e) {
        if (size == heap.length) {
            heap = Arrays.copyOf(heap, size * 2);
        }
        up(e, size++);
    }

    /** Removes a job, if it is in the heap. */
    void remove(QueuedJob e) {
        int hole = e.expiryIndex;
        if (hole < 0) {
            return;
        }
        e.expiryIndex = -1;
        size--;
        // The last job fills the hole. It may belong above or below it, since it comes from another branch.
        QueuedJob last = heap[size];
        heap[size] = null;
        if (last == null || last == e) {
            return;
        }
        QueuedJob parent = heap[(hole - 1) / 2];
        if (hole > 0 && parent != null && before(last, parent)) {
            up(last, hole);
        } else {
            down(last, hole);
        }
    }

    private void up(QueuedJob e, int from) {
        int at = from;
        while (at > 0) {
            int above = (at - 1) / 2;
            QueuedJob parent = heap[above];
            if (parent == null || !before(e, parent)) {
                break;
            }
            put(parent, at);
            at = above;
        }
        put(e, at);
    }

    private void down(QueuedJob e, int from) {
        int at = from;
        while (2 * at + 1 < size) {
            int below = 2 * at + 1;
            QueuedJob child = heap[below];
            QueuedJob right = below + 1 < size ? heap[below + 1] : null;
            if (child != null && right != null && before(right, child)) {
                below++;
                child = right;
            }
            if (child == null || !before(child, e)) {
                break;
            }
            put(child, at);
            at = below;
        }
        put(e, at);
    }

    private void put(QueuedJob e, int at) {
        heap[at] = e;
        e.expiryIndex = at;
    }

    private static boolean before(QueuedJob a, QueuedJob b) {
        // A difference, since System.nanoTime() may overflow.
        return a.expiry - b.expiry < 0;
    }
}
