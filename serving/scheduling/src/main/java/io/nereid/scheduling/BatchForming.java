// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

import io.nereid.spi.ModelConfig.Batching;
import java.util.BitSet;
import org.jspecify.annotations.Nullable;

/**
 * The batch that is forming at the head of a line: how far it reaches, and where it would best be cut. It looks at every
 * entry once. Guarded by the queue's lock.
 */
final class BatchForming {
    private final int maxRows;
    private final int largestPreferred;
    private final BitSet preferred;
    private final long delayNanos;
    private final @Nullable BatchRunner joins;

    private @Nullable Entry first;
    private @Nullable Entry last;
    private int jobs;
    private long rows;
    private int bestJobs;
    private boolean full;

    private BatchForming(
            int maxRows, int largestPreferred, BitSet preferred, long delayNanos, @Nullable BatchRunner joins) {
        this.maxRows = maxRows;
        this.largestPreferred = largestPreferred;
        this.preferred = preferred;
        this.delayNanos = delayNanos;
        this.joins = joins;
    }

    /** Every job alone, at once. */
    static BatchForming single() {
        return new BatchForming(1, 1, new BitSet(), 0, null);
    }

    /** By the batcher's settings; every job alone when the model takes no batches. */
    static BatchForming of(int maxBatchSize, Batching batching, BatchRunner runner) {
        if (maxBatchSize <= 1) {
            return single();
        }
        BitSet preferred = new BitSet();
        int largest = 0;
        for (int size : batching.preferredSizes()) {
            if (size >= 1 && size <= maxBatchSize) {
                preferred.set(size);
                largest = Math.max(largest, size);
            }
        }
        if (largest == 0) {
            preferred.set(maxBatchSize);
            largest = maxBatchSize;
        }
        long delay = Math.max(0, batching.maxQueueDelay().toNanos());
        return new BatchForming(maxBatchSize, largest, preferred, delay, runner);
    }

    boolean delays() {
        return delayNanos > 0;
    }

    /** When the batch that {@code oldest} heads is cut at the latest. */
    long due(Entry oldest) {
        return oldest.since + delayNanos;
    }

    /** Whether what waits beyond {@code cuts} batches makes one more worth a thread. */
    boolean exceeds(Line line, int waiting, int cuts) {
        return joins == null ? waiting > cuts : line.rows() > (long) cuts * largestPreferred;
    }

    /** Whether the batch at the head of a line that is not empty should go now. */
    boolean ready(Line line, long now) {
        if (delayNanos == 0) {
            return true;
        }
        extend(line);
        return bestJobs > 0 || full || (first != null && now - due(first) >= 0);
    }

    /** How many jobs to cut from the head of the line. */
    int cut(Line line) {
        extend(line);
        return bestJobs > 0 ? bestJobs : jobs;
    }

    /** Forgets what it has seen: the head of the line has changed. */
    void reset() {
        first = null;
        last = null;
        jobs = 0;
        rows = 0;
        bestJobs = 0;
        full = false;
    }

    private void extend(Line line) {
        Entry e = last == null ? line.head : last.next;
        while (e != null && !full) {
            Entry batchHead = first;
            if (batchHead == null) {
                first = e;
            } else if (rows + e.rows > largestPreferred) {
                bestJobs = bestJobs > 0 ? bestJobs : jobs;
                full = true;
                return;
            } else if (joins == null || rows + e.rows > maxRows || !joins.joinable(batchHead.job, e.job)) {
                full = true;
                return;
            }
            last = e;
            jobs++;
            rows += e.rows;
            if (rows <= maxRows && preferred.get((int) rows)) {
                bestJobs = jobs;
            }
            full = joins == null || rows >= largestPreferred;
            e = e.next;
        }
    }
}
