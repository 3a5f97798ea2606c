// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

import io.nereid.spi.InferenceJob;
import io.nereid.spi.ModelConfig;
import io.nereid.spi.ModelConfig.Batching;
import java.util.BitSet;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The batch that is forming at the head of what waits: how far it reaches, where it would best be cut, and why. It looks
 * at every entry once, unless something changes before its end. Guarded by the queue's lock.
 */
final class BatchForming {
    private static final Logger LOG = LoggerFactory.getLogger(BatchForming.class);

    private final int maxRows;
    private final int largestPreferred;
    private final BitSet preferred;
    private final long delayNanos;
    private final @Nullable BatchRunner joins;
    private final @Nullable BatchStrategy strategy;
    private final @Nullable WaitingBatches waiting;
    private final boolean cuts;

    private @Nullable Entry first;
    private @Nullable Entry last;
    private int jobs;
    private long rows;
    private long oldest;
    /** How many rows of the last job belong to the batch, when it is cut; else 0. */
    private int part;

    private int bestJobs;
    private BatchCut bestCut = BatchCut.PREFERRED_SIZE;
    /** Why nothing more can join; null while something can. */
    private @Nullable BatchCut full;

    private @Nullable Object strategyState;

    private BatchForming(
            int maxRows,
            BitSet preferred,
            long delayNanos,
            @Nullable BatchRunner joins,
            @Nullable BatchStrategy strategy,
            ModelConfig.Fit fit) {
        this.maxRows = maxRows;
        this.largestPreferred = preferred.isEmpty() ? maxRows : preferred.length() - 1;
        this.preferred = preferred;
        this.delayNanos = delayNanos;
        this.joins = joins;
        this.strategy = strategy;
        this.waiting = fit.maxEnqueuedBatches() > 0
                ? new WaitingBatches(fit.maxEnqueuedBatches(), largestPreferred, joins)
                : null;
        this.cuts = fit.maxRequestRows() > maxRows;
    }

    /** Every job alone, at once. */
    static BatchForming single() {
        return new BatchForming(1, new BitSet(), 0, null, null, ModelConfig.Fit.NONE);
    }

    /** By the batcher's settings; every job alone when the model takes no batches. */
    static BatchForming of(
            ModelConfig config, Batching batching, BatchRunner runner, @Nullable BatchStrategy strategy) {
        int maxBatchSize = config.maxBatchSize();
        if (maxBatchSize <= 1) {
            return new BatchForming(1, new BitSet(), 0, null, null, config.fit());
        }
        BitSet preferred = new BitSet();
        for (int size : batching.preferredSizes()) {
            if (size >= 1 && size <= maxBatchSize) {
                preferred.set(size);
            }
        }
        long delay = PolicyQueue.nanos(batching.maxQueueDelay());
        return new BatchForming(maxBatchSize, preferred, delay, runner, strategy, config.fit());
    }

    boolean delays() {
        return delayNanos > 0;
    }

    /** Whether a job that nothing waits beside may run without being looked at here. */
    boolean trivialAlone() {
        return delayNanos == 0 && strategy == null;
    }

    /** When the batch at the head of what waits, which is not empty, is cut at the latest. */
    long due(Levels levels) {
        extend(levels);
        return oldest + delayNanos;
    }

    /** Whether what waits beyond so many batches makes one more worth a thread. */
    boolean exceeds(Levels levels, int batches) {
        return joins == null && !this.cuts
                ? levels.size() > batches
                : levels.rows() > (long) batches * largestPreferred;
    }

    /** Whether the batch at the head of what waits, which is not empty, should go now. */
    boolean ready(Levels levels, long now) {
        if (delayNanos == 0) {
            return true;
        }
        extend(levels);
        return bestJobs > 0 || full != null || now - (oldest + delayNanos) >= 0;
    }

    /** How many jobs to cut from the head of what waits. */
    int cut(Levels levels) {
        extend(levels);
        return bestJobs > 0 ? bestJobs : jobs;
    }

    /** After {@link #cut}: how many rows of the last job to take, when it is to be cut; else 0. */
    int part() {
        return part;
    }

    /** Whether a job may wait: whether what waits with it makes no more batches than may. */
    boolean admits(Levels levels, Entry e) {
        return waiting == null || waiting.admits(levels, e);
    }

    /** After a refusal: how many batches wait. */
    int batches() {
        return waiting == null ? 0 : waiting.count();
    }

    /** How many batches may wait; 0 for any number. */
    int maxBatches() {
        return waiting == null ? 0 : waiting.most();
    }

    /** Why {@link #cut} ends where it does. */
    BatchCut why(long now) {
        if (bestJobs > 0) {
            return bestCut;
        }
        if (full != null) {
            return full;
        }
        if (delayNanos == 0) {
            return BatchCut.NO_MORE;
        }
        return now - (oldest + delayNanos) >= 0 ? BatchCut.DELAY : BatchCut.CLOSING;
    }

    /** A job has come: begins anew when it comes before what has been looked at. */
    void arrived(Levels levels, Entry e) {
        if (last != null && levels.overtakes(e, last)) {
            reset();
        }
    }

    /** Forgets what it has seen: something has changed at the head of what waits. */
    void reset() {
        if (first != null && strategy != null) {
            endStrategy(strategy);
        }
        first = null;
        last = null;
        jobs = 0;
        rows = 0;
        part = 0;
        bestJobs = 0;
        full = null;
        if (waiting != null) {
            waiting.changed();
        }
    }

    private void extend(Levels levels) {
        Entry e = last == null ? levels.head() : levels.next(last);
        while (e != null && full == null) {
            Entry batchHead = first;
            if (batchHead == null) {
                first = e;
                oldest = e.since;
                if (strategy != null) {
                    beginStrategy(strategy);
                }
            } else if (rows + e.rows > largestPreferred && e.large == null) {
                full = rows + e.rows > maxRows ? BatchCut.MAX_SIZE : BatchCut.PREFERRED_SIZE;
                if (bestJobs == 0) {
                    best(full);
                }
                return;
            } else if (joins == null || !joins.joinable(batchHead.job, e.job)) {
                full = BatchCut.SHAPE;
                return;
            }
            boolean included = strategy == null || include(strategy, e.job);
            if (!included) {
                full = BatchCut.STRATEGY;
                if (batchHead != null) {
                    return;
                }
            }
            last = e;
            jobs++;
            if (e.large != null && rows + e.rows > largestPreferred) {
                part = (int) (largestPreferred - rows);
            }
            rows += part > 0 ? part : e.rows;
            oldest = oldest - e.since > 0 ? e.since : oldest;
            if (rows <= maxRows && preferred.get((int) rows)) {
                best(BatchCut.PREFERRED_SIZE);
            }
            if (joins == null) {
                full = BatchCut.SINGLE;
            } else if (rows >= largestPreferred && full == null) {
                full = rows >= maxRows ? BatchCut.MAX_SIZE : BatchCut.PREFERRED_SIZE;
            }
            e = levels.next(e);
        }
    }

    private void best(BatchCut why) {
        bestJobs = jobs;
        bestCut = why;
    }

    private void beginStrategy(BatchStrategy s) {
        try {
            strategyState = s.begin();
        } catch (RuntimeException e) {
            strategyState = null;
            LOG.error("batching strategy {} could not begin", s.getClass().getName(), e);
        }
    }

    private boolean include(BatchStrategy s, InferenceJob job) {
        try {
            return s.include(job, strategyState);
        } catch (RuntimeException e) {
            LOG.error("batching strategy {} could not judge a job", s.getClass().getName(), e);
            return false;
        }
    }

    private void endStrategy(BatchStrategy s) {
        try {
            s.end(strategyState);
        } catch (RuntimeException e) {
            LOG.error("batching strategy {} could not end", s.getClass().getName(), e);
        }
        strategyState = null;
    }
}
