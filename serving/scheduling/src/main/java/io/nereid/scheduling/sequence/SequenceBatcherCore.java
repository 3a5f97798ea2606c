// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.sequence;

import io.nereid.base.Clock;
import io.nereid.base.ServingException;
import io.nereid.scheduling.BatchRunner;
import io.nereid.scheduling.SchedulerOptions;
import io.nereid.scheduling.execution.DeviceExecutor;
import io.nereid.scheduling.queue.QueueErrors;
import io.nereid.scheduling.sequence.SequenceJob.Place;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.SequenceBatching;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import org.jspecify.annotations.Nullable;

/**
 * The state of a sequence batcher and the lock that guards it. Three classes share the work: the
 * {@link SequenceRegistry} knows the active sequences and their queues, {@link SequenceSlots} assigns them to slots of
 * instances, and the {@link SequenceTimeouts} holds all timeouts.
 *
 * <p>Thread-safe: one short lock for all of it, since most events concern a sequence, its slot and its timeout
 * together. The lock is never held while a job runs or ends: what must be done outside it is collected in an
 * {@link DeferredActions} under the lock and executed after it is released. Every change passes through
 * {@link #changed}, which afterwards also sets the timer and detects the end of a closed batcher.
 */
public final class SequenceBatcherCore {
    public static final long NEVER = SequenceTimeouts.NEVER;
    private static final long DEFAULT_IDLE = 1_000_000_000L;

    final Object lock = new Object();
    final String model;
    final boolean iterative;
    final SequenceControls controls;
    final ImplicitStates states;
    public final SequenceErrors errors;
    final DeviceExecutor pool;
    public final Clock clock;
    final SequenceRegistry registry;
    private final BatchRunner runner;
    private final int limit;
    private final CompletableFuture<Void> drained = new CompletableFuture<>();

    private final SequenceTimeouts timeouts;
    private final SequenceSlots slots;
    private boolean closed;
    private boolean ending;

    public SequenceBatcherCore(
            ModelConfig config,
            SequenceBatching sequence,
            BatchRunner runner,
            DeviceExecutor pool,
            SchedulerOptions options,
            SequenceControls controls,
            ImplicitStates states) {
        this.model = config.name();
        this.iterative = sequence.iterative();
        this.controls = controls;
        this.states = states;
        this.errors = new SequenceErrors(model);
        this.runner = runner;
        this.pool = pool;
        this.clock = pool.clock();
        this.limit = config.queue().maxSize() > 0 ? config.queue().maxSize() : options.maxQueueSize();
        long maxIdle = sequence.maxIdle().toNanos();
        this.timeouts = new SequenceTimeouts(maxIdle > 0 ? maxIdle : DEFAULT_IDLE, pool.timer(), this::onTimer);
        this.slots = new SequenceSlots(this, config, sequence, runner, pool, options);
        this.registry = new SequenceRegistry(this, slots, timeouts, options);
        try {
            resize(Math.max(1, config.instances()));
        } catch (RuntimeException e) {
            slots.close();
            throw e;
        }
    }

    /** Queues a request, or throws without a change. */
    public void submit(InferenceJob job, Object id, boolean start, boolean end) {
        long now = clock.nanos();
        DeferredActions out = new DeferredActions(true);
        job.queued(now);
        Arrival arrival = new Arrival();
        // Before the job is queued: as soon as it can be taken, the action on cancellation belongs to the thread that
        // runs it. The client may cancel before the lock is taken; then only `gone` is set.
        job.onCancel(arrival);
        ServingException error = null;
        synchronized (lock) {
            if (arrival.gone) {
                error = QueueErrors.cancelled(job);
            } else if (closed) {
                error = QueueErrors.closed(job);
            } else if (!start && !registry.isLive(id)) {
                error = errors.notStarted(id);
            } else if (registry.waiting() >= limit) {
                error = QueueErrors.full(job, model, limit);
            } else {
                arrival.item = registry.accept(job, id, start, end, out, now);
                timeouts.arm(slots.due());
            }
        }
        if (error != null) {
            job.onCancel(null);
            throw error;
        }
        out.runAll();
    }

    /** Returns whether two requests, each the next of its sequence, may share a batch. */
    boolean joinable(SequenceJob a, SequenceJob b) {
        return states.sameShapes(a.sequence, a.start, b.sequence, b.start) && runner.joinable(a.job, b.job);
    }

    /**
     * Called when a request that was taken for a run has ended.
     *
     * @param broken whether its sequence cannot continue without it
     */
    void ended(SequenceJob item, boolean broken) {
        changed((out, now) -> {
            ActiveSequence sequence = item.sequence;
            sequence.inFlight = null;
            // In iterative mode a request is the whole sequence, so the sequence ends with it.
            sequence.over |= iterative;
            if (broken) {
                registry.removeDependents(sequence, null, SequenceErrors::broken, out);
            }
            registry.settle(sequence, out, now);
            SequenceRegistry.trySchedule(sequence, out, now);
        });
    }

    /** Called when a request that was taken for a run is rescheduled. */
    void again(SequenceJob item) {
        changed((out, now) -> registry.again(item, out, now));
    }

    private void cancelled(SequenceJob item) {
        changed((out, now) -> {
            if (item.place == Place.WAITING) {
                registry.drop(item, QueueErrors.cancelled(item.job), SequenceErrors::broken, out, now);
            }
        });
    }

    /** Called under the lock when an instance has no run in progress. */
    void settled(SequenceBatch batch, DeferredActions out) {
        slots.settled(batch, out);
        timeouts.arm(slots.due());
        finish(out);
    }

    /** Called by the timer. */
    private void onTimer() {
        changed((out, now) -> {
            timeouts.disarm();
            registry.expire(out, now);
            slots.tryScheduleAll(out, now);
        });
    }

    boolean closed() {
        return closed;
    }

    public void resize(int count) {
        changed((out, now) -> slots.resize(count, out, now));
    }

    /** Called when the {@link SequenceBatch} of a new instance was created. */
    void opened(SequenceBatch batch) {
        changed((out, now) -> slots.opened(batch, out, now));
    }

    /** Called when the {@link SequenceBatch} of a new instance could not be created. */
    void notOpened(int instance) {
        changed((out, now) -> slots.notOpened(instance));
    }

    /** Called after the runner has freed a removed instance; the instance may have been requested again since. */
    void retired(SequenceBatch batch) {
        changed((out, now) -> slots.retired(batch, out, now));
    }

    public void close() {
        changed((out, now) -> {
            closed = true;
            registry.stopHolding();
            for (ActiveSequence sequence : slots.sequences()) {
                // No request can follow. Iterative requests continue until their model completes them.
                sequence.over |= !iterative;
                registry.forget(sequence);
                registry.settle(sequence, out, now);
            }
            slots.tryScheduleAll(out, now);
        });
    }

    /** Called when the pool is closed: fails all queued requests, since they would never run. */
    void abandon() {
        changed((out, now) -> {
            for (ActiveSequence sequence : slots.sequences()) {
                while (!sequence.queue.isEmpty()) {
                    registry.removeDependents(sequence, sequence.queue.getFirst(), QueueErrors::closed, out);
                }
                sequence.over = true;
                registry.settle(sequence, out, now);
            }
        });
    }

    /** Releases everything after the last sequence of a closed batcher has ended. */
    private void finish(DeferredActions out) {
        if (!closed || ending || !registry.isEmpty() || !slots.quiet()) {
            return;
        }
        ending = true;
        timeouts.disarm();
        out.add(() -> slots.close().whenComplete((nothing, e) -> {
            controls.close();
            states.close();
            drained.complete(null);
        }));
    }

    /** Applies a change under the lock, then executes the deferred actions without it. */
    private void changed(Change change) {
        long now = clock.nanos();
        DeferredActions out = new DeferredActions();
        synchronized (lock) {
            change.apply(out, now);
            timeouts.arm(slots.due());
            finish(out);
        }
        out.runAll();
    }

    public CompletionStage<Void> drained() {
        return drained.minimalCompletionStage();
    }

    public int instances() {
        synchronized (lock) {
            return slots.desired();
        }
    }

    public int queued() {
        synchronized (lock) {
            return registry.waiting() + slots.queued();
        }
    }

    public int running() {
        synchronized (lock) {
            return slots.running();
        }
    }

    public long batches() {
        synchronized (lock) {
            return slots.batches();
        }
    }

    /** A change of the state, applied under the lock. */
    private interface Change {
        void apply(DeferredActions out, long now);
    }

    /** The action on cancellation of a queued request. */
    private final class Arrival implements Runnable {
        boolean gone;

        @Nullable
        SequenceJob item;

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
