// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * The entries that can have waited too long, the next one first: a heap whose entries know their places, so that any can
 * leave. Guarded by the queue's lock.
 */
final class Expiries {
    private @Nullable Entry[] heap = new @Nullable Entry[16];
    private int size;

    /** The entry that expires next; null when none does. */
    @Nullable Entry next() {
        return heap[0];
    }

    void add(Entry e) {
        if (size == heap.length) {
            heap = Arrays.copyOf(heap, size * 2);
        }
        up(e, size++);
    }

    /** Takes an entry out, if it is in. */
    void remove(Entry e) {
        int hole = e.expiryIndex;
        if (hole < 0) {
            return;
        }
        e.expiryIndex = -1;
        size--;
        Entry last = heap[size];
        heap[size] = null;
        if (last == null || last == e) {
            return;
        }
        Entry parent = heap[(hole - 1) / 2];
        if (hole > 0 && parent != null && before(last, parent)) {
            up(last, hole);
        } else {
            down(last, hole);
        }
    }

    private void up(Entry e, int from) {
        int at = from;
        while (at > 0) {
            int above = (at - 1) / 2;
            Entry parent = heap[above];
            if (parent == null || !before(e, parent)) {
                break;
            }
            put(parent, at);
            at = above;
        }
        put(e, at);
    }

    private void down(Entry e, int from) {
        int at = from;
        while (2 * at + 1 < size) {
            int below = 2 * at + 1;
            Entry child = heap[below];
            Entry right = below + 1 < size ? heap[below + 1] : null;
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

    private void put(Entry e, int at) {
        heap[at] = e;
        e.expiryIndex = at;
    }

    private static boolean before(Entry a, Entry b) {
        return a.expiry - b.expiry < 0;
    }
}
