// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.batcher;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.base.Clock;
import io.nereid.base.ServingException;
import io.nereid.scheduling.BatchCloseReason;
import io.nereid.scheduling.BatchRunner;
import io.nereid.scheduling.BatchStrategy;
import io.nereid.scheduling.InlinePolicy;
import io.nereid.scheduling.Scheduler;
import io.nereid.scheduling.SchedulerOptions;
import io.nereid.scheduling.admission.AdmissionControl;
import io.nereid.scheduling.admission.AdmissionPolicy;
import io.nereid.scheduling.admission.QueueAdmission;
import io.nereid.scheduling.execution.DeviceExecutor;
import io.nereid.scheduling.execution.InstanceAllocator;
import io.nereid.scheduling.execution.ModelRuns;
import io.nereid.scheduling.execution.QueueTimer;
import io.nereid.scheduling.execution.RateLimiter;
import io.nereid.scheduling.execution.RateLimiter.Member;
import io.nereid.scheduling.execution.RunTimeEstimator;
import io.nereid.scheduling.objective.LatencyController;
import io.nereid.scheduling.objective.ObjectiveAdmission;
import io.nereid.scheduling.objective.ObjectiveStatus;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.config.BatchSizePolicy;
import io.nereid.spi.config.DynamicBatching;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.parameters.LatencyObjective;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The dynamic batcher of one model (Triton: {@code DynamicBatchScheduler}): queues jobs and runs them in batches on
 * free instances. Without dynamic batching in the configuration it is the direct scheduler: each job runs alone, in
 * arrival order. The oldest strategy of the sequence batcher uses one for each instance.
 *
 * <p>Two classes decide <em>what</em> runs: {@link RequestQueue} the order of the jobs, {@link BatchBuilder} when a
 * batch closes and with which jobs. This class decides <em>where</em>: on which thread and instance, and it owns the
 * lock. Of {@link BatchSizePolicy} it implements the part that concerns the queue: it splits requests that are larger
 * than the maximum batch size, and limits the number of enqueued batches. A request that fits into one batch is never
 * split.
 *
 * <p><b>Permits.</b> A permit is the right to run one batch. There are at most as many permits as instances.
 * {@code claimed} counts the permits in use; {@code running} of them have a run in progress. The other permits are
 * <em>enlisted</em>: each stands for one entry of this batcher in the line of the {@link DeviceExecutor}. When a pool
 * thread reaches that entry, it closes a batch and runs it ({@link #runOne}).
 *
 * <p><b>When a permit is claimed.</b> {@link #claim} adds a permit if a batch is ready that the enlisted permits will
 * not take. It is evaluated under the lock after every change that can make a batch ready: after a job is queued, after
 * a batch is closed, after a run, when the timer fires, after a change of the number of instances, and at
 * {@link #close}. Therefore no ready batch waits while an instance is free. The batch itself is closed late, by the
 * pool thread, so that jobs that arrive in the meantime still join it.
 *
 * <p><b>Rate limiter.</b> The permit alone is not sufficient: the limiter must grant an instance too. When it does not,
 * the permit is given back and the batcher is {@code blocked}: it claims no permit until the limiter calls
 * {@link #granted}.
 *
 * <p><b>Timer.</b> One {@link QueueTimer} covers the earliest of two events: the next job times out, or the wait of the
 * batch at the head ends.
 *
 * <p>Thread-safe. All mutable state is guarded by one short lock. The lock is never held while a job runs or ends,
 * while the pool or the limiter's callbacks are called, or while tensors are copied. Methods therefore collect what is
 * to be done in local variables and do it after the lock is released. Lock order: this lock, then the rate limiter's,
 * the lock of a {@link SplitJob} or that of the {@link OrderedJob.CompletionQueue}.
 */
@SuppressWarnings("NonAtomicVolatileUpdate") // volatile for readers; written under the lock only
public final class DynamicBatcher implements Scheduler, DeviceExecutor.ReadyQueue {
    private static final Logger LOG = LoggerFactory.getLogger(DynamicBatcher.class);
    private static final long NEVER = QueuedJob.NEVER;

    private final String model;
    private final int maxQueued;
    /** Requests with more rows than this are split; {@link Integer#MAX_VALUE} if requests are never split. */
    private final int splitAbove;

    private final int maxRows;
    /** Whether the configuration has dynamic batching. */
    private final boolean dynamic;

    private final InlinePolicy inline;
    private volatile boolean mayInline;
    private final BatchRunner runner;
    private final DeviceExecutor pool;
    private final ModelRuns runs;
    private final Clock clock;
    private final OrderedJob.@Nullable CompletionQueue completions;
    private final @Nullable BatchStrategy strategy;
    private final @Nullable Member member;
    private final @Nullable AdmissionControl control;
    /** Whether the configuration limits the queue, in place of the server's admission control. */
    private final boolean limited;

    private final CompletableFuture<Void> drained = new CompletableFuture<>();

    private final Object lock = new Object();

    @GuardedBy("lock") private final RequestQueue queue;

    @GuardedBy("lock") private final BatchBuilder builder;

    @GuardedBy("lock") private final InstanceAllocator instances;

    @GuardedBy("lock") private final RunTimeEstimator runTimes = new RunTimeEstimator();

    @GuardedBy("lock") private final QueueTimer timer;

    @GuardedBy("lock") private @Nullable QueueAdmission admission;

    /** The policy of that admission if the model has a latency objective, else null. */
    @GuardedBy("lock") private @Nullable ObjectiveAdmission objective;

    /** Its methods are called under the lock; null if batches close without it. */
    private final @Nullable BatchAnticipation anticipation;

    @GuardedBy("lock") private int claimed;

    @GuardedBy("lock") private boolean blocked;

    @GuardedBy("lock") private boolean closed;

    @GuardedBy("lock") private boolean finished;

    private volatile int queued;
    private volatile int running;
    private volatile long batches;
    private volatile boolean tiny;

    /**
     * Creates a batcher with the settings in {@code config.batching()}; if that is null, every job runs alone.
     * {@code pool} provides threads, timer and clock and must outlive the batcher.
     *
     * @throws ServingException INVALID_ARGUMENT when the model's parameter {@code batching_anticipation} is neither
     *     {@code on} nor {@code off}, or {@code slo} is not a latency objective
     */
    public DynamicBatcher(ModelConfig config, BatchRunner runner, DeviceExecutor pool, SchedulerOptions options) {
        this(config, runner, pool, new ModelRuns(), options, BatchAnticipation.applies(config, options));
        synchronized (lock) {
            keep(LatencyObjective.of(config), config);
        }
    }

    /** Creates a batcher that is one of several of a model, which share {@code runs}. */
    public DynamicBatcher(
            ModelConfig config, BatchRunner runner, DeviceExecutor pool, ModelRuns runs, SchedulerOptions options) {
        // Each of them sees only a part of the model's requests.
        this(config, runner, pool, runs, options, false);
    }

    private DynamicBatcher(
            ModelConfig config,
            BatchRunner runner,
            DeviceExecutor pool,
            ModelRuns runs,
            SchedulerOptions options,
            boolean anticipates) {
        DynamicBatching batching = config.batching();
        RateLimiter limiter = options.limiter();
        this.model = config.name();
        this.maxQueued = options.maxQueueSize();
        this.maxRows = config.batchSizePolicy().maxRequestRows();
        this.dynamic = batching != null;
        this.splitAbove =
                maxRows > config.maxBatchSize() && config.batched() ? config.maxBatchSize() : Integer.MAX_VALUE;
        this.completions = batching != null && batching.preserveOrdering() ? new OrderedJob.CompletionQueue() : null;
        this.queue = new RequestQueue(config);
        this.anticipation = anticipates ? new BatchAnticipation() : null;
        this.builder =
                new BatchBuilder(queue, config, runner, options.strategy(), options.delayScheduler(), anticipation);
        this.inline = options.inline();
        this.mayInline = inline != InlinePolicy.NEVER && limiter == null && builder.runsAloneAtOnce();
        this.tiny = inline == InlinePolicy.ALWAYS;
        this.runner = runner;
        this.pool = pool;
        this.runs = runs;
        this.clock = pool.clock();
        this.timer = new QueueTimer(pool.timer(), clock, this::onTimer);
        this.strategy = options.strategy();
        this.member = limiter == null ? null : limiter.join(config, this::granted);
        this.instances = new InstanceAllocator(Math.max(1, config.instances()), member);
        this.control = options.admission();
        this.limited = AdmissionControl.limits(config);
        this.admission = control == null || limited ? null : control.open();
    }

    @Override
    public int queued() {
        return queued;
    }

    @Override
    public int running() {
        return running;
    }

    @Override
    public long batches() {
        return batches;
    }

    @Override
    public CompletionStage<Void> drained() {
        return drained.minimalCompletionStage();
    }

    // ---- submission ----

    @Override
    public void submit(InferenceJob job) {
        long now = clock.nanos();
        long deadline = job.deadlineNanos();
        if (deadline != NEVER && deadline - now <= 0) {
            throw QueueErrors.late(job);
        }
        if (job.cancelled()) {
            throw QueueErrors.cancelled(job);
        }
        if (splitAbove != Integer.MAX_VALUE && job.batchSize() > maxRows) {
            throw QueueErrors.tooLarge(job, maxRows);
        }
        job.queued(now);
        // The decorators: an ordered job delays its response, a split job is distributed over several batches.
        InferenceJob decorated = completions == null ? job : new OrderedJob(job, completions);
        if (splitAbove != Integer.MAX_VALUE && job.batchSize() > splitAbove) {
            decorated = new SplitJob(decorated);
        } else if (mayInline && tiny) {
            int instance = takeInline(decorated);
            if (instance >= 0) {
                decorated.started(now);
                run(instance, List.of(decorated), BatchCloseReason.INLINE);
                if (released(instance, now, 0, 0, 0, null)) {
                    enlist();
                }
                return;
            }
        }
        enqueue(job, decorated, now);
    }

    private void enqueue(InferenceJob job, InferenceJob decorated, long now) {
        QueuedJob entry = new QueuedJob(this, decorated, now);
        if (entry.split != null) {
            entry.split.queuedAs(entry);
        }
        // Before the job is queued: as soon as it can be taken, the action on cancellation belongs to the thread that
        // runs it, and this call would replace that action. The client may cancel before the lock is taken (state
        // CANCELLED).
        decorated.onCancel(entry);
        ServingException error = null;
        String news = null;
        boolean enlist = false;
        synchronized (lock) {
            RequestQueue.Level level = queue.levelOf(job);
            if (entry.state == QueuedJob.State.CANCELLED) {
                error = QueueErrors.cancelled(job);
            } else if (closed) {
                error = QueueErrors.closed(job);
            } else if (level.full()) {
                error = QueueErrors.full(job, model, level.size());
            } else if (queued >= maxQueued && !level.limited()) {
                error = QueueErrors.full(job, model, queued);
            } else if (!builder.admits(entry)) {
                error = QueueErrors.enqueued(job, builder.batches(), builder.maxBatches());
            } else if (admission != null && (error = refusal(job, level, now)) != null) {
                news = admission.changed(now, name());
            } else {
                enter(decorated);
                queue.append(level, entry, now);
                if (admission != null) {
                    limitWait(admission, entry);
                    news = admission.changed(now, name());
                }
                queued = queue.size();
                if (anticipation != null) {
                    anticipation.arrived(now, queued);
                }
                builder.arrived(entry);
                enlist = claim(now);
                armTimer(now);
            }
        }
        if (news != null) {
            LOG.info("{}", news);
        }
        if (error != null) {
            decorated.onCancel(null);
            throw error;
        }
        if (enlist) {
            enlist();
        }
    }

    @Override
    public @Nullable ServingException refusal(InferenceJob job) {
        long now = clock.nanos();
        synchronized (lock) {
            return refusal(job, queue.levelOf(job), now);
        }
    }

    /** Returns the error if the admission refuses a job now; a job with a timeout of its own is never refused. */
    @GuardedBy("lock") private @Nullable ServingException refusal(InferenceJob job, RequestQueue.Level level, long now) {
        if (admission == null || !job.refusable() || level.limits(job)) {
            return null;
        }
        if (admission.admits(now, queue.ahead(level), job.deadlineNanos())) {
            return null;
        }
        return QueueAdmission.refusal(
                QueueErrors.prefix(job), name(), queued, admission.policy().retryNanos());
    }

    /** Limits the wait of a queued job, if it may be refused and the admission has a limit now. */
    @GuardedBy("lock") private void limitWait(QueueAdmission admits, QueuedJob entry) {
        long limit = admits.policy().waitLimit();
        RequestQueue.Level level = entry.level;
        if (limit != AdmissionPolicy.NEVER && level != null && entry.job.refusable() && !level.limits(entry.job)) {
            queue.limit(entry, entry.since + limit);
        }
    }

    private String name() {
        return "model '" + model + "'";
    }

    /** Fixes the place of an ordered job in the order of responses. Under the lock, so that it is the queue's order. */
    private void enter(InferenceJob decorated) {
        if (completions != null
                && (decorated instanceof SplitJob split ? split.whole() : decorated) instanceof OrderedJob ordered) {
            completions.enter(ordered);
        }
    }

    /**
     * Allocates an instance for a run on the submitting thread, or returns -1. Only when the queue is empty, so that
     * the job does not overtake others. The permit skips the pool's line; otherwise it counts like any other.
     */
    private int takeInline(InferenceJob decorated) {
        synchronized (lock) {
            if (closed || queued > 0 || builder.holds() || claimed >= active()) {
                return -1;
            }
            int instance = takeInstance();
            if (instance >= 0) {
                claimed++;
                enter(decorated);
            }
            return instance;
        }
    }

    /**
     * Called when the client cancels a request. A job that is not queued yet is only marked; {@link #enqueue} rejects
     * it. A job that was taken is not affected: its cancellation is up to the run.
     */
    void cancelled(QueuedJob entry) {
        boolean empty;
        synchronized (lock) {
            if (entry.state == QueuedJob.State.NEW) {
                entry.state = QueuedJob.State.CANCELLED;
            }
            if (entry.state != QueuedJob.State.QUEUED) {
                return;
            }
            remove(entry, QueuedJob.State.CANCELLED);
            empty = endsNow();
        }
        entry.fail(QueueErrors.cancelled(entry.job));
        if (empty) {
            finish();
        }
    }

    /** Called when a split job has ended, to remove its remaining rows from the queue. */
    void withdrawn(QueuedJob entry) {
        boolean empty;
        synchronized (lock) {
            if (entry.state != QueuedJob.State.QUEUED) {
                return;
            }
            remove(entry, QueuedJob.State.TAKEN);
            empty = endsNow();
        }
        if (empty) {
            finish();
        }
    }

    @GuardedBy("lock") private void remove(QueuedJob entry, QueuedJob.State because) {
        queue.remove(entry, because);
        queued = queue.size();
        builder.reset();
        if (admission != null) {
            admission.policy().removed(1);
        }
    }

    // ---- permits: when and on which thread a batch runs ----

    /**
     * Claims a permit if a batch is ready that the enlisted permits will not take; the caller must enlist it.
     *
     * <p>With no permit enlisted, the batch at the head must be ready. With {@code coming} permits enlisted, the exact
     * batches are unknown until they are closed; one more thread is worth waking only if more rows are queued than the
     * enlisted permits can take.
     */
    @GuardedBy("lock") private boolean claim(long now) {
        if (claimed >= active() || blocked) {
            return false;
        }
        int coming = claimed - running;
        boolean worth = coming == 0 ? builder.ready(now, free()) : builder.exceeds(coming);
        if (worth) {
            claimed++;
        }
        return worth;
    }

    /** Returns how many more runs could begin now; at least 1, as it is asked for the next one. */
    @GuardedBy("lock") private int free() {
        return Math.max(1, Math.min(active(), Math.max(1, pool.threads())) - running);
    }

    /** Returns the number of instances that may run at once. */
    @GuardedBy("lock") private int active() {
        int all = instances.desired();
        return objective == null ? all : Math.min(all, objective.controller().instances());
    }

    private void enlist() {
        if (!pool.enlist(this)) {
            abandon();
        }
    }

    /** Called when the pool is closed: fails all queued jobs, since they would never run. */
    private void abandon() {
        List<QueuedJob> rest = new ArrayList<>();
        boolean empty;
        synchronized (lock) {
            claimed--;
            for (QueuedJob e = queue.head(); e != null; e = queue.head()) {
                remove(e, QueuedJob.State.TAKEN);
                rest.add(e);
            }
            empty = endsNow();
        }
        for (QueuedJob e : rest) {
            e.fail(QueueErrors.closed(e.job));
        }
        if (member != null) {
            member.returnUnused();
        }
        if (empty) {
            finish();
        }
    }

    /**
     * Called by a pool thread for an enlisted permit: closes one batch and runs it, or gives the permit back. Returns
     * true when the pool must enlist this batcher again.
     */
    @Override
    public boolean runOne() {
        long now = clock.nanos();
        List<QueuedJob> late;
        List<InferenceJob> jobs = List.of();
        BatchCloseReason reason = BatchCloseReason.NO_MORE;
        int instance = -1;
        int taken = 0;
        long rows = 0;
        long positions = 0;
        boolean enlist = false;
        boolean empty = false;
        boolean unused;
        String news = null;
        LatencyController.Run controlled = null;
        synchronized (lock) {
            // The timer may not have fired yet: jobs that have timed out must not run.
            late = expire(now);
            // The batch may have been taken by another permit, or be cancelled, since this permit was claimed.
            boolean ready = builder.ready(now, free());
            instance = ready ? takeInstance() : -1;
            if (instance >= 0) {
                int before = queue.size();
                int count = builder.close();
                reason = builder.reason(now);
                QueuedJob head = queue.head();
                // A split job leaves the queue with its last rows.
                taken = builder.part() > 0 ? count - 1 : count;
                positions = builder.positions();
                rows = queue.rows();
                long[] arrivals = objective == null ? null : queue.arrivals(taken, builder.chosen());
                jobs = takeJobs(count);
                rows -= queue.rows();
                controlled = objective == null || arrivals == null
                        ? null
                        : objective.controller().began(now, arrivals, rows);
                if (anticipation != null) {
                    anticipation.closed(now, taken, queued);
                }
                if (admission != null && head != null) {
                    late = taken(admission, head, before, now, late);
                    news = admission.changed(now, name());
                }
                // More may be ready than this batch takes: have another thread come for it.
                enlist = claim(now);
            } else {
                claimed--;
                blocked = ready && member != null;
                empty = endsNow();
            }
            // Without enlisted permits, a granted instance would stay reserved although no thread will use it.
            unused = claimed == running;
            armTimer(now);
        }
        failAll(late);
        if (news != null) {
            LOG.info("{}", news);
        }
        if (unused && member != null) {
            member.returnUnused();
        }
        if (instance < 0) {
            if (empty) {
                finish();
            }
            return false;
        }
        if (enlist) {
            enlist();
        }
        if (splitAbove != Integer.MAX_VALUE) {
            // After the lock is released, since it makes slices of the inputs.
            SplitJob.open(jobs);
        }
        jobs = QueuedJob.start(jobs, now);
        // Empty when all clients have cancelled in the meantime; the instance is then released without a measurement.
        if (!jobs.isEmpty()) {
            run(instance, jobs, reason);
        }
        return released(instance, jobs.isEmpty() ? NEVER : now, taken, rows, positions, controlled);
    }

    /**
     * Reports a closed batch to the admission, which may find that the queue is overloaded: then those jobs are removed
     * that would take too long. Returns {@code late} with them.
     */
    @GuardedBy("lock") private List<QueuedJob> taken(QueueAdmission admits, QueuedJob head, int before, long now, List<QueuedJob> late) {
        AdmissionPolicy policy = admits.policy();
        int left = queue.size();
        if (!policy.taken(now, before - left, now - head.since, left)) {
            return late;
        }
        List<QueuedJob> all = new ArrayList<>(late);
        queue.refuseAllBut(policy.keep(), all);
        for (QueuedJob e = queue.head(); e != null; e = e.next) {
            limitWait(admits, e);
        }
        int refused = left - queue.size();
        policy.removed(refused);
        queued = queue.size();
        builder.reset();
        return all;
    }

    @Override
    public ModelRuns runs() {
        return runs;
    }

    @GuardedBy("lock") private int takeInstance() {
        int instance = running < active() ? instances.take() : -1;
        if (instance >= 0) {
            running = running + 1;
            batches = batches + 1;
        }
        return instance;
    }

    /** Removes the jobs of a closed batch; the last one may be a split job of which only some rows are taken. */
    @GuardedBy("lock") private List<InferenceJob> takeJobs(int count) {
        List<InferenceJob> jobs;
        List<QueuedJob> chosen = builder.chosen();
        if (chosen != null) {
            jobs = new ArrayList<>(count);
            for (QueuedJob e : chosen) {
                queue.remove(e, QueuedJob.State.TAKEN);
                jobs.add(e.job);
            }
        } else if (count == 1) {
            jobs = List.of(takeHead(builder.part()));
        } else {
            jobs = new ArrayList<>(count);
            for (int i = 0; i < count; i++) {
                jobs.add(takeHead(i == count - 1 ? builder.part() : 0));
            }
        }
        queued = queue.size();
        builder.reset();
        return jobs;
    }

    /** Takes the job at the head of the queue, or {@code part} rows of it if {@code part} is not 0. */
    @GuardedBy("lock") private InferenceJob takeHead(int part) {
        QueuedJob head = queue.head();
        if (head == null) {
            throw new IllegalStateException("a batch has more jobs than the queue");
        }
        int rows = part > 0 ? part : head.rows;
        if (rows < head.rows) {
            queue.shrink(head, rows);
        } else {
            queue.remove(head, QueuedJob.State.TAKEN);
        }
        return head.split == null ? head.job : head.split.cut(rows);
    }

    /** Runs a batch of at least one job; an exception of the runner fails all of them. */
    private void run(int instance, List<InferenceJob> jobs, BatchCloseReason reason) {
        try {
            runner.run(instance, jobs, reason);
        } catch (Throwable t) {
            LOG.error("model {}: the batch runner threw an exception", model, t);
            for (InferenceJob job : jobs) {
                job.fail(ServingException.from(t));
            }
        }
    }

    /**
     * Releases the instance and the permit of a run, and returns true when another permit was claimed, which the caller
     * must enlist.
     *
     * @param began when the run began, to measure it; {@link #NEVER} if no job ran
     * @param taken jobs that have left the queue for this run; 0 for a run on the submitting thread
     * @param rows rows of the batch
     * @param positions what the run computed, if its jobs were chosen by length; else 0
     * @param controlled the run for the latency objective of the model, if it had one when the run began
     */
    private boolean released(
            int instance,
            long began,
            int taken,
            long rows,
            long positions,
            LatencyController.@Nullable Run controlled) {
        long now = clock.nanos();
        String news;
        boolean again;
        boolean more;
        boolean retires;
        boolean empty;
        synchronized (lock) {
            if (began != NEVER && inline == InlinePolicy.MEASURED) {
                runTimes.ran(now - began);
                boolean nowTiny = runTimes.tiny();
                // A write to a volatile field costs more than a read, and the value changes rarely.
                if (nowTiny != tiny) {
                    tiny = nowTiny;
                }
            }
            if (began != NEVER && admission != null) {
                admission.policy().ran(now - began);
            }
            if (anticipation != null && taken > 0) {
                boolean ran = began != NEVER;
                anticipation.ended(now, taken, ran ? rows : 0, ran ? now - began : 0, queued);
            }
            if (positions > 0 && began != NEVER) {
                builder.ran(positions, now - began);
            }
            if (controlled != null && controlled.ended(now, began != NEVER)) {
                follow();
            }
            news = objective == null ? null : objective.controller().news(now, name());
            running = running - 1;
            claimed--;
            // An instance that is to be retired stays allocated until the runner has freed its memory.
            retires = instances.retires(instance);
            if (!retires) {
                instances.giveBack(instance);
            }
            // With a rate limiter, this model does not continue at once: the limiter decides which model's instance is
            // next and calls granted() when it is this one.
            more = member != null && !retires && !queue.isEmpty();
            blocked = more;
            again = claim(now);
            armTimer(now);
            empty = endsNow();
        }
        if (news != null) {
            LOG.info("{}", news);
        }
        if (member != null) {
            member.release(instance, more);
        }
        if (retires) {
            retired(instance);
        }
        if (empty) {
            finish();
        }
        return again;
    }

    /** Called by the rate limiter: an instance may run. Jobs may have left the queue since; then it is returned. */
    private void granted() {
        long now = clock.nanos();
        boolean enlist;
        boolean unused;
        synchronized (lock) {
            blocked = false;
            enlist = claim(now);
            unused = claimed == running;
            armTimer(now);
        }
        if (enlist) {
            enlist();
        } else if (unused && member != null) {
            member.returnUnused();
        }
    }

    // ---- timeouts ----

    /** Called by the timer. */
    private void onTimer() {
        long now = clock.nanos();
        List<QueuedJob> late;
        boolean enlist;
        boolean empty;
        synchronized (lock) {
            timer.fired();
            late = expire(now);
            enlist = claim(now);
            armTimer(now);
            empty = endsNow();
        }
        failAll(late);
        if (enlist) {
            enlist();
        }
        if (empty) {
            finish();
        }
    }

    /** Removes jobs that have timed out, or moves them behind the others of their level if the policy is DELAY. */
    @GuardedBy("lock") private List<QueuedJob> expire(long now) {
        long next = queue.nextExpiry();
        if (next == NEVER || next - now > 0) {
            return List.of();
        }
        List<QueuedJob> late = new ArrayList<>();
        queue.expire(now, late);
        queued = queue.size();
        builder.reset();
        if (admission != null) {
            admission.policy().removed(late.size());
        }
        return late;
    }

    private void failAll(List<QueuedJob> late) {
        long retry = 0;
        for (QueuedJob e : late) {
            retry = e.state == QueuedJob.State.REFUSED ? countRefused() : retry;
            e.fail(QueueErrors.removed(e, name(), queued, retry));
        }
    }

    /** Counts a job that was refused while it waited; returns the time after which it may be sent again. */
    private long countRefused() {
        synchronized (lock) {
            if (objective != null) {
                objective.refused(clock.nanos());
            }
            if (admission != null) {
                admission.refused(1);
            }
            return admission == null ? 0 : admission.policy().retryNanos();
        }
    }

    /**
     * Sets the timer to the next job timeout or, if that is earlier, to the end of the wait of the batch at the
     * head. The delay matters only while a permit could be claimed: otherwise the end of a run or the limiter's grant
     * will evaluate the batch, and a timer would fire in vain.
     */
    @GuardedBy("lock") private void armTimer(long now) {
        if (queue.isEmpty()) {
            return;
        }
        long at = queue.nextExpiry();
        if (builder.delays() && !blocked && claimed < active() && claimed == running) {
            long due = builder.due();
            // A batch that is already due waits for an instance; the end of a run will take it.
            at = due - now > 0 ? QueueTimer.earlier(at, due) : at;
        }
        timer.schedule(at);
    }

    // ---- other settings ----

    /** {@inheritDoc} The maximum batch size, delay, preferred sizes, priorities, queue policies and latency objective change. */
    @Override
    public boolean configure(ModelConfig next) {
        DynamicBatching batching = next.batching();
        if ((batching != null) != dynamic
                || (batching != null && batching.preserveOrdering() != (completions != null))
                || next.batchSizePolicy().maxRequestRows() != maxRows
                || (control != null && limited != AdmissionControl.limits(next))) {
            return false;
        }
        LatencyObjective kept = LatencyObjective.of(next);
        long now = clock.nanos();
        List<QueuedJob> late;
        boolean enlist;
        boolean empty;
        synchronized (lock) {
            if (!builder.accepts(next)) {
                return false;
            }
            queue.configure(next);
            builder.configure(next);
            keep(kept, next);
            late = expire(now);
            enlist = claim(now);
            armTimer(now);
            empty = endsNow();
        }
        failAll(late);
        if (enlist) {
            enlist();
        }
        if (empty) {
            finish();
        }
        return true;
    }

    /** Begins to keep a latency objective, or ends it. One that has not changed goes on with what it has learnt. */
    @GuardedBy("lock") private void keep(@Nullable LatencyObjective kept, ModelConfig config) {
        LatencyObjective before =
                objective == null ? null : objective.controller().objective();
        DynamicBatching batching = config.batching();
        boolean delays = batching != null && batching.maxQueueDelay().isZero();
        int rows = builder.maxRows();
        if (!Objects.equals(before, kept)
                || (objective != null && objective.controller().mayDelay() != (delays && rows > 1))) {
            if (admission != null) {
                admission.close();
            }
            AdmissionControl opens = control == null ? new AdmissionControl(null) : control;
            int all = instances.desired();
            objective = kept == null ? null : new ObjectiveAdmission(new LatencyController(kept, rows, all, delays));
            admission = objective != null ? opens.open(objective) : limited ? null : opens.open();
        }
        follow();
    }

    /** Applies what the latency objective has determined, if there is one. */
    @GuardedBy("lock") private void follow() {
        if (objective != null) {
            LatencyController follows = objective.controller();
            follows.largest(builder.maxRows());
            builder.objective(follows.delayNanos(), follows.maxRows());
        }
        mayInline = inline != InlinePolicy.NEVER && member == null && builder.runsAloneAtOnce();
    }

    @Override
    public @Nullable ObjectiveStatus objective() {
        synchronized (lock) {
            return objective == null ? null : objective.controller().status();
        }
    }

    // ---- number of instances ----

    @Override
    public int instances() {
        synchronized (lock) {
            return instances.desired();
        }
    }

    @Override
    public void instances(int count) {
        if (count < 1) {
            throw ServingException.invalidArgument(
                    "instances of model '" + model + "': " + count + " (expected: >= 1)");
        }
        List<Integer> idle = new ArrayList<>();
        boolean enlist;
        synchronized (lock) {
            instances.resize(count, idle::add);
            if (objective != null) {
                objective.controller().configured(count);
            }
            blocked = false;
            long now = clock.nanos();
            enlist = claim(now);
            armTimer(now);
        }
        if (member != null) {
            member.settle();
        }
        for (int instance : idle) {
            retired(instance);
        }
        if (enlist) {
            enlist();
        }
    }

    private void retired(int instance) {
        try {
            runner.retired(instance);
        } catch (RuntimeException e) {
            LOG.error("model {}: instance {} could not be retired", model, instance, e);
        }
        boolean enlist;
        synchronized (lock) {
            instances.giveBack(instance);
            blocked = false;
            enlist = claim(clock.nanos());
        }
        if (enlist) {
            enlist();
        }
    }

    // ---- close ----

    @Override
    public void close() {
        boolean enlist;
        boolean empty;
        synchronized (lock) {
            closed = true;
            builder.stopWaiting();
            enlist = claim(clock.nanos());
            empty = endsNow();
        }
        if (enlist) {
            enlist();
        }
        if (empty) {
            finish();
        }
    }

    /**
     * Returns true once, when the batcher is closed, has no jobs and no permits in use; the caller must
     * {@link #finish}.
     */
    @GuardedBy("lock") private boolean endsNow() {
        if (!closed || claimed > 0 || !queue.isEmpty() || finished) {
            return false;
        }
        finished = true;
        builder.reset();
        return true;
    }

    private void finish() {
        synchronized (lock) {
            if (admission != null) {
                admission.close();
            }
        }
        if (member != null) {
            member.leave();
        }
        if (strategy != null) {
            try {
                strategy.close();
            } catch (RuntimeException e) {
                LOG.error(
                        "model {}: batching strategy {} did not close",
                        model,
                        strategy.getClass().getName(),
                        e);
            }
        }
        drained.complete(null);
    }
}
