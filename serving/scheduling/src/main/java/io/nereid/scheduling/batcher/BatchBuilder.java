// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.batcher;

import io.nereid.scheduling.BatchCloseReason;
import io.nereid.scheduling.BatchRunner;
import io.nereid.scheduling.BatchStrategy;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.config.BatchSizePolicy;
import io.nereid.spi.config.DynamicBatching;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.parameters.PaddingPolicy;
import java.util.BitSet;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Decides when a batch closes, and with which jobs.
 *
 * <p>The next batch is a run of jobs from the head of the {@link RequestQueue}. It is built without removing
 * jobs, and stays open until an instance is free; jobs that arrive in the meantime still join it. Where requests of
 * different lengths are padded, the same rules decide when the batch closes, and {@link LengthBatching} with which jobs:
 * the one at the head and others of about its length.
 *
 * <p><b>Whether a job joins</b> ({@link #extend}). Jobs are visited in queue order. For each one, the first rule that
 * applies decides; the reason in brackets is that of a batch that this rule makes <em>full</em>, to which no further
 * job is added.
 *
 * <ol>
 *   <li>The first job always joins: otherwise it could never run.
 *   <li>A job whose rows would exceed the largest preferred size does not join [PREFERRED_SIZE; MAX_SIZE if they would
 *       also exceed the model's maximum]. Without preferred sizes, the maximum takes their place. A smaller size that a
 *       latency objective allows takes the place of both [OBJECTIVE]. A job that is split joins with as many rows as are free.
 *   <li>A job with other inputs or shapes than the first job does not join [SHAPE].
 *   <li>A job that the custom batching strategy excludes does not join [STRATEGY]; if it is the first job, it joins and
 *       the batch is full.
 *   <li>Any other job joins. The batch is full afterwards if the model takes one request at a time [SINGLE], or if the
 *       largest preferred size or the maximum is reached [PREFERRED_SIZE or MAX_SIZE].
 * </ol>
 *
 * <p><b>When the batch closes</b> ({@link #ready}). The first rule that applies decides.
 *
 * <ol>
 *   <li>An empty queue has no batch.
 *   <li>For tests, no batch closes before so many jobs are queued ({@code delayScheduler}).
 *   <li>When the scheduler is being closed, a batch closes at once [CLOSING, if no later rule gives a reason].
 *   <li>Without a queue delay, a batch closes at once [NO_MORE, if it is not full], unless {@link BatchAnticipation} expects
 *       further requests in a moment. It does not wait for them if it is full, if a job would time out meanwhile, or if its
 *       first job is of a more urgent level than the default.
 *   <li>A batch that has reached a preferred size closes at once, at the largest preferred size that it has reached
 *       [PREFERRED_SIZE]. Jobs after that point stay in the queue.
 *   <li>A full batch closes at once, with the reason why it is full: waiting cannot improve it.
 *   <li>A batch closes when its oldest job has waited for the queue delay [DELAY], or when {@link BatchAnticipation}
 *       expects no request that it should wait for [NO_MORE].
 *   <li>Any other batch stays open.
 * </ol>
 *
 * <p>{@link DynamicBatcher} closes a ready batch when an instance and a thread are free, and wakes a second thread when
 * more is queued than one batch can take ({@link #exceeds}). The class also counts how many batches the queued jobs
 * form, for the limit {@code max_enqueued_batches} of TensorFlow Serving ({@link #admits}).
 *
 * <p><b>Invariant.</b> The result is kept between calls: {@code first} to {@code last} are the visited jobs, and
 * {@link #extend} continues after {@code last}. So each job is visited once although the batch is evaluated at every
 * arrival. A change among the visited jobs invalidates the result and needs {@link #reset}: a job was removed, or one
 * was inserted before {@code last} ({@link #arrived}).
 *
 * <p>Guarded by the batcher's lock.
 */
final class BatchBuilder {
    private static final Logger LOG = LoggerFactory.getLogger(BatchBuilder.class);

    private final RequestQueue queue;
    /** Whether jobs have a batch dimension. */
    private final boolean batched;

    private int maxRows;
    /** The size that makes a batch full: the largest preferred one, or the maximum. */
    private int fullRows;

    private final BitSet preferred = new BitSet();
    private long delayNanos;
    /** The configured delay, if a latency objective has not set another one. */
    private long configuredDelay;
    /** The most rows that a latency objective allows for several jobs; {@link Integer#MAX_VALUE} without one. */
    private int objectiveRows = Integer.MAX_VALUE;
    /** Decides which jobs may share a batch; null if every job runs alone. */
    private @Nullable BatchRunner runner;

    private final BatchRunner anyRunner;

    private final @Nullable BatchStrategy strategy;
    private final @Nullable BatchAnticipation anticipation;
    /** Chooses the jobs of a batch by their length; null if batches are formed in order of arrival. */
    private final @Nullable LengthBatching lengths;

    private final BatchSizePolicy sizes;
    private final boolean splits;

    /** The first visited job; null before the first visit. */
    private @Nullable QueuedJob first;
    /** The last visited job, which is part of the batch. */
    private @Nullable QueuedJob last;
    /** Number of visited jobs. */
    private int jobs;
    /** Rows of the visited jobs. */
    private long rows;
    /** The earliest arrival of a visited job. */
    private long oldest;
    /** Rows of the last job that belong to the batch, if that job is split; else 0. */
    private int part;
    /** Number of jobs up to the largest preferred size that was reached; 0 if none was. */
    private int bestJobs;
    /** Why no further job can join; null while the batch can grow. */
    private @Nullable BatchCloseReason full;

    /** The jobs of a closed batch if they were chosen by length; else null. */
    private @Nullable List<QueuedJob> chosen;

    private @Nullable Object strategyState;

    /** For tests: no batch is closed until so many jobs are queued at once; 0 after that. */
    private int held;
    /** Whether the scheduler is being closed, so that queue delays do not apply. */
    private boolean closing;
    /** Until when the batch waits without a queue delay; {@link QueuedJob#NEVER} if it does not. */
    private long waitEnd = QueuedJob.NEVER;

    /** The maximum number of enqueued batches; 0 for no limit. */
    private final int maxBatches;
    /** Whether the next three fields describe the queue. */
    private boolean counted;

    private int batches;
    private long lastBatchRows;
    private @Nullable InferenceJob lastBatchHead;

    /**
     * Creates the builder of one queue. Without dynamic batching in the configuration every job runs alone and without delay,
     * as for a model that does not support batches.
     *
     * @param held for tests: no batch is closed until so many jobs are queued at once
     * @param anticipation what the batcher has observed; null if it does not matter when a batch closes
     */
    BatchBuilder(
            RequestQueue queue,
            ModelConfig config,
            BatchRunner runner,
            @Nullable BatchStrategy strategy,
            int held,
            @Nullable BatchAnticipation anticipation) {
        this.queue = queue;
        this.batched = config.batched();
        this.sizes = config.batchSizePolicy();
        this.anyRunner = runner;
        boolean shares = batched && config.batching() != null;
        this.strategy = shares ? strategy : null;
        configure(config);
        this.splits = sizes.maxRequestRows() > maxRows;
        this.maxBatches = sizes.maxEnqueuedBatches();
        this.held = held;
        this.anticipation = anticipation;
        // A strategy decides itself which jobs share a batch.
        PaddingPolicy padding = shares && strategy == null ? PaddingPolicy.of(config) : null;
        this.lengths = padding == null || padding.byArrival() ? null : new LengthBatching(runner);
    }

    /**
     * Returns whether {@link #configure} may apply a configuration with these settings: a batch dimension does not come or go, and
     * another maximum must not concern how requests are split, or which sizes they are padded to.
     */
    boolean accepts(ModelConfig next) {
        return next.batched() == batched
                && (!batched || next.maxBatchSize() == maxRows || sizes.equals(BatchSizePolicy.NONE));
    }

    /**
     * Applies another maximum, other preferred sizes and another queue delay, to the batch that is open as well. A job that waits and
     * has more rows than the new maximum runs alone.
     */
    void configure(ModelConfig config) {
        DynamicBatching batching = config.batching();
        maxRows = batched && batching != null ? config.maxBatchSize() : 1;
        runner = maxRows > 1 ? anyRunner : null;
        preferred.clear();
        configuredDelay = 0;
        if (batching != null && maxRows > 1) {
            for (int size : batching.preferredSizes()) {
                if (size >= 1 && size <= maxRows) {
                    preferred.set(size);
                }
            }
            configuredDelay = RequestQueue.nanos(batching.maxQueueDelay());
        }
        objective(0, Integer.MAX_VALUE);
    }

    /** Returns the most rows of a batch of several jobs; 1 if every job runs alone. */
    int maxRows() {
        return maxRows;
    }

    /**
     * Applies what a latency objective has determined, to the batch that is open as well.
     *
     * @param delay the queue delay if none is configured
     * @param mostRows the most rows of a batch of several jobs
     */
    void objective(long delay, int mostRows) {
        delayNanos = configuredDelay > 0 || maxRows == 1 ? configuredDelay : delay;
        objectiveRows = mostRows;
        fullRows = Math.min(mostRows, preferred.isEmpty() ? maxRows : preferred.length() - 1);
        waitEnd = QueuedJob.NEVER;
        reset();
        counted = false;
    }

    /** Returns whether a job that arrives at an empty queue may run without being visited here. */
    boolean runsAloneAtOnce() {
        return delayNanos == 0 && strategy == null;
    }

    /** For tests: returns whether batches are held back. */
    boolean holds() {
        return held > 0;
    }

    // ---- when the batch closes ----

    /**
     * Returns whether the batch at the head of the queue should be closed now.
     *
     * @param free instances without a run, at least 1
     */
    boolean ready(long now, int free) {
        waitEnd = QueuedJob.NEVER;
        if (queue.isEmpty() || held > 0) {
            return false;
        }
        if (closing) {
            return true;
        }
        if (delayNanos == 0) {
            waitEnd = anticipation == null || runner == null ? QueuedJob.NEVER : anticipated(anticipation, now, free);
            return waitEnd == QueuedJob.NEVER;
        }
        extend();
        return bestJobs > 0
                || full != null
                || now - (oldest + delayNanos) >= 0
                || (anticipation != null && anticipation.complete(queue.size(), free));
    }

    /** Returns until when the batch waits although no delay is configured; {@link QueuedJob#NEVER} for not at all. */
    private long anticipated(BatchAnticipation anticipates, long now, int free) {
        long end = anticipates.waitsUntil(now, queue.size(), free);
        if (end - now <= 0 || queue.urgent()) {
            return QueuedJob.NEVER;
        }
        long expiry = queue.nextExpiry();
        if (expiry != QueuedJob.NEVER && expiry - end <= anticipates.meanRunNanos()) {
            // A request with a deadline needs the time for its run as well.
            return QueuedJob.NEVER;
        }
        extend();
        return bestJobs > 0 || full != null ? QueuedJob.NEVER : end;
    }

    /** Returns how many jobs the batch has if it is closed now. The queue must not be empty. */
    int close() {
        extend();
        QueuedJob head = first;
        if (lengths != null && runner != null && head != null && head.split == null) {
            chosen = lengths.select(head, fullRows);
            return chosen.size();
        }
        return bestJobs > 0 ? bestJobs : jobs;
    }

    /** After {@link #close}: returns how many rows of the last job to take, if it is split; else 0. */
    int part() {
        return chosen == null ? part : 0;
    }

    /** After {@link #close}: returns the jobs of the batch; null if they are those at the head of the queue. */
    @Nullable List<QueuedJob> chosen() {
        return chosen;
    }

    /** After {@link #close}: returns the positions that the run computes if its jobs were chosen by length; else 0. */
    long positions() {
        return lengths == null || chosen == null ? 0 : lengths.positions();
    }

    /** Records the time of a run that computed so many positions, of which there is at least one. */
    void ran(long positions, long nanos) {
        if (lengths != null) {
            lengths.ran(positions, nanos);
        }
    }

    /** After {@link #close}: returns why the batch is closed at that job. */
    BatchCloseReason reason(long now) {
        if (lengths != null && chosen != null && lengths.leaves()) {
            return lengths.rows() < fullRows
                    ? BatchCloseReason.LENGTH
                    : fullRows < maxRows ? belowMaximum() : BatchCloseReason.MAX_SIZE;
        }
        if (bestJobs > 0) {
            return BatchCloseReason.PREFERRED_SIZE;
        }
        if (full != null) {
            return full;
        }
        if (delayNanos == 0) {
            return BatchCloseReason.NO_MORE;
        }
        if (now - (oldest + delayNanos) >= 0) {
            return BatchCloseReason.DELAY;
        }
        return closing ? BatchCloseReason.CLOSING : BatchCloseReason.NO_MORE;
    }

    /** Returns whether an open batch may have to wait for its queue delay, or waits without one. */
    boolean delays() {
        return (delayNanos > 0 || waitEnd != QueuedJob.NEVER) && held == 0 && !closing;
    }

    /** Returns when the wait of the batch at the head ends. The queue must not be empty. */
    long due() {
        if (delayNanos == 0) {
            return waitEnd;
        }
        extend();
        return oldest + delayNanos;
    }

    /**
     * Returns whether more is queued than {@code count} full batches take, so that one more thread has work. The exact
     * batches are known only when they are closed; counting jobs or rows is cheap and sufficient here.
     */
    boolean exceeds(int count) {
        return runner == null && !splits ? queue.size() > count : queue.rows() > (long) count * fullRows;
    }

    // ---- changes of the queue ----

    /** Called after a job was appended: discards the result if the job precedes the last visited one. */
    void arrived(QueuedJob e) {
        if (last != null && queue.precedes(e, last)) {
            reset();
        }
        if (queue.size() >= held) {
            held = 0;
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
        chosen = null;
        counted = false;
    }

    /** Called when the scheduler is being closed: all batches are closed without delay. */
    void stopWaiting() {
        closing = true;
        held = 0;
    }

    // ---- which jobs join ----

    /** Visits jobs from the last visited one on, until the batch is full or the queue ends. */
    private void extend() {
        QueuedJob e = last == null ? queue.head() : last.next;
        while (e != null && full == null) {
            QueuedJob batchHead = first;
            if (batchHead == null) {
                first = e;
                oldest = e.since;
                if (strategy != null) {
                    beginStrategy(strategy);
                }
            } else if (rows + e.rows > fullRows && e.split == null) {
                full = rows + e.rows > maxRows ? BatchCloseReason.MAX_SIZE : belowMaximum();
                return;
            } else if (runner == null || !runner.joinable(batchHead.job, e.job)) {
                full = BatchCloseReason.SHAPE;
                return;
            }
            // Also asked for the first job, so that the strategy can count it.
            boolean included = strategy == null || include(strategy, e.job);
            if (!included) {
                full = BatchCloseReason.STRATEGY;
                if (batchHead != null) {
                    return;
                }
            }
            join(e);
            e = e.next;
        }
    }

    private void join(QueuedJob e) {
        last = e;
        jobs++;
        if (e.split != null && rows + e.rows > fullRows) {
            // A split job fills the rest of the batch; its other rows stay in the queue.
            part = (int) (fullRows - rows);
        }
        rows += part > 0 ? part : e.rows;
        // Not necessarily the first: a job of a higher priority may have arrived after it.
        oldest = oldest - e.since > 0 ? e.since : oldest;
        if (rows <= maxRows && preferred.get((int) rows)) {
            bestJobs = jobs;
        }
        if (runner == null) {
            full = BatchCloseReason.SINGLE;
        } else if (rows >= fullRows && full == null) {
            full = rows >= maxRows ? BatchCloseReason.MAX_SIZE : belowMaximum();
        }
    }

    /** Returns why a batch is full that is smaller than the model's maximum. */
    private BatchCloseReason belowMaximum() {
        return fullRows == objectiveRows ? BatchCloseReason.OBJECTIVE : BatchCloseReason.PREFERRED_SIZE;
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

    // ---- the maximum number of enqueued batches ----

    /**
     * Returns whether a job may be appended without exceeding the maximum number of enqueued batches; if so, counts it.
     * Batches are closed only when they run, so this counts how many batches the queued jobs would form if each were as
     * full as possible. The count is extended by each appended job; it is computed again only after other changes.
     */
    boolean admits(QueuedJob e) {
        if (maxBatches <= 0) {
            return true;
        }
        // A cheap upper bound: each batch ends either at a full batch of rows or at a job that does not join.
        if (queue.size() + 1 + (queue.rows() + e.rows) / fullRows <= maxBatches) {
            counted = false;
            return true;
        }
        if (!counted) {
            countAll();
        }
        int batchesBefore = batches;
        long rowsBefore = lastBatchRows;
        InferenceJob headBefore = lastBatchHead;
        count(e);
        if (batches <= maxBatches) {
            return true;
        }
        batches = batchesBefore;
        lastBatchRows = rowsBefore;
        lastBatchHead = headBefore;
        return false;
    }

    /** After {@link #admits} has returned false: returns the number of enqueued batches. */
    int batches() {
        return batches;
    }

    int maxBatches() {
        return maxBatches;
    }

    private void countAll() {
        counted = true;
        batches = 0;
        lastBatchRows = 0;
        lastBatchHead = null;
        for (QueuedJob e = queue.head(); e != null; e = e.next) {
            count(e);
        }
    }

    private void count(QueuedJob e) {
        long free = lastBatchHead != null
                        && runner != null
                        && lastBatchRows < fullRows
                        && runner.joinable(lastBatchHead, e.job)
                ? fullRows - lastBatchRows
                : 0;
        if (e.rows <= free) {
            lastBatchRows += e.rows;
            return;
        }
        if (e.split == null) {
            batches++;
            lastBatchRows = e.rows;
        } else {
            // A split job fills the last batch, then as many further ones as it needs.
            long rest = e.rows - free;
            batches += (int) ((rest + fullRows - 1) / fullRows);
            lastBatchRows = (rest - 1) % fullRows + 1;
        }
        lastBatchHead = e.job;
    }
}
