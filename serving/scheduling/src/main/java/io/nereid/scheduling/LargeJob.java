// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

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
 * A job with more rows than one run takes. It waits in its place like any other and is cut, piece by piece, when batches
 * are: whatever room a batch has left is filled with its next rows. The job ends once: with the joined answer when all
 * pieces have ended, or with the first failure of one, after which the rest neither waits nor counts. Thread-safe by its
 * own lock, which may be taken under the queue's and is never held while anything runs or ends.
 */
final class LargeJob implements InferenceJob {
    private final InferenceJob whole;
    private final InferenceRequest request;
    private final Rows rows;
    private final int size;

    /** In the order of the rows. */
    private final List<Piece> pieces = new ArrayList<>();
    /** Those that are answered, in the order of the answers. */
    private final List<Piece> answered = new ArrayList<>();

    private @Nullable Entry waiting;
    /** When the first piece began; {@link Entry#NEVER} before. */
    private long begun = Entry.NEVER;

    private int cut;
    private int done;
    private boolean ended;

    /** Takes nothing over: until it ends, the whole keeps its inputs open. */
    LargeJob(InferenceJob whole) {
        this.whole = whole;
        this.request = whole.request();
        this.size = whole.batchSize();
        this.rows = new Rows(request.inputs(), size);
    }

    /** The job itself. */
    InferenceJob whole() {
        return whole;
    }

    /** Sets its place in the queue, which it gives up should a piece fail. */
    synchronized void waits(Entry entry) {
        waiting = entry;
    }

    /** The next rows, as a job for one run. Called under the queue's lock, with no more rows than are left. */
    synchronized Piece cut(int count) {
        Piece piece = new Piece(cut, count);
        cut += count;
        pieces.add(piece);
        return piece;
    }

    /** Gives the pieces among the jobs of a batch their inputs; without the queue's lock. */
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
    public boolean cancelled() {
        return whole.cancelled();
    }

    /** The queue's action; runs that are under way have their own. */
    @Override
    public void onCancel(@Nullable Runnable action) {
        whole.onCancel(action == null ? null : () -> gone(action));
    }

    private void gone(Runnable action) {
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

    /** Fails it while it waits: nobody waits for its turn. */
    void refuse(ServingException e) {
        if (end()) {
            Ordered.fail(whole, e);
        }
    }

    /** Ends everything but the job itself; true once, for the caller to fail it. */
    private boolean end() {
        List<Piece> kept;
        List<Piece> started;
        Entry entry;
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
        if (since != Entry.NEVER) {
            whole.started(since);
        }
        return true;
    }

    /** The last piece is answered. */
    private void join() {
        whole.onCancel(null);
        for (Piece p : answered) {
            whole.started(p.startedAt);
            whole.ran(p.from, p.to, p.rowsOfRun);
        }
        List<Tensor> joined;
        try {
            joined = Rows.join(pieces.stream().map(p -> p.outputs).toList());
        } catch (RuntimeException e) {
            whole.fail(ServingException.from(e));
            return;
        } finally {
            pieces.forEach(p -> Tensor.closeAll(p.outputs));
        }
        whole.complete(joined, pieces.get(0).parameters);
    }

    /** Some rows of the job, in one run. Marks are set by the thread that has the piece; the rest under the job's lock. */
    final class Piece implements InferenceJob {
        private final int begin;
        private final int count;
        private @Nullable InferenceRequest part;
        private @Nullable Runnable action;
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

        /** Takes its rows, unless the job has ended and they may be gone. */
        private void open() {
            synchronized (LargeJob.this) {
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

        /** The job itself: the one that was cut. */
        LargeJob job() {
            return LargeJob.this;
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
            synchronized (LargeJob.this) {
                if (ended) {
                    return true;
                }
            }
            return whole.cancelled();
        }

        @Override
        public void onCancel(@Nullable Runnable newAction) {
            synchronized (LargeJob.this) {
                action = newAction;
            }
            if (newAction != null && cancelled()) {
                stop();
            }
        }

        /** Nobody waits for this run any more. */
        private void stop() {
            Runnable now;
            synchronized (LargeJob.this) {
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
            synchronized (LargeJob.this) {
                begun = begun == Entry.NEVER ? nanos : begun;
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
            boolean last = false;
            boolean kept = false;
            synchronized (LargeJob.this) {
                if (!over) {
                    over = true;
                    release();
                    if (!ended) {
                        kept = true;
                        outputs = answer;
                        parameters = answerParameters;
                        answered.add(this);
                        done += count;
                        last = done == size;
                        ended = last;
                    }
                }
            }
            if (!kept) {
                Tensor.closeAll(answer);
            }
            if (last) {
                join();
            }
        }

        @Override
        public void fail(ServingException e) {
            synchronized (LargeJob.this) {
                if (over) {
                    return;
                }
                over = true;
                release();
            }
            LargeJob.this.fail(e);
        }

        private void release() {
            InferenceRequest own = part;
            if (own != null) {
                own.release();
            }
        }
    }
}
