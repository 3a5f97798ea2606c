// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

import io.nereid.base.Clock;
import io.nereid.base.Code;
import io.nereid.base.ServingException;
import io.nereid.scheduling.SchedulerOptions.Inline;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.ModelConfig;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
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
 * <p>Permits: {@code claimed} of the {@code instances} permits are out; {@code running} of them have a run under way, the
 * others stand in the pool's line, each with the promise to look for a batch. A permit goes out when a batch is ready
 * that no promise covers, and that is asked again after every change: at submit, at a cut, at the end of a run, and when
 * the timer rings.
 */
@SuppressWarnings("NonAtomicVolatileUpdate") // volatile for readers; written under the lock only
final class JobQueue implements DevicePool.Ready {
    private static final Logger LOG = LoggerFactory.getLogger(JobQueue.class);
    private static final long NEVER = Long.MAX_VALUE;

    private final String model;
    private final int instances;
    private final int maxQueued;
    private final Inline inline;
    private final boolean mayInline;
    private final BatchRunner runner;
    private final DevicePool pool;
    private final Clock clock;
    private final Ordered.@Nullable Exit exit;
    private final CompletableFuture<Void> drained = new CompletableFuture<>();

    private final Object lock = new Object();
    private final Line line = new Line();
    private final BatchForming forming;
    private final RunTimes runTimes = new RunTimes();
    private final int[] freeSlots;
    private final Runnable onAlarm = this::alarm;
    private int claimed;
    private boolean closed;
    private long earliestDeadline = NEVER;
    private long alarmAt = NEVER;
    private Timer.@Nullable Alarm alarm;
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
        this.model = config.name();
        this.instances = Math.max(1, config.instances());
        this.maxQueued = config.queue().maxSize() > 0 ? config.queue().maxSize() : options.maxQueueSize();
        this.inline = options.inline();
        // With one instance runs follow each other, so answers are in order anyway.
        this.exit = ordered && instances > 1 ? new Ordered.Exit() : null;
        this.mayInline = inline != Inline.NEVER && exit == null && !forming.delays();
        this.tiny = inline == Inline.ALWAYS;
        this.forming = forming;
        this.runner = runner;
        this.pool = pool;
        this.clock = pool.clock();
        this.freeSlots = new int[instances];
        Arrays.setAll(freeSlots, i -> instances - 1 - i);
    }

    int instances() {
        return instances;
    }

    void instances(int count) {
        throw ServingException.of(Code.UNIMPLEMENTED, "the number of instances cannot be changed yet: " + count);
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
            throw expired(job);
        }
        if (job.cancelled()) {
            throw cancelled(job);
        }
        job.queued(now);
        if (mayInline && tiny) {
            int slot = takeInline();
            if (slot >= 0) {
                job.started(now);
                run(slot, List.of(job), now);
                if (released(slot, now)) {
                    enlist();
                }
                return;
            }
        }
        enqueue(job, now);
    }

    private void enqueue(InferenceJob job, long now) {
        Ordered ordered = exit == null ? null : new Ordered(job, exit);
        Entry entry = new Entry(this, ordered == null ? job : ordered, now);
        // Before the job can be taken: afterwards the action on cancellation belongs to whoever runs it.
        job.onCancel(entry);
        ServingException refusal = null;
        boolean enlist = false;
        synchronized (lock) {
            if (entry.state == Entry.State.CANCELLED) {
                refusal = cancelled(job);
            } else if (closed) {
                refusal = closed(job);
            } else if (queued >= maxQueued) {
                refusal = full(job);
            } else {
                if (exit != null && ordered != null) {
                    exit.enter(ordered);
                }
                line.append(entry);
                queued = queued + 1;
                if (entry.deadline != NEVER && (earliestDeadline == NEVER || entry.deadline - earliestDeadline < 0)) {
                    earliestDeadline = entry.deadline;
                }
                enlist = claim(now);
                armAlarm();
            }
        }
        if (refusal != null) {
            job.onCancel(null);
            throw refusal;
        }
        if (enlist) {
            enlist();
        }
    }

    /** An instance for a run on this thread, or -1. */
    private int takeInline() {
        synchronized (lock) {
            if (closed || queued > 0 || claimed == instances) {
                return -1;
            }
            claimed++;
            return takeSlot();
        }
    }

    private int takeSlot() {
        int slot = freeSlots[instances - 1 - running];
        running = running + 1;
        batches = batches + 1;
        return slot;
    }

    /** Called by the pool: cuts one batch and runs it. */
    @Override
    public boolean runOne() {
        long now = clock.nanos();
        List<Entry> late = List.of();
        List<InferenceJob> jobs = null;
        int slot = -1;
        boolean enlist = false;
        boolean empty = false;
        synchronized (lock) {
            if (earliestDeadline != NEVER && earliestDeadline - now <= 0) {
                late = sweep(now);
            }
            if (line.head != null && (closed || forming.ready(line, now))) {
                jobs = cut();
                slot = takeSlot();
                enlist = claim(now);
            } else {
                claimed--;
                empty = isDrained();
            }
            armAlarm();
        }
        refuseLate(late);
        if (jobs == null) {
            if (empty) {
                drained.complete(null);
            }
            return false;
        }
        if (enlist) {
            enlist();
        }
        jobs = begin(jobs, now);
        if (!jobs.isEmpty()) {
            run(slot, jobs, now);
        }
        return released(slot, jobs.isEmpty() ? NEVER : now);
    }

    private List<InferenceJob> cut() {
        int count = forming.cut(line);
        forming.reset();
        queued = queued - count;
        if (count == 1) {
            return List.of(takeHead().job);
        }
        List<InferenceJob> jobs = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            jobs.add(takeHead().job);
        }
        return jobs;
    }

    private Entry takeHead() {
        Entry head = line.head;
        if (head == null) {
            throw new IllegalStateException("a batch reaches beyond the end of its line");
        }
        line.remove(head, Entry.State.TAKEN);
        return head;
    }

    /** Takes over the jobs of a batch and drops those whose clients went away at the last moment. */
    private static List<InferenceJob> begin(List<InferenceJob> jobs, long now) {
        boolean gone = false;
        for (InferenceJob job : jobs) {
            job.onCancel(null);
            job.started(now);
            gone |= job.cancelled();
        }
        if (!gone) {
            return jobs.size() == 1 ? jobs : Collections.unmodifiableList(jobs);
        }
        List<InferenceJob> rest = new ArrayList<>(jobs.size());
        for (InferenceJob job : jobs) {
            if (job.cancelled()) {
                Ordered.fail(job, cancelled(job));
            } else {
                rest.add(job);
            }
        }
        return Collections.unmodifiableList(rest);
    }

    private void run(int slot, List<InferenceJob> jobs, long now) {
        try {
            runner.run(slot, jobs, BatchCut.NO_MORE);
        } catch (Throwable t) {
            LOG.error("model {}: a run threw, which it must not; at {}", model, now, t);
            for (InferenceJob job : jobs) {
                job.fail(ServingException.from(t));
            }
        }
    }

    /** Gives an instance back; true when its permit was claimed again, for the caller to enlist. */
    private boolean released(int slot, long began) {
        long now = clock.nanos();
        boolean again;
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
            freeSlots[instances - 1 - running] = slot;
            claimed--;
            again = claim(now);
            armAlarm();
            empty = isDrained();
        }
        if (empty) {
            drained.complete(null);
        }
        return again;
    }

    /** Takes a permit out when a batch is ready that no thread is on its way to. */
    private boolean claim(long now) {
        if (claimed == instances || line.head == null) {
            return false;
        }
        int coming = claimed - running;
        boolean worth = coming == 0 ? closed || forming.ready(line, now) : forming.exceeds(line, queued, coming);
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
        List<Entry> rest;
        boolean empty;
        synchronized (lock) {
            claimed--;
            rest = takeAll();
            empty = isDrained();
        }
        for (Entry e : rest) {
            e.refuse(closed(e.job));
        }
        if (empty) {
            drained.complete(null);
        }
    }

    private List<Entry> takeAll() {
        List<Entry> all = new ArrayList<>(queued);
        for (Entry e = line.head; e != null; e = line.head) {
            line.remove(e, Entry.State.TAKEN);
            all.add(e);
        }
        queued = 0;
        forming.reset();
        return all;
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
            line.remove(entry, Entry.State.CANCELLED);
            queued = queued - 1;
            forming.reset();
            empty = isDrained();
        }
        entry.refuse(cancelled(entry.job));
        if (empty) {
            drained.complete(null);
        }
    }

    private void alarm() {
        long now = clock.nanos();
        List<Entry> late;
        boolean enlist;
        boolean empty;
        synchronized (lock) {
            alarm = null;
            alarmAt = NEVER;
            late = sweep(now);
            enlist = claim(now);
            armAlarm();
            empty = isDrained();
        }
        refuseLate(late);
        if (enlist) {
            enlist();
        }
        if (empty) {
            drained.complete(null);
        }
    }

    /** Removes what has expired and finds the next deadline. */
    private List<Entry> sweep(long now) {
        if (earliestDeadline == NEVER || earliestDeadline - now > 0) {
            return List.of();
        }
        List<Entry> late = new ArrayList<>();
        long earliest = NEVER;
        for (Entry e = line.head; e != null; ) {
            Entry next = e.next;
            if (e.expired(now)) {
                line.remove(e, Entry.State.TAKEN);
                late.add(e);
            } else if (e.deadline != NEVER && (earliest == NEVER || e.deadline - earliest < 0)) {
                earliest = e.deadline;
            }
            e = next;
        }
        earliestDeadline = earliest;
        if (!late.isEmpty()) {
            queued = queued - late.size();
            forming.reset();
        }
        return late;
    }

    /** Sees to it that the timer rings at the next deadline, and when the forming batch has waited long enough. */
    private void armAlarm() {
        long at = earliestDeadline;
        Entry head = line.head;
        if (head == null) {
            // What was due has left; the next arrival sets it again.
            earliestDeadline = NEVER;
            return;
        }
        if (forming.delays() && claimed < instances && claimed == running && !closed) {
            long due = forming.due(head);
            at = at == NEVER || due - at < 0 ? due : at;
        }
        if (at == NEVER || (alarmAt != NEVER && alarmAt - at <= 0)) {
            return;
        }
        if (alarm != null) {
            alarm.cancel();
        }
        alarmAt = at;
        alarm = pool.timer().at(at, onAlarm);
    }

    void close() {
        boolean enlist;
        boolean empty;
        synchronized (lock) {
            closed = true;
            enlist = claim(clock.nanos());
            empty = isDrained();
        }
        if (enlist) {
            enlist();
        }
        if (empty) {
            drained.complete(null);
        }
    }

    private boolean isDrained() {
        return closed && claimed == 0 && line.head == null;
    }

    private void refuseLate(List<Entry> late) {
        for (Entry e : late) {
            e.refuse(expired(e.job));
        }
    }

    private static ServingException expired(InferenceJob job) {
        return ServingException.of(Code.DEADLINE_EXCEEDED, prefix(job) + "Request timeout expired");
    }

    private static ServingException cancelled(InferenceJob job) {
        return ServingException.of(Code.CANCELLED, prefix(job) + "Request was cancelled by its client");
    }

    private ServingException full(InferenceJob job) {
        return ServingException.of(
                Code.UNAVAILABLE,
                prefix(job) + "Exceeds maximum queue size",
                "model '" + model + "' has " + maxQueued + " requests waiting; try again later");
    }

    private static ServingException closed(InferenceJob job) {
        return ServingException.of(
                Code.UNAVAILABLE,
                prefix(job) + "Server is stopping, scheduler for model has stopped accepting new inference requests");
    }

    private static String prefix(InferenceJob job) {
        String id = job.request().id();
        return id.isEmpty() ? "" : "[request id: " + id + "] ";
    }
}
