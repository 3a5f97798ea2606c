// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.python;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * The workers of a model's instances: lends them to runs and replaces those that die.
 *
 * <p>Every instance has a slot with one worker. The first replacement starts at once. If a worker dies within 30 seconds
 * of its start and before it has completed a run, the pause before the next start doubles from 0.5 to 30 seconds. A run
 * waits for its instance's worker through the start and through short pauses. It uses the worker of another instance of
 * the model that is free meanwhile, unless the model keeps sequences or is decoupled. In a long pause, when no instance
 * has a worker, runs fail at once with UNAVAILABLE.
 *
 * <p>Thread-safe, by its lock. Starts and the end of processes are outside of the lock.
 */
final class WorkerPool {
    private static final System.Logger LOG = System.getLogger("io.nereid.backends.python");
    private static final Duration SOON = Duration.ofSeconds(30);
    private static final long FIRST_PAUSE_MILLIS = 500;
    private static final long LONGEST_PAUSE_MILLIS = 30_000;
    /** Runs wait through the pauses that follow up to this many deaths in a row: 1.5 seconds in all. */
    private static final int DEATHS_TO_WAIT_THROUGH = 3;

    private final PythonModel model;

    @GuardedBy("this") private final List<Slot> slots = new ArrayList<>();

    @GuardedBy("this") private int waiting;

    /** One instance's place for a worker. Guarded by the pool's lock. */
    static final class Slot {
        private final int index;
        private @Nullable Worker worker;
        private boolean lent;
        /** Whether a worker is starting now; otherwise a slot without a live worker pauses until {@code pausedUntil}. */
        private boolean starting;

        private long startedAt;
        private long pausedUntil;
        private int deaths;
        private @Nullable ServingException lastFailure;
        private boolean closed;

        private Slot(int index) {
            this.index = index;
        }

        private boolean free() {
            return worker != null && worker.alive() && !lent && !closed;
        }
    }

    /** A worker for one run, with the slot that it belongs to. */
    record Lease(Slot slot, Worker worker) {}

    WorkerPool(PythonModel model) {
        this.model = model;
    }

    private static long now() {
        return Clock.system().nanos();
    }

    /** Adds the slot of an instance, with its running worker. */
    Slot open(int index, Worker first) {
        Slot slot = new Slot(index);
        synchronized (this) {
            slot.worker = first;
            slot.startedAt = now();
            slots.add(slot);
        }
        watch(slot, first);
        return slot;
    }

    private void watch(Slot slot, Worker worker) {
        var unused = worker.death().thenAccept(reason -> died(slot, worker, reason));
    }

    private synchronized void died(Slot slot, Worker worker, ServingException reason) {
        if (slot.worker == worker) {
            slot.worker = null;
            slot.lent = false;
            restart(slot, reason);
        }
        notifyAll();
    }

    /** Schedules the start of another worker, now or after a pause. */
    @GuardedBy("this") private void restart(Slot slot, ServingException reason) {
        if (slot.closed || model.closed()) {
            return;
        }
        slot.deaths = now() - slot.startedAt > SOON.toNanos() ? 1 : slot.deaths + 1;
        slot.lastFailure = reason;
        long pause = slot.deaths == 1
                ? 0
                : Math.min(LONGEST_PAUSE_MILLIS, FIRST_PAUSE_MILLIS << Math.min(16, slot.deaths - 2));
        slot.starting = pause == 0;
        slot.pausedUntil = now() + TimeUnit.MILLISECONDS.toNanos(pause);
        try {
            var unused = model.timer()
                    .schedule(() -> model.starters().execute(() -> begin(slot)), pause, TimeUnit.MILLISECONDS);
        } catch (RejectedExecutionException e) {
            // The model was closed meanwhile; its instances follow.
            LOG.log(System.Logger.Level.DEBUG, model.config().name() + ": no restart, the model is closed");
        }
    }

    private void begin(Slot slot) {
        synchronized (this) {
            if (slot.closed) {
                return;
            }
            slot.starting = true;
            slot.startedAt = now();
        }
        Worker worker = null;
        ServingException reason = null;
        try {
            worker = model.start(slot.index);
        } catch (RuntimeException e) {
            reason = ServingException.from(e);
            LOG.log(
                    System.Logger.Level.ERROR,
                    model.config().name() + "_" + slot.index + ": cannot be restarted: " + reason.describe());
        }
        boolean late;
        synchronized (this) {
            late = slot.closed;
            slot.starting = false;
            if (worker == null) {
                restart(slot, Objects.requireNonNull(reason, "reason"));
            } else if (!late) {
                slot.startedAt = now();
                slot.worker = worker;
            }
            notifyAll();
        }
        if (worker != null && late) {
            worker.finish();
        } else if (worker != null) {
            watch(slot, worker);
            LOG.log(
                    System.Logger.Level.INFO,
                    model.config().name() + "_" + slot.index + ": restarted as process " + worker.pid());
        }
    }

    /**
     * Lends a worker that nothing else uses, preferably the slot's own; waits for one.
     *
     * @param pinned whether only the slot's own worker may run the requests
     * @throws ServingException UNAVAILABLE when there is none and none is about to start
     */
    synchronized Lease take(Slot own, boolean pinned) {
        while (true) {
            Slot free = own.free() ? own : pinned ? null : otherFree();
            if (free != null && free.worker != null) {
                free.lent = true;
                return new Lease(free, free.worker);
            }
            if (own.closed || model.closed()) {
                throw ServingException.of(
                        ErrorCode.UNAVAILABLE, "model '" + model.config().name() + "' was unloaded");
            }
            if (own.worker == null
                    && !own.starting
                    && own.deaths > DEATHS_TO_WAIT_THROUGH
                    && (pinned || slots.stream().noneMatch(s -> s.worker != null))) {
                long pause = Math.max(0, TimeUnit.NANOSECONDS.toMillis(own.pausedUntil - now()));
                throw ServingException.of(
                        ErrorCode.UNAVAILABLE,
                        "model '" + model.config().name() + "' has no Python process: it died " + own.deaths
                                + " times in a row, last: "
                                + (own.lastFailure == null ? "unknown" : own.lastFailure.getMessage()),
                        "the next one starts in " + (pause + 1) + " ms");
            }
            waiting++;
            try {
                wait();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw ServingException.of(ErrorCode.UNAVAILABLE, "waiting for the Python process was interrupted");
            } finally {
                waiting--;
            }
        }
    }

    @GuardedBy("this") private @Nullable Slot otherFree() {
        for (Slot slot : slots) {
            if (slot.free()) {
                return slot;
            }
        }
        return null;
    }

    /**
     * Ends the use of a worker.
     *
     * @param completed whether it has completed its run, after which its death is the first one again
     */
    synchronized void giveBack(Lease lease, boolean completed) {
        Slot slot = lease.slot();
        if (slot.worker == lease.worker()) {
            slot.lent = false;
            if (completed) {
                slot.deaths = 0;
            }
        }
        if (waiting > 0) {
            notifyAll();
        }
    }

    /** The model was closed: ends the waits of runs. */
    synchronized void wake() {
        notifyAll();
    }

    /** The instance is closed: removes its slot and ends its worker, after the run that uses it. */
    void close(Slot slot) {
        Worker worker;
        synchronized (this) {
            slot.closed = true;
            boolean interrupted = false;
            while (slot.lent && slot.worker != null && slot.worker.alive()) {
                // The run of another instance has borrowed it.
                try {
                    waiting++;
                    wait();
                } catch (InterruptedException e) {
                    interrupted = true;
                } finally {
                    waiting--;
                }
            }
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
            worker = slot.worker;
            slots.remove(slot);
            notifyAll();
        }
        if (worker != null) {
            worker.finish();
        }
    }
}
