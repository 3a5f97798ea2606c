// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

import io.nereid.base.Clock;
import io.nereid.base.ServingException;
import io.nereid.scheduling.SequenceJob.Place;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.ModelConfig;
import io.nereid.spi.ModelConfig.Sequence;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The sequences of one model: which are under way, which have a place, which wait for one, and when each has been silent
 * for too long. Thread-safe: everything that changes is guarded by one short lock, which is never held while a job runs
 * or ends; an {@link Outbox} holds what is to be done afterwards.
 *
 * <p>At most one request of a sequence is in flight: {@link #take} hands it on, {@link #ended} or {@link #again} bring it
 * back, and until then the sequence's states belong to it.
 */
final class Sequences {
    static final long NEVER = Vigil.NEVER;
    private static final long DEFAULT_IDLE = 1_000_000_000L;
    private static final Logger LOG = LoggerFactory.getLogger(Sequences.class);

    final Object lock = new Object();
    final String model;
    final boolean iterative;
    final ControlTensors controls;
    final StateTensors states;
    final SequenceRefusals refusals;
    final DevicePool pool;
    final Clock clock;
    private final BatchRunner runner;
    private final int limit;
    private final int heldUntilQueued;
    private final int heldUntilBacklog;
    private final CompletableFuture<Void> drained = new CompletableFuture<>();

    private final Map<Object, Strand> live = new HashMap<>();
    private final Vigil vigil;
    private final Lanes lanes;
    private int waiting;
    private int strands;
    private long numbers;
    private boolean held;
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
        this.heldUntilQueued = options.delayScheduler();
        this.heldUntilBacklog = options.backlogDelayScheduler();
        this.held = heldUntilQueued > 0 || heldUntilBacklog > 0;
        this.lanes = new Lanes(this, config, sequence, runner, pool, options);
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
        Outbox out = new Outbox();
        job.queued(now);
        Arrival arrival = new Arrival();
        // Before the job can be taken: afterwards the action on cancellation belongs to whoever runs it.
        job.onCancel(arrival);
        ServingException refusal = null;
        synchronized (lock) {
            Strand strand = live.get(id);
            if (arrival.gone) {
                refusal = Refusals.cancelled(job);
            } else if (closed) {
                refusal = Refusals.closed(job);
            } else if (strand == null && !start) {
                refusal = refusals.notStarted(id);
            } else if (waiting >= limit) {
                refusal = Refusals.full(job, model, limit);
            } else {
                arrival.item = accept(job, strand, id, start, end, out, now);
                vigil.arm(lanes.due());
            }
        }
        if (refusal != null) {
            job.onCancel(null);
            throw refusal;
        }
        out.send();
    }

    private SequenceJob accept(
            InferenceJob job, @Nullable Strand known, Object id, boolean start, boolean end, Outbox out, long now) {
        Strand strand = known;
        if (strand == null) {
            strand = new Strand(id);
            strands++;
            if (!iterative && !end) {
                live.put(id, strand);
            }
        } else {
            if (start) {
                out.add(() -> LOG.warn(
                        "model {}: sequence {} starts anew before its END", model, SequenceRefusals.show(id)));
            }
            if (end) {
                live.remove(id);
            }
        }
        strand.over = end;
        SequenceJob item = new SequenceJob(this, job, strand, start, end, 0, now, numbers++);
        if (strand.slot == null && !strand.backlogged) {
            lanes.place(strand);
        }
        enqueue(item);
        listen(strand, now);
        if (held && waiting - lanes.backlogged() >= heldUntilQueued && lanes.backlogged() >= heldUntilBacklog) {
            held = false;
            lanes.stirAll(out, now);
        } else {
            stir(strand, out, now);
        }
        return item;
    }

    private void enqueue(SequenceJob item) {
        Strand strand = item.strand;
        item.place = Place.WAITING;
        strand.queue.add(item);
        waiting++;
        if (strand.backlogged) {
            lanes.backlogged(1);
        }
        vigil.waits(item);
    }

    /** The sequence was heard of, if its silence matters. */
    private void listen(Strand strand, long now) {
        if (strand.over || iterative || strand.slot == null) {
            vigil.leave(strand);
        } else {
            vigil.heard(strand, now);
        }
    }

    private static void stir(Strand strand, Outbox out, long now) {
        Slot slot = strand.slot;
        if (slot != null) {
            slot.lane.stir(slot, out, now);
        }
    }

    /** Hands on the next request of a sequence that is ready. */
    SequenceJob take(Strand strand) {
        SequenceJob item = strand.queue.remove();
        item.place = Place.TAKEN;
        strand.inFlight = item;
        waiting--;
        vigil.waitsNoMore(item);
        return item;
    }

    /** A sequence from the backlog has got a place. */
    void seated(Strand strand, Outbox out, long now) {
        strand.queue.forEach(vigil::waits);
        listen(strand, now);
        stir(strand, out, now);
    }

    /** The sequence gives its place to the next. */
    void release(Strand strand, Outbox out, long now) {
        vigil.leave(strand);
        lanes.release(strand, out, now);
    }

    boolean held() {
        return held;
    }

    boolean closed() {
        return closed;
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
                fall(strand, null, SequenceRefusals::broken, out);
            }
            settle(strand, out, now);
            stir(strand, out, now);
        });
    }

    /** A request that was handed on wants to be run again. */
    void again(SequenceJob item) {
        changed((out, now) -> {
            item.strand.inFlight = null;
            enqueue(new SequenceJob(this, item.job, item.strand, false, false, item.runs + 1, now, numbers++));
            stir(item.strand, out, now);
        });
    }

    private void cancelled(SequenceJob item) {
        changed((out, now) -> {
            if (item.place == Place.WAITING) {
                drop(item, Refusals.cancelled(item.job), SequenceRefusals::broken, out, now);
            }
        });
    }

    /** A request falls out of its queue, and with it what comes after it. */
    private void drop(
            SequenceJob item,
            ServingException because,
            Function<InferenceJob, ServingException> others,
            Outbox out,
            long now) {
        Strand strand = item.strand;
        fall(strand, item, job -> job == item.job ? because : others.apply(job), out);
        settle(strand, out, now);
        stir(strand, out, now);
    }

    private void fall(
            Strand strand, @Nullable SequenceJob item, Function<InferenceJob, ServingException> because, Outbox out) {
        for (SequenceJob fallen : strand.fall(item, strand.backlogged)) {
            fallen.place = Place.GONE;
            waiting--;
            if (strand.backlogged) {
                lanes.backlogged(-1);
            }
            vigil.waitsNoMore(fallen);
            ServingException why = because.apply(fallen.job);
            out.add(() -> {
                fallen.job.onCancel(null);
                fallen.job.fail(why);
            });
        }
        if (strand.over) {
            forget(strand);
        }
    }

    /** Whoever uses the id from now on must begin a new sequence. */
    private void forget(Strand strand) {
        live.remove(strand.id, strand);
        vigil.leave(strand);
    }

    /** Ends a sequence that has nothing left to do. */
    private void settle(Strand strand, Outbox out, long now) {
        if (!strand.over || !strand.queue.isEmpty() || strand.inFlight != null || strand.finished) {
            return;
        }
        strand.finished = true;
        strands--;
        forget(strand);
        strand.release();
        lanes.leave(strand, out, now);
    }

    /** Lets out what has waited too long, and ends what has been silent too long. */
    void sweep(Outbox out, long now) {
        for (SequenceJob item = vigil.late(now); item != null; item = vigil.late(now)) {
            long deadline = item.deadlineNanos();
            if (deadline != NEVER && deadline - now <= 0) {
                drop(item, Refusals.late(item.job), SequenceRefusals::broken, out, now);
            } else {
                ServingException why = SequenceRefusals.backlogTimeout(item.job);
                drop(item, why, SequenceRefusals::backlogTimeout, out, now);
            }
        }
        for (Strand s = vigil.silent(now); s != null; s = vigil.silent(now)) {
            LOG.debug("model {}: sequence {} was silent for too long", model, SequenceRefusals.show(s.id));
            s.over = true;
            forget(s);
            settle(s, out, now);
        }
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
            sweep(out, now);
            lanes.stirAll(out, now);
        });
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
            held = false;
            for (Strand strand : lanes.strands()) {
                strand.over |= !iterative;
                forget(strand);
                settle(strand, out, now);
            }
            lanes.stirAll(out, now);
        });
    }

    /** The pool is closed: what waits will never run. */
    void abandon() {
        changed((out, now) -> {
            for (Strand strand : lanes.strands()) {
                while (!strand.queue.isEmpty()) {
                    fall(strand, strand.queue.getFirst(), Refusals::closed, out);
                }
                strand.over = true;
                settle(strand, out, now);
            }
        });
    }

    /** After the last sequence of a closed batcher. */
    private void finish(Outbox out) {
        if (!closed || ending || strands > 0 || !lanes.quiet()) {
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
            return waiting + lanes.queued();
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
