// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.sequence;

import io.nereid.base.ServingException;
import io.nereid.scheduling.SchedulerOptions;
import io.nereid.scheduling.batcher.QueueErrors;
import io.nereid.scheduling.sequence.SequenceJob.Place;
import io.nereid.spi.InferenceJob;
import java.util.HashMap;
import java.util.Map;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The active sequences of a model by correlation id, their queued requests, and how they start, continue and end.
 * Guarded by the batcher's lock; actions that must run without it are added to a {@link DeferredActions}.
 *
 * <p>Invariant: at most one request of a sequence is in flight, from {@link #take} until it has ended or is
 * rescheduled. In that time the sequence's implicit states belong to that request, so that they need no lock.
 */
final class SequenceRegistry {
    private static final Logger LOG = LoggerFactory.getLogger(SequenceRegistry.class);

    private final SequenceBatcher batcher;
    private final SequenceSlots slots;
    private final SequenceTimeouts timeouts;
    private final int heldUntilQueued;
    private final int heldUntilBacklog;
    private final Map<Object, ActiveSequence> live = new HashMap<>();
    private int waiting;
    private int active;
    private long numbers;
    private boolean held;

    SequenceRegistry(
            SequenceBatcher batcher, SequenceSlots slots, SequenceTimeouts timeouts, SchedulerOptions options) {
        this.batcher = batcher;
        this.slots = slots;
        this.timeouts = timeouts;
        this.heldUntilQueued = options.delayScheduler();
        this.heldUntilBacklog = options.backlogDelayScheduler();
        this.held = heldUntilQueued > 0 || heldUntilBacklog > 0;
    }

    /** Returns the number of queued requests, in slots and in the backlog. */
    int waiting() {
        return waiting;
    }

    /** Returns whether no sequence is active. */
    boolean isEmpty() {
        return active == 0;
    }

    /** For tests: returns whether runs are still delayed. */
    boolean held() {
        return held;
    }

    void stopHolding() {
        held = false;
    }

    boolean isLive(Object id) {
        return live.containsKey(id);
    }

    /**
     * Queues a request of an active sequence, or one that starts a sequence.
     *
     * <p>The id is removed from the map as soon as the END request is queued, not when the sequence has finished: the
     * next request with this id starts a new sequence, even while the old one still has requests to run.
     */
    SequenceJob accept(InferenceJob job, Object id, boolean start, boolean end, DeferredActions out, long now) {
        ActiveSequence sequence = live.get(id);
        if (sequence == null) {
            sequence = new ActiveSequence(id);
            active++;
            if (!batcher.iterative && !end) {
                live.put(id, sequence);
            }
        } else {
            if (start) {
                out.add(() -> LOG.warn(
                        "model {}: sequence {} is started again without END", batcher.model, SequenceErrors.show(id)));
            }
            if (end) {
                live.remove(id);
            }
        }
        sequence.over = end;
        SequenceJob item = new SequenceJob(batcher, job, sequence, start, end, 0, now, numbers++);
        if (sequence.slot == null && !sequence.backlogged) {
            slots.place(sequence);
        }
        enqueue(item);
        updateIdle(sequence, now);
        if (held && enough()) {
            held = false;
            slots.tryScheduleAll(out, now);
        } else {
            trySchedule(sequence, out, now);
        }
        return item;
    }

    private boolean enough() {
        int backlogged = slots.backlogged();
        return waiting - backlogged >= heldUntilQueued && backlogged >= heldUntilBacklog;
    }

    private void enqueue(SequenceJob item) {
        ActiveSequence sequence = item.sequence;
        item.place = Place.WAITING;
        sequence.queue.add(item);
        waiting++;
        timeouts.add(item);
    }

    /** Restarts the idle time of a sequence, if it can become idle: it has a slot and expects more requests. */
    private void updateIdle(ActiveSequence sequence, long now) {
        if (sequence.over || batcher.iterative || sequence.slot == null) {
            timeouts.stopIdle(sequence);
        } else {
            timeouts.restartIdle(sequence, now);
        }
    }

    /** Lets the instance of a sequence check whether it can run a request now. */
    static void trySchedule(ActiveSequence sequence, DeferredActions out, long now) {
        SequenceSlot slot = sequence.slot;
        if (slot != null) {
            slot.batch.trySchedule(slot, out, now);
        }
    }

    /** Takes the next request of a sequence for a run; the sequence must be ready. */
    SequenceJob take(ActiveSequence sequence, long now) {
        SequenceJob item = sequence.queue.remove();
        item.place = Place.TAKEN;
        sequence.inFlight = item;
        waiting--;
        timeouts.remove(item);
        if (batcher.admission != null) {
            // Accepted requests stay when the queue is overloaded: they may belong to sequences in progress.
            var unused = batcher.admission.policy().taken(now, 1, now - item.since, waiting);
        }
        return item;
    }

    /** Called when a sequence from the backlog has been assigned to a slot: the timeout of its requests changes. */
    void assigned(ActiveSequence sequence, DeferredActions out, long now) {
        sequence.queue.forEach(timeouts::add);
        updateIdle(sequence, now);
        trySchedule(sequence, out, now);
    }

    /** Frees the slot of a sequence for the next one. */
    void release(ActiveSequence sequence, DeferredActions out, long now) {
        timeouts.stopIdle(sequence);
        slots.release(sequence, out, now);
    }

    /** Queues a rescheduled request for another run. */
    void again(SequenceJob item, DeferredActions out, long now) {
        item.sequence.inFlight = null;
        enqueue(new SequenceJob(batcher, item.job, item.sequence, false, false, item.runs + 1, now, numbers++));
        trySchedule(item.sequence, out, now);
    }

    /**
     * Fails a queued request and the requests of its sequence that depend on it.
     *
     * @param because the error of {@code item}
     * @param others the errors of the other requests
     */
    void drop(
            SequenceJob item,
            ServingException because,
            Function<InferenceJob, ServingException> others,
            DeferredActions out,
            long now) {
        ActiveSequence sequence = item.sequence;
        removeDependents(sequence, item, job -> job == item.job ? because : others.apply(job), out);
        settle(sequence, out, now);
        trySchedule(sequence, out, now);
    }

    /** Removes requests as {@link ActiveSequence#removeDependents} does, and fails them after the lock is released. */
    void removeDependents(
            ActiveSequence sequence,
            @Nullable SequenceJob item,
            Function<InferenceJob, ServingException> because,
            DeferredActions out) {
        for (SequenceJob removed : sequence.removeDependents(item, sequence.backlogged)) {
            removed.place = Place.GONE;
            waiting--;
            if (batcher.admission != null) {
                batcher.admission.policy().removed(1);
            }
            timeouts.remove(removed);
            ServingException why = because.apply(removed.job);
            out.add(() -> {
                removed.job.onCancel(null);
                removed.job.fail(why);
            });
        }
        if (sequence.over) {
            forget(sequence);
        }
    }

    /** Removes the id: the next request with it must start a new sequence. */
    void forget(ActiveSequence sequence) {
        live.remove(sequence.id, sequence);
        timeouts.stopIdle(sequence);
    }

    /** Finishes a sequence that expects no requests and has none queued or in flight: releases its states and slot. */
    void settle(ActiveSequence sequence, DeferredActions out, long now) {
        if (!sequence.over || !sequence.queue.isEmpty() || sequence.inFlight != null || sequence.finished) {
            return;
        }
        sequence.finished = true;
        active--;
        forget(sequence);
        sequence.release();
        slots.leave(sequence, out, now);
    }

    /** Fails requests that have timed out, and ends sequences that have been idle too long. */
    void expire(DeferredActions out, long now) {
        for (SequenceJob item = timeouts.timedOut(now); item != null; item = timeouts.timedOut(now)) {
            long deadline = item.deadlineNanos();
            if (deadline != SequenceTimeouts.NEVER && deadline - now <= 0) {
                drop(item, QueueErrors.late(item.job), SequenceErrors::broken, out, now);
            } else {
                ServingException why = SequenceErrors.backlogTimeout(item.job);
                drop(item, why, SequenceErrors::backlogTimeout, out, now);
            }
        }
        for (ActiveSequence s = timeouts.idle(now); s != null; s = timeouts.idle(now)) {
            LOG.debug("model {}: sequence {} was idle for too long", batcher.model, SequenceErrors.show(s.id));
            s.over = true;
            forget(s);
            settle(s, out, now);
        }
    }
}
