// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

import io.nereid.spi.InferenceJob;
import org.jspecify.annotations.Nullable;

/**
 * How many batches what waits would make, cut as full as they can be, and a bound for it. It counts anew only when the
 * queue has changed otherwise than at its end, and the bound may be near. Guarded by the queue's lock.
 */
final class WaitingBatches {
    private final int most;
    private final int largest;
    private final @Nullable BatchRunner joins;
    /** Whether the rest describes what waits. */
    private boolean known;

    private int count;
    private long lastRows;
    private @Nullable InferenceJob lastHead;

    /**
     * @param largest rows of a full batch
     * @param joins says which jobs share a batch; null when none do
     */
    WaitingBatches(int most, int largest, @Nullable BatchRunner joins) {
        this.most = most;
        this.largest = largest;
        this.joins = joins;
    }

    int most() {
        return most;
    }

    /** How many there are; right after a refusal. */
    int count() {
        return count;
    }

    /** Something has changed that is not a job at the end. */
    void changed() {
        known = false;
    }

    /** Whether there is room for a job that comes last. */
    boolean admits(Levels levels, Entry e) {
        // A batch ends because it is full, or because the next job does not join.
        if (levels.size() + 1 + (levels.rows() + e.rows) / largest <= most) {
            known = false;
            return true;
        }
        if (!known) {
            count(levels);
        }
        int batches = count;
        long rows = lastRows;
        InferenceJob head = lastHead;
        add(e);
        if (count <= most) {
            return true;
        }
        count = batches;
        lastRows = rows;
        lastHead = head;
        return false;
    }

    private void count(Levels levels) {
        known = true;
        count = 0;
        lastRows = 0;
        lastHead = null;
        for (Entry e = levels.head(); e != null; e = levels.next(e)) {
            add(e);
        }
    }

    private void add(Entry e) {
        long room = lastHead != null && joins != null && lastRows < largest && joins.joinable(lastHead, e.job)
                ? largest - lastRows
                : 0;
        if (e.rows <= room) {
            lastRows += e.rows;
            return;
        }
        if (e.large == null) {
            count++;
            lastRows = e.rows;
        } else {
            long rest = e.rows - room;
            count += (int) ((rest + largest - 1) / largest);
            lastRows = (rest - 1) % largest + 1;
        }
        lastHead = e.job;
    }
}
