// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.sequence;

import io.nereid.base.Clock;
import io.nereid.base.ServingException;
import io.nereid.scheduling.BatchRunner;
import io.nereid.scheduling.InitialStateFiles;
import io.nereid.scheduling.Scheduler;
import io.nereid.scheduling.SchedulerOptions;
import io.nereid.scheduling.admission.AdmissionControl;
import io.nereid.scheduling.admission.QueueAdmission;
import io.nereid.scheduling.batcher.QueueErrors;
import io.nereid.scheduling.execution.DeviceExecutor;
import io.nereid.scheduling.execution.ModelRuns;
import io.nereid.scheduling.execution.QueueTimer;
import io.nereid.scheduling.sequence.SequenceJob.Place;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.QueuePolicy;
import io.nereid.spi.config.SequenceBatching;
import io.nereid.tensor.DataType;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The sequence batcher for stateful models: routes all requests of a sequence, one after the other, to the same slot of
 * the same instance, and passes the position in the sequence to the model in control inputs.
 *
 * <p><b>Life of a sequence.</b> A sequence starts with a request with the START flag. It ends with a request with the
 * END flag, when it has been idle for {@code max_sequence_idle_microseconds}, or when one of its requests is cancelled
 * or misses its deadline before it ran. An error of the model does not end it. The idle time runs from the arrival of
 * the last request, or from when the sequence left the backlog. In iterative mode each request is a sequence of its
 * own, and idle time does not apply.
 *
 * <p><b>Backlog.</b> Sequences that find no free slot wait in the backlog in arrival order. Only there the request's
 * {@code timeout} applies: when one request of a sequence has waited longer, all waiting requests of that sequence
 * fail.
 *
 * <p><b>Overload.</b> The admission refuses only requests that would start a sequence, never one of a sequence in
 * progress.
 *
 * <p><b>What the runner sees.</b> The requests in its jobs contain the control inputs and the implicit states in
 * addition to the client's inputs, and request the outputs of the states, which are kept for the next request of the
 * sequence. With the direct strategy a batch has a row for each slot up to the last one with a request;
 * {@link #isPadding} identifies rows without a request.
 *
 * <p><b>Division of work.</b> The {@link SequenceRegistry} knows the active sequences and their queues,
 * {@link SequenceSlots} assigns them to slots of instances, a {@link SequenceBatch} builds the batches of one instance,
 * and {@link SequenceTimeouts} holds all timeouts. This class owns the lock that guards them all.
 *
 * <p>Thread-safe: one short lock for all of it, since most events concern a sequence, its slot and its timeout
 * together. The lock is never held while a job runs or ends: what must be done outside it is collected in
 * {@link DeferredActions} under the lock and executed after it is released. Every change passes through
 * {@link #changed}, which afterwards also sets the timer and detects the end of a closed batcher. No method blocks.
 * Lock order: this lock, then the rate limiter's. The lock of the batcher inside an {@link OldestSequenceBatch} is
 * never taken together with this one.
 */
public final class SequenceBatcher implements Scheduler {
    private static final Logger LOG = LoggerFactory.getLogger(SequenceBatcher.class);

    static final long NEVER = QueueTimer.NEVER;
    private static final long DEFAULT_IDLE = 1_000_000_000L;

    final Object lock = new Object();
    final String model;
    final boolean iterative;
    final SequenceControls controls;
    final ImplicitStates states;
    final SequenceErrors errors;
    final DeviceExecutor pool;
    /** Of all instances. */
    final ModelRuns runs = new ModelRuns();

    final Clock clock;
    final SequenceRegistry registry;
    /** Refuses new sequences under overload; null for none. */
    final @Nullable QueueAdmission admission;

    private final BatchRunner runner;
    private final long greatestOwnId;
    private final boolean ownIdsAreTexts;
    private final AtomicLong ownIds = new AtomicLong();
    private final int limit;
    private final CompletableFuture<Void> drained = new CompletableFuture<>();

    private final SequenceTimeouts timeouts;
    private final SequenceSlots slots;
    private boolean closed;
    private boolean ending;

    /**
     * Creates a batcher for a model whose configuration has {@code sequence} settings. {@code pool} provides threads,
     * timer and clock and must outlive the batcher.
     *
     * @throws ServingException INVALID_ARGUMENT for an invalid control or state in the configuration, and any
     *     exception of {@code initialStates}
     */
    public SequenceBatcher(
            ModelConfig config,
            BatchRunner runner,
            DeviceExecutor pool,
            SchedulerOptions options,
            InitialStateFiles initialStates) {
        SequenceBatching sequence = config.sequence();
        if (sequence == null) {
            throw new IllegalArgumentException("model '" + config.name() + "' has no sequence batching");
        }
        this.model = config.name();
        this.iterative = sequence.iterative();
        this.errors = new SequenceErrors(model);
        this.runner = runner;
        this.pool = pool;
        this.clock = pool.clock();
        this.limit = config.queue().maxSize() > 0 ? config.queue().maxSize() : options.maxQueueSize();
        AdmissionControl control = options.admission();
        this.admission = control == null || !config.queue().equals(QueuePolicy.DEFAULT) ? null : control.open();
        this.controls = new SequenceControls(config, sequence.controls());
        DataType idType = controls.idType();
        this.ownIdsAreTexts = idType == DataType.BYTES;
        this.greatestOwnId = idType == DataType.INT32 || idType == DataType.UINT32 ? Integer.MAX_VALUE : Long.MAX_VALUE;
        ImplicitStates created;
        try {
            created = new ImplicitStates(config, sequence.states(), initialStates);
        } catch (RuntimeException e) {
            controls.close();
            throw e;
        }
        this.states = created;
        long maxIdle = sequence.maxIdle().toNanos();
        QueueTimer timer = new QueueTimer(pool.timer(), clock, this::onTimer);
        this.timeouts = new SequenceTimeouts(maxIdle > 0 ? maxIdle : DEFAULT_IDLE, timer);
        this.slots = new SequenceSlots(this, config, sequence, runner, pool, options);
        this.registry = new SequenceRegistry(this, slots, timeouts, options);
        try {
            instances(Math.max(1, config.instances()));
        } catch (RuntimeException e) {
            slots.close();
            controls.close();
            states.close();
            throw e;
        }
    }

    /** Returns whether a job of a batch is a row without a request, which must not be counted in statistics. */
    public static boolean isPadding(InferenceJob job) {
        return job instanceof PaddingJob;
    }

    /**
     * {@inheritDoc}
     *
     * @throws ServingException also INVALID_ARGUMENT when the request has several rows or no correlation id, when its
     *     sequence was not started and the START flag is missing, or when the correlation id does not fit the type of
     *     the model's CORRID control
     */
    @Override
    public void submit(InferenceJob job) {
        long deadline = job.deadlineNanos();
        if (deadline != NEVER && deadline - clock.nanos() <= 0) {
            throw QueueErrors.late(job);
        }
        if (job.cancelled()) {
            throw QueueErrors.cancelled(job);
        }
        if (job.batchSize() != 1) {
            throw errors.batchSize();
        }
        if (iterative) {
            long id = 1 + Math.floorMod(ownIds.getAndIncrement(), greatestOwnId);
            enqueue(job, ownIdsAreTexts ? Long.toString(id) : id, true, false);
            return;
        }
        InferenceRequest.SequenceFlags where = job.request().options().sequence();
        if (where == null || where.id().equals(0L) || where.id().equals("")) {
            throw errors.noId();
        }
        controls.checkId(where.id());
        enqueue(job, where.id(), where.start(), where.end());
    }

    /** Queues a request, or throws without a change. */
    private void enqueue(InferenceJob job, Object id, boolean start, boolean end) {
        long now = clock.nanos();
        DeferredActions out = new DeferredActions(true);
        job.queued(now);
        Arrival arrival = new Arrival();
        // Before the job is queued: as soon as it can be taken, the action on cancellation belongs to the thread that
        // runs it. The client may cancel before the lock is taken; then only `gone` is set.
        job.onCancel(arrival);
        ServingException error = null;
        String news = null;
        synchronized (lock) {
            if (arrival.gone) {
                error = QueueErrors.cancelled(job);
            } else if (closed) {
                error = QueueErrors.closed(job);
            } else if (!start && !registry.isLive(id)) {
                error = errors.notStarted(id);
            } else if (registry.waiting() >= limit) {
                error = QueueErrors.full(job, model, limit);
            } else if (!registry.isLive(id) && (error = refusal(job, now)) != null) {
                news = changed(now);
            } else {
                arrival.item = registry.accept(job, id, start, end, out, now);
                timeouts.arm(slots.due());
                news = changed(now);
            }
        }
        if (news != null) {
            LOG.info("{}", news);
        }
        if (error != null) {
            job.onCancel(null);
            throw error;
        }
        out.runAll();
    }

    @Override
    public @Nullable ServingException refusal(InferenceJob job) {
        if (admission == null) {
            return null;
        }
        InferenceRequest.SequenceFlags where = job.request().options().sequence();
        long now = clock.nanos();
        synchronized (lock) {
            return where != null && registry.isLive(where.id()) ? null : refuse(admission, job, now);
        }
    }

    /** Returns the error if the admission refuses a job that starts a sequence. */
    private @Nullable ServingException refusal(InferenceJob job, long now) {
        return admission == null || !job.refusable() ? null : refuse(admission, job, now);
    }

    private @Nullable ServingException refuse(QueueAdmission admits, InferenceJob job, long now) {
        int waiting = registry.waiting();
        if (job.request().options().timeoutNanos() > 0 || admits.admits(now, waiting, job.deadlineNanos())) {
            return null;
        }
        return QueueAdmission.refusal(
                QueueErrors.prefix(job), name(), waiting, admits.policy().retryNanos());
    }

    /** Returns a line for the log if the admission has changed. */
    private @Nullable String changed(long now) {
        return admission == null ? null : admission.changed(now, name());
    }

    private String name() {
        return "model '" + model + "'";
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
            timeouts.fired();
            registry.expire(out, now);
            slots.tryScheduleAll(out, now);
        });
    }

    boolean closed() {
        return closed;
    }

    /** {@inheritDoc} An instance beyond {@code count} keeps its sequences until they end. */
    @Override
    public void instances(int count) {
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

    /** {@inheritDoc} Active sequences end after the requests that they have queued. */
    @Override
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
        if (admission != null) {
            admission.close();
        }
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

    @Override
    public CompletionStage<Void> drained() {
        return drained.minimalCompletionStage();
    }

    @Override
    public int instances() {
        synchronized (lock) {
            return slots.desired();
        }
    }

    @Override
    public int queued() {
        synchronized (lock) {
            return registry.waiting() + slots.queued();
        }
    }

    @Override
    public int running() {
        synchronized (lock) {
            return slots.running();
        }
    }

    @Override
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
