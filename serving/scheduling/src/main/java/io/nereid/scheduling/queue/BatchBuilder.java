// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.queue;

import io.nereid.scheduling.BatchCloseReason;
import io.nereid.scheduling.BatchRunner;
import io.nereid.scheduling.BatchStrategy;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.config.BatchSizePolicy;
import io.nereid.spi.config.DynamicBatching;
import io.nereid.spi.config.ModelConfig;
import java.util.BitSet;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Builds the next batch from the head of the queue without removing jobs: how many jobs it would contain, at which job
 * it is best closed, and why.
 *
 * <p>The result is kept between calls. {@link #extend} continues at the last visited job, so that each job is visited
 * once although the batch is evaluated at every arrival. Any change before the last visited job invalidates the result
 * and needs {@link #reset}: a job was removed, or a job of a higher priority arrived ({@link #arrived}).
 *
 * <p>Preferred sizes: {@code bestJobs} remembers the longest prefix with a preferred number of rows. A batch with such
 * a prefix is ready at once; when it is closed, jobs after the prefix remain in the queue. Without one, the batch waits
 * for the queue delay and then takes all visited jobs.
 *
 * <p>Guarded by the queue's lock.
 */
public final class BatchBuilder {
    private static final Logger LOG = LoggerFactory.getLogger(BatchBuilder.class);

    private final int maxRows;
    private final int largestPreferred;
    private final BitSet preferred;
    private final long delayNanos;
    private final @Nullable BatchRunner joins;
    private final @Nullable BatchStrategy strategy;
    private final @Nullable EnqueuedBatchLimit waiting;
    private final boolean cuts;

    private @Nullable QueuedJob first;
    private @Nullable QueuedJob last;
    private int jobs;
    private long rows;
    private long oldest;
    /** Rows of the last job that belong to the batch, if that job is split; else 0. */
    private int part;

    private int bestJobs;
    private BatchCloseReason bestCut = BatchCloseReason.PREFERRED_SIZE;
    /** Why no further job can join; null while the batch can grow. */
    private @Nullable BatchCloseReason full;

    private @Nullable Object strategyState;

    private BatchBuilder(
            int maxRows,
            BitSet preferred,
            long delayNanos,
            @Nullable BatchRunner joins,
            @Nullable BatchStrategy strategy,
            BatchSizePolicy fit) {
        this.maxRows = maxRows;
        this.largestPreferred = preferred.isEmpty() ? maxRows : preferred.length() - 1;
        this.preferred = preferred;
        this.delayNanos = delayNanos;
        this.joins = joins;
        this.strategy = strategy;
        this.waiting = fit.maxEnqueuedBatches() > 0
                ? new EnqueuedBatchLimit(fit.maxEnqueuedBatches(), largestPreferred, joins)
                : null;
        this.cuts = fit.maxRequestRows() > maxRows;
    }

    /** Creates a builder that runs every job alone and without delay. */
    public static BatchBuilder single() {
        return new BatchBuilder(1, new BitSet(), 0, null, null, BatchSizePolicy.NONE);
    }

    /**
     * Creates a builder with the settings of a batcher; every job runs alone when the model does not support batches.
     */
    public static BatchBuilder of(
            ModelConfig config, DynamicBatching batching, BatchRunner runner, @Nullable BatchStrategy strategy) {
        int maxBatchSize = config.maxBatchSize();
        if (maxBatchSize <= 1) {
            return new BatchBuilder(1, new BitSet(), 0, null, null, config.batchSizePolicy());
        }
        BitSet preferred = new BitSet();
        for (int size : batching.preferredSizes()) {
            if (size >= 1 && size <= maxBatchSize) {
                preferred.set(size);
            }
        }
        long delay = PolicyQueue.nanos(batching.maxQueueDelay());
        return new BatchBuilder(maxBatchSize, preferred, delay, runner, strategy, config.batchSizePolicy());
    }

    boolean delays() {
        return delayNanos > 0;
    }

    /** Returns whether a job that arrives at an empty queue may run without being visited here. */
    boolean trivialAlone() {
        return delayNanos == 0 && strategy == null;
    }

    /** Returns when the queue delay of the batch at the head ends. The queue must not be empty. */
    long due(PriorityLevelQueue levels) {
        extend(levels);
        return oldest + delayNanos;
    }

    /** Returns whether more is queued than {@code batches} full batches, so that one more thread has work. */
    boolean exceeds(PriorityLevelQueue levels, int batches) {
        return joins == null && !this.cuts
                ? levels.size() > batches
                : levels.rows() > (long) batches * largestPreferred;
    }

    /** Returns whether the batch at the head should be closed now. The queue must not be empty. */
    boolean ready(PriorityLevelQueue levels, long now) {
        if (delayNanos == 0) {
            return true;
        }
        extend(levels);
        return bestJobs > 0 || full != null || now - (oldest + delayNanos) >= 0;
    }

    /** Returns how many jobs at the head of the queue form the batch. */
    int cut(PriorityLevelQueue levels) {
        extend(levels);
        return bestJobs > 0 ? bestJobs : jobs;
    }

    /** After {@link #cut}: returns how many rows of the last job to take, if it is split; else 0. */
    int part() {
        return part;
    }

    /** Returns whether a job may be queued without exceeding the maximum number of enqueued batches. */
    boolean admits(PriorityLevelQueue levels, QueuedJob e) {
        return waiting == null || waiting.admits(levels, e);
    }

    /** After {@link #admits} has returned false: returns the number of enqueued batches. */
    int batches() {
        return waiting == null ? 0 : waiting.count();
    }

    /** Returns the maximum number of enqueued batches; 0 for no limit. */
    int maxBatches() {
        return waiting == null ? 0 : waiting.most();
    }

    /** After {@link #cut}: returns why the batch is closed at that job. */
    BatchCloseReason why(long now) {
        if (bestJobs > 0) {
            return bestCut;
        }
        if (full != null) {
            return full;
        }
        if (delayNanos == 0) {
            return BatchCloseReason.NO_MORE;
        }
        return now - (oldest + delayNanos) >= 0 ? BatchCloseReason.DELAY : BatchCloseReason.CLOSING;
    }

    /** Called after a job was appended: discards the result if the job precedes the last visited one. */
    void arrived(PriorityLevelQueue levels, QueuedJob e) {
        if (last != null && levels.precedes(e, last)) {
            reset();
        }
    }

    /** Discards the result after a change among the visited jobs. */
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

    /** Visits jobs from the last visited one on, until the batch is full or the queue ends. */
    private void extend(PriorityLevelQueue levels) {
        QueuedJob e = last == null ? levels.head() : levels.next(last);
        while (e != null && full == null) {
            QueuedJob batchHead = first;
            if (batchHead == null) {
                first = e;
                oldest = e.since;
                if (strategy != null) {
                    beginStrategy(strategy);
                }
            } else if (rows + e.rows > largestPreferred && e.large == null) {
                // Does not fit. What is there is a complete batch: it cannot grow any more, so waiting is useless.
                full = rows + e.rows > maxRows ? BatchCloseReason.MAX_SIZE : BatchCloseReason.PREFERRED_SIZE;
                if (bestJobs == 0) {
                    best(full);
                }
                return;
            } else if (joins == null || !joins.joinable(batchHead.job, e.job)) {
                full = BatchCloseReason.SHAPE;
                return;
            }
            // The first job is always included, whatever the strategy returns: otherwise it could never run.
            boolean included = strategy == null || include(strategy, e.job);
            if (!included) {
                full = BatchCloseReason.STRATEGY;
                if (batchHead != null) {
                    return;
                }
            }
            last = e;
            jobs++;
            if (e.large != null && rows + e.rows > largestPreferred) {
                // A split job fills the rest of the batch; its other rows stay in the queue.
                part = (int) (largestPreferred - rows);
            }
            rows += part > 0 ? part : e.rows;
            // Not necessarily the first: a job of a higher priority may have arrived after it.
            oldest = oldest - e.since > 0 ? e.since : oldest;
            if (rows <= maxRows && preferred.get((int) rows)) {
                best(BatchCloseReason.PREFERRED_SIZE);
            }
            if (joins == null) {
                full = BatchCloseReason.SINGLE;
            } else if (rows >= largestPreferred && full == null) {
                full = rows >= maxRows ? BatchCloseReason.MAX_SIZE : BatchCloseReason.PREFERRED_SIZE;
            }
            e = levels.next(e);
        }
    }

    private void best(BatchCloseReason why) {
        bestJobs = jobs;
        bestCut = why;
    }

    private void beginStrategy(BatchStrategy s) {
        try {
            strategyState = s.begin();
        } catch (RuntimeException e) {
            strategyState = null;
            LOG.error(
                    "batching strategy {} failed to start a batch", s.getClass().getName(), e);
        }
    }

    private boolean include(BatchStrategy s, InferenceJob job) {
        try {
            return s.include(job, strategyState);
        } catch (RuntimeException e) {
            LOG.error(
                    "batching strategy {} failed to decide on a job",
                    s.getClass().getName(),
                    e);
            return false;
        }
    }

    private void endStrategy(BatchStrategy s) {
        try {
            s.end(strategyState);
        } catch (RuntimeException e) {
            LOG.error("batching strategy {} failed to end a batch", s.getClass().getName(), e);
        }
        strategyState = null;
    }
}
