// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

import io.nereid.base.Clock;
import io.nereid.base.ServingException;
import io.nereid.scheduling.SequenceJob.Place;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.ModelConfig;
import io.nereid.spi.ModelConfig.Sequence;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import org.jspecify.annotations.Nullable;

/**
 * The sequences of one model, and the one short lock that guards all that changes: the {@link SequenceBook}, the
 * {@link Lanes} and the {@link Vigil}. Thread-safe: the lock is never held while a job runs or ends; an {@link Outbox}
 * holds what is to be done afterwards.
 */
final class Sequences {
    static final long NEVER = Vigil.NEVER;
    private static final long DEFAULT_IDLE = 1_000_000_000L;

    final Object lock = new Object();
    final String model;
    final boolean iterative;
    final ControlTensors controls;
    final StateTensors states;
    final SequenceRefusals refusals;
    final DevicePool pool;
    final Clock clock;
    final SequenceBook book;
    private final BatchRunner runner;
    private final int limit;
    private final CompletableFuture<Void> drained = new CompletableFuture<>();

    private final Vigil vigil;
    private final Lanes lanes;
    private boolean closed;
    private boolean ending;

    Sequences(
            ModelConfig config,
            Sequence sequence,
            BatchRunner runner,
            DevicePool pool,
            SchedulerOptions options,
            ControlTensors controls,
            StateTensors states) {
        this.model = config.name();
        this.iterative = sequence.iterative();
        this.controls = controls;
        this.states = states;
        this.refusals = new SequenceRefusals(model);
        this.runner = runner;
        this.pool = pool;
        this.clock = pool.clock();
        this.limit = config.queue().maxSize() > 0 ? config.queue().maxSize() : options.maxQueueSize();
        long maxIdle = sequence.maxIdle().toNanos();
        this.vigil = new Vigil(maxIdle > 0 ? maxIdle : DEFAULT_IDLE, pool.timer(), this::alarm);
        this.lanes = new Lanes(this, config, sequence, runner, pool, options);
        this.book = new SequenceBook(this, lanes, vigil, options);
        try {
            resize(Math.max(1, config.instances()));
        } catch (RuntimeException e) {
            lanes.close();
            throw e;
        }
    }

    /** Takes a request in, or throws. */
    void submit(InferenceJob job, Object id, boolean start, boolean end) {
        long now = clock.nanos();
        Outbox out = new Outbox(true);
        job.queued(now);
        Arrival arrival = new Arrival();
        // Before the job can be taken: afterwards the action on cancellation belongs to whoever runs it.
        job.onCancel(arrival);
        ServingException refusal = null;
        synchronized (lock) {
            if (arrival.gone) {
                refusal = Refusals.cancelled(job);
            } else if (closed) {
                refusal = Refusals.closed(job);
            } else if (!start && !book.isLive(id)) {
                refusal = refusals.notStarted(id);
            } else if (book.waiting() >= limit) {
                refusal = Refusals.full(job, model, limit);
            } else {
                arrival.item = book.accept(job, id, start, end, out, now);
                vigil.arm(lanes.due());
            }
        }
        if (refusal != null) {
            job.onCancel(null);
            throw refusal;
        }
        out.send();
    }

    /** Whether two requests, each the next of its sequence, may share a batch. */
    boolean joinable(SequenceJob a, SequenceJob b) {
        return states.sameShapes(a.strand, a.start, b.strand, b.start) && runner.joinable(a.job, b.job);
    }

    /** A request that was handed on has ended; {@code broken} when its sequence cannot go on without it. */
    void ended(SequenceJob item, boolean broken) {
        changed((out, now) -> {
            Strand strand = item.strand;
            strand.inFlight = null;
            strand.over |= iterative;
            if (broken) {
                book.fall(strand, null, SequenceRefusals::broken, out);
            }
            book.settle(strand, out, now);
            SequenceBook.stir(strand, out, now);
        });
    }

    /** A request that was handed on wants to be run again. */
    void again(SequenceJob item) {
        changed((out, now) -> book.again(item, out, now));
    }

    private void cancelled(SequenceJob item) {
        changed((out, now) -> {
            if (item.place == Place.WAITING) {
                book.drop(item, Refusals.cancelled(item.job), SequenceRefusals::broken, out, now);
            }
        });
    }

    /** A lane has no run under way. */
    void settled(SequenceLane lane, Outbox out) {
        lanes.settled(lane, out);
        vigil.arm(lanes.due());
        finish(out);
    }

    private void alarm() {
        changed((out, now) -> {
            vigil.disarm();
            book.sweep(out, now);
            lanes.stirAll(out, now);
        });
    }

    boolean closed() {
        return closed;
    }

    void resize(int count) {
        changed((out, now) -> lanes.resize(count, out, now));
    }

    /** A lane was made. */
    void opened(SequenceLane lane) {
        changed((out, now) -> lanes.opened(lane, out, now));
    }

    /** A lane could not be made. */
    void notOpened(int instance) {
        changed((out, now) -> lanes.notOpened(instance));
    }

    /** The runner knows that a lane is gone; it may have been wanted again since. */
    void retired(SequenceLane lane) {
        changed((out, now) -> lanes.retired(lane, out, now));
    }

    void close() {
        changed((out, now) -> {
            closed = true;
            book.holdNoMore();
            for (Strand strand : lanes.strands()) {
                strand.over |= !iterative;
                book.forget(strand);
                book.settle(strand, out, now);
            }
            lanes.stirAll(out, now);
        });
    }

    /** The pool is closed: what waits will never run. */
    void abandon() {
        changed((out, now) -> {
            for (Strand strand : lanes.strands()) {
                while (!strand.queue.isEmpty()) {
                    book.fall(strand, strand.queue.getFirst(), Refusals::closed, out);
                }
                strand.over = true;
                book.settle(strand, out, now);
            }
        });
    }

    /** After the last sequence of a closed batcher. */
    private void finish(Outbox out) {
        if (!closed || ending || !book.isEmpty() || !lanes.quiet()) {
            return;
        }
        ending = true;
        vigil.disarm();
        out.add(() -> lanes.close().whenComplete((nothing, e) -> {
            controls.close();
            states.close();
            drained.complete(null);
        }));
    }

    private void changed(Change change) {
        long now = clock.nanos();
        Outbox out = new Outbox();
        synchronized (lock) {
            change.apply(out, now);
            vigil.arm(lanes.due());
            finish(out);
        }
        out.send();
    }

    CompletionStage<Void> drained() {
        return drained.minimalCompletionStage();
    }

    int instances() {
        synchronized (lock) {
            return lanes.wanted();
        }
    }

    int queued() {
        synchronized (lock) {
            return book.waiting() + lanes.queued();
        }
    }

    int running() {
        synchronized (lock) {
            return lanes.running();
        }
    }

    long batches() {
        synchronized (lock) {
            return lanes.batches();
        }
    }

    /** What happens under the lock. */
    private interface Change {
        void apply(Outbox out, long now);
    }

    /** The action on cancellation of a request that waits. */
    private final class Arrival implements Runnable {
        boolean gone;

        @Nullable SequenceJob item;

        @Override
        public void run() {
            SequenceJob accepted;
            synchronized (lock) {
                gone = true;
                accepted = item;
            }
            if (accepted != null) {
                cancelled(accepted);
            }
        }
    }
}
