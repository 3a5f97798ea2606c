// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.batcher;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.base.ServingException;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceRequest.Options;
import io.nereid.tensor.Tensor;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * A job with more rows than one batch, which is split (TensorFlow Serving: {@code enable_large_batch_splitting}). It
 * waits in the queue like any other job. When a batch is closed, the rows that remain free in it are filled with the
 * next rows of this job, as a {@link Piece}. The job ends once: with the concatenated outputs when all pieces have
 * completed, or with the first failure of a piece; then the remaining rows leave the queue and further results are
 * dropped.
 *
 * <p>Thread-safe by its own lock. Lock order: it may be taken while the batcher's lock is held, never the reverse. It
 * is not held while a job runs or ends.
 */
final class SplitJob implements InferenceJob {
    private final InferenceJob whole;
    private final InferenceRequest request;
    private final TensorRows rows;
    private final int size;

    /** Pieces in the order of their rows. */
    @GuardedBy("this") private final List<Piece> pieces = new ArrayList<>();
    /** Completed pieces, in the order of completion. */
    @GuardedBy("this") private final List<Piece> answered = new ArrayList<>();

    @GuardedBy("this") private @Nullable QueuedJob waiting;
    /** When the first piece started; {@link QueuedJob#NEVER} before that. */
    @GuardedBy("this") private long begun = QueuedJob.NEVER;

    private int cut;

    @GuardedBy("this") private int done;

    @GuardedBy("this") private boolean ended;

    /** Does not take ownership of the inputs: {@code whole} keeps them open until it ends. */
    SplitJob(InferenceJob whole) {
        this.whole = whole;
        this.request = whole.request();
        this.size = whole.batchSize();
        this.rows = new TensorRows(request.inputs(), size);
    }

    /** Returns the original job. */
    InferenceJob whole() {
        return whole;
    }

    /** Sets the entry in the queue that is withdrawn when a piece fails. */
    synchronized void queuedAs(QueuedJob entry) {
        waiting = entry;
    }

    /** Returns the next rows as a job for one run. Called under the batcher's lock; {@code count} rows must remain. */
    synchronized Piece cut(int count) {
        Piece piece = new Piece(cut, count);
        cut += count;
        pieces.add(piece);
        return piece;
    }

    /** Creates the inputs of the pieces in a batch. The caller must not hold the batcher's lock. */
    static void open(List<InferenceJob> jobs) {
        for (int i = 0; i < jobs.size(); i++) {
            if (jobs.get(i) instanceof Piece piece) {
                piece.open();
            }
        }
    }

    @Override
    public InferenceRequest request() {
        return request;
    }

    @Override
    public int batchSize() {
        return size;
    }

    @Override
    public long deadlineNanos() {
        return whole.deadlineNanos();
    }

    @Override
    public boolean refusable() {
        return whole.refusable();
    }

    @Override
    public boolean cancelled() {
        return whole.cancelled();
    }

    /** Sets the queue's action. On cancellation, the actions of pieces that are running are called too. */
    @Override
    public void onCancel(@Nullable Runnable action) {
        whole.onCancel(action == null ? null : () -> cancelAll(action));
    }

    private void cancelAll(Runnable action) {
        action.run();
        running().forEach(Piece::stop);
    }

    private synchronized List<Piece> running() {
        List<Piece> running = new ArrayList<>(pieces);
        running.removeIf(p -> p.over);
        return running;
    }

    @Override
    public void respond(List<Tensor> outputs, Map<String, Object> parameters) {
        whole.respond(outputs, parameters);
    }

    @Override
    public void complete(List<Tensor> outputs, Map<String, Object> parameters) {
        whole.complete(outputs, parameters);
    }

    @Override
    public void fail(ServingException e) {
        if (end()) {
            whole.fail(e);
        }
    }

    /** Fails the job while it is queued; the error is not delayed by the ordering of responses. */
    void failQueued(ServingException e) {
        if (end()) {
            OrderedJob.fail(whole, e);
        }
    }

    /** Drops the pieces and the remaining rows; returns true once, and the caller must then fail the original job. */
    private boolean end() {
        List<Piece> kept;
        List<Piece> started;
        QueuedJob entry;
        long since;
        synchronized (this) {
            if (ended) {
                return false;
            }
            ended = true;
            kept = List.copyOf(answered);
            answered.clear();
            started = List.copyOf(pieces);
            entry = waiting;
            since = begun;
        }
        if (entry != null) {
            entry.withdraw();
        }
        kept.forEach(p -> Tensor.closeAll(p.outputs));
        started.forEach(Piece::stop);
        whole.onCancel(null);
        if (since != QueuedJob.NEVER) {
            whole.started(since);
        }
        return true;
    }

    /** Completes the original job after the last piece. */
    private void join(List<Piece> inRowOrder, List<Piece> inCompletionOrder) {
        whole.onCancel(null);
        for (Piece p : inCompletionOrder) {
            whole.started(p.startedAt);
            whole.ran(p.from, p.to, p.rowsOfRun);
        }
        List<Tensor> joined;
        try {
            joined = TensorRows.join(inRowOrder.stream().map(p -> p.outputs).toList());
        } catch (RuntimeException e) {
            whole.fail(ServingException.from(e));
            return;
        } finally {
            inRowOrder.forEach(p -> Tensor.closeAll(p.outputs));
        }
        whole.complete(joined, inRowOrder.get(0).parameters);
    }

    /**
     * Some rows of the job in one run. The time stamps are set by the thread that runs the piece; all other fields are
     * guarded by the lock of the whole job.
     */
    final class Piece implements InferenceJob {
        private final int begin;
        private final int count;
        private @Nullable InferenceRequest part;

        @GuardedBy("SplitJob.this") private @Nullable Runnable action;

        private List<Tensor> outputs = List.of();
        private Map<String, Object> parameters = Map.of();

        private boolean over;

        private long startedAt;
        private long from;
        private long to;
        private int rowsOfRun;

        private Piece(int begin, int count) {
            this.begin = begin;
            this.count = count;
        }

        /** Creates the slices of the inputs, unless the job has ended, after which the inputs may be closed. */
        private void open() {
            synchronized (SplitJob.this) {
                if (!ended) {
                    Options o = request.options();
                    part = new InferenceRequest(
                            request.model(),
                            request.id(),
                            rows.slice(begin, count),
                            request.outputs(),
                            request.parameters(),
                            request.deadlineNanos(),
                            request.arrivedNanos(),
                            new Options(o.priority(), o.timeoutNanos(), o.sequence(), null, o.signature()));
                }
            }
        }

        /** Returns the job that was split. */
        SplitJob job() {
            return SplitJob.this;
        }

        @Override
        public InferenceRequest request() {
            InferenceRequest own = part;
            return own == null ? request : own;
        }

        @Override
        public int batchSize() {
            return count;
        }

        @Override
        public boolean cancelled() {
            synchronized (SplitJob.this) {
                if (ended) {
                    return true;
                }
            }
            return whole.cancelled();
        }

        @Override
        public void onCancel(@Nullable Runnable newAction) {
            synchronized (SplitJob.this) {
                action = newAction;
            }
            if (newAction != null && cancelled()) {
                stop();
            }
        }

        /** Calls the action on cancellation of the run, whose result is no longer needed. */
        private void stop() {
            Runnable now;
            synchronized (SplitJob.this) {
                now = action;
                action = null;
            }
            if (now != null) {
                now.run();
            }
        }

        @Override
        public void started(long nanos) {
            startedAt = nanos;
            synchronized (SplitJob.this) {
                begun = begun == QueuedJob.NEVER ? nanos : begun;
            }
        }

        @Override
        public void ran(long runFrom, long runTo, int runRows) {
            from = runFrom;
            to = runTo;
            rowsOfRun = runRows;
        }

        @Override
        public void respond(List<Tensor> answer, Map<String, Object> answerParameters) {
            Tensor.closeAll(answer);
        }

        @Override
        public void complete(List<Tensor> answer, Map<String, Object> answerParameters) {
            List<Piece> all = List.of();
            List<Piece> completed = List.of();
            boolean kept = false;
            synchronized (SplitJob.this) {
                if (!over) {
                    over = true;
                    release();
                    // After a failure of another piece this result is dropped.
                    if (!ended) {
                        kept = true;
                        outputs = answer;
                        parameters = answerParameters;
                        answered.add(this);
                        done += count;
                        if (done == size) {
                            ended = true;
                            all = List.copyOf(pieces);
                            completed = List.copyOf(answered);
                        }
                    }
                }
            }
            if (!kept) {
                Tensor.closeAll(answer);
            }
            if (!all.isEmpty()) {
                join(all, completed);
            }
        }

        @Override
        public void fail(ServingException e) {
            synchronized (SplitJob.this) {
                if (over) {
                    return;
                }
                over = true;
                release();
            }
            SplitJob.this.fail(e);
        }

        private void release() {
            InferenceRequest own = part;
            if (own != null) {
                own.release();
            }
        }
    }
}
