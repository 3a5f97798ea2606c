// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

import io.nereid.base.Clock;
import io.nereid.base.ServingException;
import io.nereid.scheduling.RateLimiter.Member;
import io.nereid.scheduling.SchedulerOptions.Inline;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.ModelConfig;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The queue that all schedulers share. Thread-safe: everything that changes is guarded by one short lock, which is never
 * held while a job runs or ends.
 *
 * <p>Permits: {@code claimed} permits are out, at most one for each instance; {@code running} of them have a run under
 * way, the others stand in the pool's line, each with the promise to look for a batch. A permit goes out when a batch is
 * ready that no promise covers, and that is asked again after every change: at submit, at a cut, at the end of a run, and
 * when the timer rings. Under a rate limiter a promise that gets no instance is dropped, the queue is {@code blocked},
 * and the limiter's grant claims a permit again.
 */
@SuppressWarnings("NonAtomicVolatileUpdate") // volatile for readers; written under the lock only
final class JobQueue implements DevicePool.Ready {
    private static final Logger LOG = LoggerFactory.getLogger(JobQueue.class);
    private static final long NEVER = Entry.NEVER;

    private final String model;
    private final int maxQueued;
    /** Most rows of one run, when requests with more are cut; else the largest number. */
    private final int cutAbove;

    private final int maxRows;
    private final Inline inline;
    private final boolean mayInline;
    private final BatchRunner runner;
    private final DevicePool pool;
    private final Clock clock;
    private final Ordered.@Nullable Exit exit;
    private final @Nullable BatchStrategy strategy;
    private final @Nullable Member member;
    private final CompletableFuture<Void> drained = new CompletableFuture<>();

    private final Object lock = new Object();
    private final Levels levels;
    private final BatchForming forming;
    private final Instances instances;
    private final RunTimes runTimes = new RunTimes();
    private final WakeUp wakeUp;
    private int claimed;
    private boolean blocked;
    /** For tests: nothing runs before so many wait; 0 from then on. */
    private int held;

    private boolean closed;
    private boolean finished;
    private volatile int queued;
    private volatile int running;
    private volatile long batches;
    private volatile boolean tiny;

    JobQueue(
            ModelConfig config,
            BatchForming forming,
            boolean ordered,
            BatchRunner runner,
            DevicePool pool,
            SchedulerOptions options) {
        RateLimiter limiter = options.limiter();
        this.model = config.name();
        this.maxQueued = options.maxQueueSize();
        this.maxRows = config.fit().maxRequestRows();
        this.cutAbove = maxRows > config.maxBatchSize() && config.batched() ? config.maxBatchSize() : Integer.MAX_VALUE;
        this.inline = options.inline();
        this.mayInline = inline != Inline.NEVER && limiter == null && forming.trivialAlone();
        this.tiny = inline == Inline.ALWAYS;
        this.exit = ordered ? new Ordered.Exit() : null;
        this.levels = new Levels(config);
        this.forming = forming;
        this.runner = runner;
        this.pool = pool;
        this.clock = pool.clock();
        this.wakeUp = new WakeUp(pool.timer(), this::alarm);
        this.strategy = options.strategy();
        this.held = options.delayScheduler();
        this.member = limiter == null ? null : limiter.join(config, this::granted);
        this.instances = new Instances(Math.max(1, config.instances()), member);
    }

    int queued() {
        return queued;
    }

    int running() {
        return running;
    }

    long batches() {
        return batches;
    }

    CompletionStage<Void> drained() {
        return drained.minimalCompletionStage();
    }

    void submit(InferenceJob job) {
        long now = clock.nanos();
        long deadline = job.deadlineNanos();
        if (deadline != NEVER && deadline - now <= 0) {
            throw Refusals.late(job);
        }
        if (job.cancelled()) {
            throw Refusals.cancelled(job);
        }
        if (cutAbove != Integer.MAX_VALUE && job.batchSize() > maxRows) {
            throw Refusals.tooLarge(job, maxRows);
        }
        job.queued(now);
        InferenceJob way = exit == null ? job : new Ordered(job, exit);
        if (cutAbove != Integer.MAX_VALUE && job.batchSize() > cutAbove) {
            way = new LargeJob(way);
        } else if (mayInline && tiny) {
            int slot = takeInline(way);
            if (slot >= 0) {
                way.started(now);
                Run.of(model, runner, slot, List.of(way), BatchCut.INLINE);
                if (released(slot, now)) {
                    enlist();
                }
                return;
            }
        }
        enqueue(job, way, now);
    }

    private void enqueue(InferenceJob job, InferenceJob way, long now) {
        Entry entry = new Entry(this, way, now);
        if (entry.large != null) {
            entry.large.waits(entry);
        }
        // Before the job can be taken: afterwards the action on cancellation belongs to whoever runs it.
        way.onCancel(entry);
        ServingException refusal = null;
        boolean enlist = false;
        synchronized (lock) {
            PolicyQueue level = levels.of(job);
            if (entry.state == Entry.State.CANCELLED) {
                refusal = Refusals.cancelled(job);
            } else if (closed) {
                refusal = Refusals.closed(job);
            } else if (level.full()) {
                refusal = Refusals.full(job, model, level.size());
            } else if (queued >= maxQueued && !level.limited()) {
                refusal = Refusals.full(job, model, queued);
            } else if (!forming.admits(levels, entry)) {
                refusal = Refusals.enqueued(job, forming.batches(), forming.maxBatches());
            } else {
                enter(way);
                levels.append(level, entry, now);
                queued = levels.size();
                forming.arrived(levels, entry);
                held = queued >= held ? 0 : held;
                enlist = claim(now);
                armAlarm(now);
            }
        }
        if (refusal != null) {
            way.onCancel(null);
            throw refusal;
        }
        if (enlist) {
            enlist();
        }
    }

    private void enter(InferenceJob way) {
        if (exit != null && (way instanceof LargeJob large ? large.whole() : way) instanceof Ordered ordered) {
            exit.enter(ordered);
        }
    }

    /** An instance for a run on this thread, or -1. */
    private int takeInline(InferenceJob way) {
        synchronized (lock) {
            if (closed || queued > 0 || held > 0 || claimed >= instances.wanted()) {
                return -1;
            }
            int slot = take();
            if (slot >= 0) {
                claimed++;
                enter(way);
            }
            return slot;
        }
    }

    private int take() {
        int slot = running < instances.wanted() ? instances.take() : -1;
        if (slot >= 0) {
            running = running + 1;
            batches = batches + 1;
        }
        return slot;
    }

    /** Called by the pool: cuts one batch and runs it. */
    @Override
    public boolean runOne() {
        long now = clock.nanos();
        List<Entry> late;
        List<InferenceJob> jobs = List.of();
        BatchCut cut = BatchCut.NO_MORE;
        int slot = -1;
        boolean enlist = false;
        boolean empty = false;
        boolean unused;
        synchronized (lock) {
            late = expire(now);
            boolean ready = ready(now);
            slot = ready ? take() : -1;
            if (slot >= 0) {
                int count = forming.cut(levels);
                cut = forming.why(now);
                jobs = take(count);
                enlist = claim(now);
            } else {
                claimed--;
                blocked = ready && member != null;
                empty = endsNow();
            }
            unused = claimed == running;
            armAlarm(now);
        }
        refuse(late);
        if (unused && member != null) {
            member.returnUnused();
        }
        if (slot < 0) {
            if (empty) {
                finish();
            }
            return false;
        }
        if (enlist) {
            enlist();
        }
        if (cutAbove != Integer.MAX_VALUE) {
            LargeJob.open(jobs);
        }
        jobs = Run.begin(jobs, now);
        if (!jobs.isEmpty()) {
            Run.of(model, runner, slot, jobs, cut);
        }
        return released(slot, jobs.isEmpty() ? NEVER : now);
    }

    private boolean ready(long now) {
        return !levels.isEmpty() && held == 0 && (closed || forming.ready(levels, now));
    }

    private List<InferenceJob> take(int count) {
        List<InferenceJob> jobs;
        if (count == 1) {
            jobs = List.of(takeHead(forming.part()));
        } else {
            jobs = new ArrayList<>(count);
            for (int i = 0; i < count; i++) {
                jobs.add(takeHead(i == count - 1 ? forming.part() : 0));
            }
        }
        queued = levels.size();
        forming.reset();
        return jobs;
    }

    /** Takes the job at the head of what waits, or so many rows of it when {@code part} is not 0. */
    private InferenceJob takeHead(int part) {
        Entry head = levels.head();
        if (head == null) {
            throw new IllegalStateException("a batch reaches beyond the end of its line");
        }
        int rows = part > 0 ? part : head.rows;
        if (rows < head.rows) {
            levels.shrink(head, rows);
        } else {
            levels.remove(head, Entry.State.TAKEN);
        }
        return head.large == null ? head.job : head.large.cut(rows);
    }

    /** Gives an instance back; true when its permit was claimed again, for the caller to enlist. */
    private boolean released(int slot, long began) {
        long now = clock.nanos();
        boolean again;
        boolean more;
        boolean retires;
        boolean empty;
        synchronized (lock) {
            if (began != NEVER && inline == Inline.MEASURED) {
                runTimes.ran(now - began);
                boolean nowTiny = runTimes.tiny();
                if (nowTiny != tiny) {
                    tiny = nowTiny;
                }
            }
            running = running - 1;
            claimed--;
            retires = instances.retires(slot);
            if (!retires) {
                instances.giveBack(slot);
            }
            // Under a limiter the instance takes its turn among those of other models.
            more = member != null && !retires && !levels.isEmpty();
            blocked = more;
            again = claim(now);
            armAlarm(now);
            empty = endsNow();
        }
        if (member != null) {
            member.release(slot, more);
        }
        if (retires) {
            retired(slot);
        }
        if (empty) {
            finish();
        }
        return again;
    }

    /** Called by the limiter: an instance may run. */
    private void granted() {
        long now = clock.nanos();
        boolean enlist;
        boolean unused;
        synchronized (lock) {
            blocked = false;
            enlist = claim(now);
            unused = claimed == running;
            armAlarm(now);
        }
        if (enlist) {
            enlist();
        } else if (unused && member != null) {
            member.returnUnused();
        }
    }

    /** Takes a permit out when a batch is ready that no thread is on its way to. */
    private boolean claim(long now) {
        if (claimed >= instances.wanted() || blocked || held > 0 || levels.isEmpty()) {
            return false;
        }
        int coming = claimed - running;
        boolean worth = coming == 0 ? closed || forming.ready(levels, now) : forming.exceeds(levels, coming);
        if (worth) {
            claimed++;
        }
        return worth;
    }

    private void enlist() {
        if (!pool.enlist(this)) {
            abandon();
        }
    }

    /** The pool is closed: what waits will never run. */
    private void abandon() {
        List<Entry> rest = new ArrayList<>();
        boolean empty;
        synchronized (lock) {
            claimed--;
            for (Entry e = levels.head(); e != null; e = levels.head()) {
                levels.remove(e, Entry.State.TAKEN);
                rest.add(e);
            }
            queued = 0;
            forming.reset();
            empty = endsNow();
        }
        for (Entry e : rest) {
            e.refuse(Refusals.closed(e.job));
        }
        if (member != null) {
            member.returnUnused();
        }
        if (empty) {
            finish();
        }
    }

    /** Called by a job: its client has gone away. */
    void cancelled(Entry entry) {
        boolean empty;
        synchronized (lock) {
            if (entry.state != Entry.State.QUEUED) {
                if (entry.state == Entry.State.NEW) {
                    entry.state = Entry.State.CANCELLED;
                }
                return;
            }
            levels.remove(entry, Entry.State.CANCELLED);
            queued = levels.size();
            forming.reset();
            empty = endsNow();
        }
        entry.refuse(Refusals.cancelled(entry.job));
        if (empty) {
            finish();
        }
    }

    /** Called when a job has ended of which some rows may still wait. */
    void withdrawn(Entry entry) {
        boolean empty;
        synchronized (lock) {
            if (entry.state != Entry.State.QUEUED) {
                return;
            }
            levels.remove(entry, Entry.State.TAKEN);
            queued = levels.size();
            forming.reset();
            empty = endsNow();
        }
        if (empty) {
            finish();
        }
    }

    private void alarm() {
        long now = clock.nanos();
        List<Entry> late;
        boolean enlist;
        boolean empty;
        synchronized (lock) {
            wakeUp.rung();
            late = expire(now);
            enlist = claim(now);
            armAlarm(now);
            empty = endsNow();
        }
        refuse(late);
        if (enlist) {
            enlist();
        }
        if (empty) {
            finish();
        }
    }

    /** Removes what has waited too long, or moves it behind the others. */
    private List<Entry> expire(long now) {
        long next = levels.nextExpiry();
        if (next == NEVER || next - now > 0) {
            return List.of();
        }
        List<Entry> late = new ArrayList<>();
        levels.expire(now, late);
        queued = levels.size();
        forming.reset();
        return late;
    }

    private static void refuse(List<Entry> late) {
        for (Entry e : late) {
            e.refuse(e.state == Entry.State.TIMED_OUT ? Refusals.timedOut(e.job) : Refusals.late(e.job));
        }
    }

    /** Sees to it that the timer rings when the next job expires, and when the forming batch has waited long enough. */
    private void armAlarm(long now) {
        if (levels.isEmpty()) {
            return;
        }
        long at = levels.nextExpiry();
        if (forming.delays()
                && !blocked
                && held == 0
                && !closed
                && claimed < instances.wanted()
                && claimed == running) {
            long due = forming.due(levels);
            // What is due already waits for an instance, not for the time.
            at = due - now > 0 ? Entry.earlier(at, due) : at;
        }
        wakeUp.by(at);
    }

    int instances() {
        synchronized (lock) {
            return instances.wanted();
        }
    }

    void instances(int count) {
        if (count < 1) {
            throw ServingException.invalidArgument(
                    "instances of model '" + model + "': " + count + " (expected: >= 1)");
        }
        List<Integer> idle = new ArrayList<>();
        boolean enlist;
        synchronized (lock) {
            instances.resize(count, idle::add);
            blocked = false;
            long now = clock.nanos();
            enlist = claim(now);
            armAlarm(now);
        }
        if (member != null) {
            member.settle();
        }
        for (int slot : idle) {
            retired(slot);
        }
        if (enlist) {
            enlist();
        }
    }

    private void retired(int slot) {
        try {
            runner.retired(slot);
        } catch (RuntimeException e) {
            LOG.error("model {}: instance {} could not be retired", model, slot, e);
        }
        boolean enlist;
        synchronized (lock) {
            instances.giveBack(slot);
            blocked = false;
            enlist = claim(clock.nanos());
        }
        if (enlist) {
            enlist();
        }
    }

    void close() {
        boolean enlist;
        boolean empty;
        synchronized (lock) {
            closed = true;
            held = 0;
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

    /** Whether all is over; true once, for the caller to {@link #finish}. */
    private boolean endsNow() {
        if (!closed || claimed > 0 || !levels.isEmpty() || finished) {
            return false;
        }
        finished = true;
        forming.reset();
        return true;
    }

    private void finish() {
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
