// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

import io.nereid.base.ServingException;
import io.nereid.scheduling.SequenceJob.Place;
import io.nereid.spi.InferenceJob;
import java.util.HashMap;
import java.util.Map;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Which sequences are under way, what they have queued, and how they begin, go on and end. Guarded by the batcher's lock;
 * what is to be done without it goes into an {@link Outbox}.
 *
 * <p>At most one request of a sequence is in flight: {@link #take} hands it on, and until it comes back the sequence's
 * states belong to it.
 */
final class SequenceBook {
    private static final Logger LOG = LoggerFactory.getLogger(SequenceBook.class);

    private final Sequences sequences;
    private final Lanes lanes;
    private final Vigil vigil;
    private final int heldUntilQueued;
    private final int heldUntilBacklog;
    private final Map<Object, Strand> live = new HashMap<>();
    private int waiting;
    private int strands;
    private long numbers;
    private boolean held;

    SequenceBook(Sequences sequences, Lanes lanes, Vigil vigil, SchedulerOptions options) {
        this.sequences = sequences;
        this.lanes = lanes;
        this.vigil = vigil;
        this.heldUntilQueued = options.delayScheduler();
        this.heldUntilBacklog = options.backlogDelayScheduler();
        this.held = heldUntilQueued > 0 || heldUntilBacklog > 0;
    }

    /** Requests that wait in places or in the backlog. */
    int waiting() {
        return waiting;
    }

    /** Whether no sequence is under way. */
    boolean isEmpty() {
        return strands == 0;
    }

    /** For tests: whether nothing runs yet. */
    boolean held() {
        return held;
    }

    void holdNoMore() {
        held = false;
    }

    boolean isLive(Object id) {
        return live.containsKey(id);
    }

    /** Takes a request of a live sequence, or one that starts one. */
    SequenceJob accept(InferenceJob job, Object id, boolean start, boolean end, Outbox out, long now) {
        Strand strand = live.get(id);
        if (strand == null) {
            strand = new Strand(id);
            strands++;
            if (!sequences.iterative && !end) {
                live.put(id, strand);
            }
        } else {
            if (start) {
                out.add(() -> LOG.warn(
                        "model {}: sequence {} starts anew before its END",
                        sequences.model,
                        SequenceRefusals.show(id)));
            }
            if (end) {
                live.remove(id);
            }
        }
        strand.over = end;
        SequenceJob item = new SequenceJob(sequences, job, strand, start, end, 0, now, numbers++);
        if (strand.slot == null && !strand.backlogged) {
            lanes.place(strand);
        }
        enqueue(item);
        listen(strand, now);
        if (held && enough()) {
            held = false;
            lanes.stirAll(out, now);
        } else {
            stir(strand, out, now);
        }
        return item;
    }

    private boolean enough() {
        int backlogged = lanes.backlogged();
        return waiting - backlogged >= heldUntilQueued && backlogged >= heldUntilBacklog;
    }

    private void enqueue(SequenceJob item) {
        Strand strand = item.strand;
        item.place = Place.WAITING;
        strand.queue.add(item);
        waiting++;
        vigil.waits(item);
    }

    /** The sequence was heard of, if its silence matters. */
    private void listen(Strand strand, long now) {
        if (strand.over || sequences.iterative || strand.slot == null) {
            vigil.leave(strand);
        } else {
            vigil.heard(strand, now);
        }
    }

    static void stir(Strand strand, Outbox out, long now) {
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

    /** A request that was handed on waits for another run. */
    void again(SequenceJob item, Outbox out, long now) {
        item.strand.inFlight = null;
        enqueue(new SequenceJob(sequences, item.job, item.strand, false, false, item.runs + 1, now, numbers++));
        stir(item.strand, out, now);
    }

    /** A request falls out of its queue, and with it what comes after it. */
    void drop(
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

    void fall(Strand strand, @Nullable SequenceJob item, Function<InferenceJob, ServingException> because, Outbox out) {
        for (SequenceJob fallen : strand.fall(item, strand.backlogged)) {
            fallen.place = Place.GONE;
            waiting--;
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
    void forget(Strand strand) {
        live.remove(strand.id, strand);
        vigil.leave(strand);
    }

    /** Ends a sequence that has nothing left to do. */
    void settle(Strand strand, Outbox out, long now) {
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
            if (deadline != Vigil.NEVER && deadline - now <= 0) {
                drop(item, Refusals.late(item.job), SequenceRefusals::broken, out, now);
            } else {
                ServingException why = SequenceRefusals.backlogTimeout(item.job);
                drop(item, why, SequenceRefusals::backlogTimeout, out, now);
            }
        }
        for (Strand s = vigil.silent(now); s != null; s = vigil.silent(now)) {
            LOG.debug("model {}: sequence {} was silent for too long", sequences.model, SequenceRefusals.show(s.id));
            s.over = true;
            forget(s);
            settle(s, out, now);
        }
    }
}
