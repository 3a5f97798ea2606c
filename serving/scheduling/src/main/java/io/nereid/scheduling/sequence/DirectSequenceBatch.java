// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.sequence;

import io.nereid.base.ServingException;
import io.nereid.scheduling.BatchCloseReason;
import io.nereid.scheduling.BatchRunner;
import io.nereid.scheduling.InlinePolicy;
import io.nereid.scheduling.SchedulerOptions;
import io.nereid.scheduling.batcher.QueueErrors;
import io.nereid.scheduling.execution.DeviceExecutor;
import io.nereid.scheduling.execution.ModelRuns;
import io.nereid.scheduling.execution.RateLimiter;
import io.nereid.scheduling.execution.RateLimiter.Member;
import io.nereid.scheduling.execution.RunTimeEstimator;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.SequenceBatching.Direct;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletionStage;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The direct strategy (Triton: {@code DirectSequenceBatch}): each slot has a fixed row in the batches of the instance,
 * so that a model can keep the state of a sequence by its row. A batch takes at most one request of each slot; rows
 * without a request are padded. The next batch is built when the previous run has ended.
 *
 * <p>Guarded by the batcher's lock, except for methods that state otherwise.
 */
final class DirectSequenceBatch extends SequenceBatch implements DeviceExecutor.ReadyQueue {
    private static final Logger LOG = LoggerFactory.getLogger(DirectSequenceBatch.class);

    private static final BitSet NONE_BUSY = new BitSet();

    private final BatchRunner runner;
    private final @Nullable Member member;
    private final InlinePolicy inline;
    private final RunTimeEstimator runTimes = new RunTimeEstimator();
    private final long delayNanos;
    private final double utilization;
    /** Whether this instance waits in the pool's line or has a run in progress; there is at most one of both. */
    private boolean claimed;
    /** Whether the rate limiter must grant the instance first. */
    private boolean blocked;

    private int running;
    private long batches;
    private long due = SequenceBatcher.NEVER;
    /**
     * The first slot whose request could not join the last batch; it is the first of the next one, so it cannot starve.
     */
    private int passedOver = -1;

    /**
     * @param config with an instance group of this instance only
     */
    DirectSequenceBatch(
            SequenceBatcher batcher,
            int instance,
            int places,
            ModelConfig config,
            Direct direct,
            BatchRunner runner,
            SchedulerOptions options) {
        super(batcher, instance, places);
        RateLimiter limiter = options.limiter();
        this.member = limiter == null ? null : limiter.join(config, this::granted);
        this.inline = options.inline();
        this.runner = runner;
        this.utilization = direct.minimumSlotUtilization();
        this.delayNanos = utilization > 0 ? Math.max(0, direct.maxQueueDelay().toNanos()) : 0;
    }

    @Override
    void trySchedule(SequenceSlot slot, DeferredActions out, long now) {
        ActiveSequence sequence = slot.sequence;
        if (!claimed && sequence != null && sequence.ready()) {
            claim(out, now);
        }
    }

    @Override
    void tryScheduleAll(DeferredActions out, long now) {
        if (!claimed) {
            claim(out, now);
        }
    }

    /** Arranges a run if a batch is ready: on this thread if it submits a request of a tiny model, else in the pool. */
    private void claim(DeferredActions out, long now) {
        if (!blocked && ready(now)) {
            claimed = true;
            out.add(out.mayRun && tiny() ? this::runHere : this::enlist);
        }
    }

    /** Returns whether the submitting thread may run the batch itself. */
    private boolean tiny() {
        return member == null
                && delayNanos == 0
                && (inline == InlinePolicy.ALWAYS || (inline == InlinePolicy.MEASURED && runTimes.tiny()));
    }

    private void runHere() {
        if (runOne()) {
            enlist();
        }
    }

    /** Called by the rate limiter without the lock: this instance may run. */
    private void granted() {
        DeferredActions out = new DeferredActions();
        boolean unused;
        synchronized (batcher.lock) {
            blocked = false;
            if (!claimed) {
                claim(out, batcher.clock.nanos());
            }
            unused = !claimed;
        }
        out.runAll();
        if (unused && member != null) {
            member.returnUnused();
        }
    }

    private void enlist() {
        if (!batcher.pool.enlist(this)) {
            synchronized (batcher.lock) {
                claimed = false;
            }
            batcher.abandon();
        }
    }

    /**
     * Returns whether a batch should run now; if not, sets {@link #due}. A batch waits for its queue delay only while
     * fewer slots than {@code minimum_slot_utilization} have a request.
     */
    private boolean ready(long now) {
        due = SequenceBatcher.NEVER;
        if (batcher.registry.held()) {
            return false;
        }
        int count = 0;
        long oldest = 0;
        for (SequenceSlot slot : slots) {
            SequenceJob head = head(slot);
            if (head == null) {
                continue;
            }
            if (delayNanos == 0 || batcher.closed()) {
                return true;
            }
            oldest = count == 0 || head.since - oldest < 0 ? head.since : oldest;
            count++;
        }
        if (count == 0) {
            return false;
        }
        if ((double) count / slots.length >= utilization || now - oldest - delayNanos >= 0) {
            return true;
        }
        due = oldest + delayNanos;
        return false;
    }

    @Override
    long due() {
        return due;
    }

    private static @Nullable SequenceJob head(SequenceSlot slot) {
        ActiveSequence sequence = slot.sequence;
        return sequence != null && sequence.ready() ? sequence.queue.peek() : null;
    }

    /** Called by the pool without the lock: builds one batch and runs it. */
    @Override
    public boolean runOne() {
        long now = batcher.clock.nanos();
        DeferredActions out = new DeferredActions();
        List<@Nullable SequenceJob> rows = null;
        synchronized (batcher.lock) {
            batcher.registry.expire(out, now);
            boolean ready = ready(now);
            if (ready && member != null && member.acquire(NONE_BUSY, 1) < 0) {
                blocked = true;
                claimed = false;
            } else if (ready) {
                rows = form(out, now);
                running = 1;
                batches++;
            } else {
                claimed = false;
                if (member != null) {
                    out.add(member::returnUnused);
                }
            }
            batcher.settled(this, out);
        }
        out.runAll();
        if (rows == null) {
            return false;
        }
        run(rows, now);
        boolean again;
        synchronized (batcher.lock) {
            long end = batcher.clock.nanos();
            runTimes.ran(end - now);
            running = 0;
            again = ready(end);
            if (member != null) {
                // With a rate limiter, the limiter decides which model's instance is next and calls granted().
                boolean more = again;
                blocked = more;
                again = false;
                out.add(() -> member.release(0, more));
            }
            claimed = again;
            batcher.settled(this, out);
        }
        out.runAll();
        return again;
    }

    @Override
    public ModelRuns runs() {
        return batcher.runs;
    }

    /** Takes one request for each slot; null for slots without a request that can join the batch. */
    private List<@Nullable SequenceJob> form(DeferredActions out, long now) {
        SequenceJob first = passedOver < 0 ? null : head(slots[passedOver]);
        for (int i = 0; first == null && i < slots.length; i++) {
            first = head(slots[i]);
        }
        passedOver = -1;
        List<@Nullable SequenceJob> rows = new ArrayList<>(slots.length);
        for (SequenceSlot slot : slots) {
            SequenceJob head = head(slot);
            if (head == null || first == null) {
                rows.add(null);
            } else if (head != first && !batcher.joinable(first, head)) {
                passedOver = passedOver < 0 ? slot.number : passedOver;
                rows.add(null);
            } else {
                rows.add(head);
            }
        }
        // Only now, because joinable() compares the shapes of the states, and a taken END request frees its slot for
        // another sequence.
        for (SequenceJob job : rows) {
            if (job != null) {
                batcher.registry.take(job.sequence, now);
                if (job.end) {
                    batcher.registry.release(job.sequence, out, now);
                }
            }
        }
        return rows;
    }

    /** Runs a batch, without the lock: pads empty rows before the last request and drops those after it. */
    private void run(List<@Nullable SequenceJob> rows, long now) {
        SequenceJob example = null;
        for (int i = 0; i < rows.size(); i++) {
            SequenceJob job = rows.get(i);
            if (job != null && begin(job, now)) {
                example = job;
            } else {
                rows.set(i, null);
            }
        }
        while (!rows.isEmpty() && rows.get(rows.size() - 1) == null) {
            rows.remove(rows.size() - 1);
        }
        if (example == null) {
            return;
        }
        int given = example.job.request().inputs().size();
        List<InferenceJob> jobs = new ArrayList<>(rows.size());
        for (SequenceJob job : rows) {
            jobs.add(job != null ? job : new PaddingJob(example.request(), given, batcher.controls));
        }
        try {
            runner.run(instance, Collections.unmodifiableList(jobs), BatchCloseReason.SEQUENCE);
        } catch (Throwable t) {
            LOG.error("model {}: the batch runner threw an exception", batcher.model, t);
            for (InferenceJob job : jobs) {
                job.fail(ServingException.from(t));
            }
        }
    }

    /** Prepares a job for its run; false if it has ended instead. */
    private static boolean begin(SequenceJob job, long now) {
        job.job.onCancel(null);
        if (job.cancelled()) {
            job.fail(QueueErrors.cancelled(job.job));
            return false;
        }
        try {
            job.prepare();
        } catch (RuntimeException e) {
            job.fail(ServingException.from(e));
            return false;
        }
        job.started(now);
        job.running();
        return true;
    }

    @Override
    CompletionStage<Void> close() {
        if (member != null) {
            member.leave();
        }
        return super.close();
    }

    @Override
    boolean vacant() {
        return !claimed && super.vacant();
    }

    @Override
    int running() {
        return running;
    }

    @Override
    long batches() {
        return batches;
    }
}
