// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

import io.nereid.base.ServingException;
import io.nereid.scheduling.RateLimiter.Member;
import io.nereid.scheduling.SchedulerOptions.Inline;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.ModelConfig;
import io.nereid.spi.ModelConfig.Sequence.Direct;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletionStage;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * An instance in whose batches every sequence has a row of its own. The next batch is formed when the previous one has
 * ended. Guarded by the batcher's lock, but where a method says otherwise.
 */
final class DirectLane extends SequenceLane implements DevicePool.Ready {
    private static final Logger LOG = LoggerFactory.getLogger(DirectLane.class);

    private static final BitSet NONE_BUSY = new BitSet();

    private final BatchRunner runner;
    private final @Nullable Member member;
    private final Inline inline;
    private final RunTimes runTimes = new RunTimes();
    private final long delayNanos;
    private final double utilization;
    /** It stands in the pool's line, or a run is under way. */
    private boolean claimed;
    /** It waits for the rate limiter. */
    private boolean blocked;

    private int running;
    private long batches;
    private long due = Sequences.NEVER;
    /** The place whose request did not fit into the last batch, and so heads the next. */
    private int passedOver = -1;

    /**
     * @param config with the group of this instance alone
     */
    DirectLane(
            Sequences sequences,
            int instance,
            int places,
            ModelConfig config,
            Direct direct,
            BatchRunner runner,
            SchedulerOptions options) {
        super(sequences, instance, places);
        RateLimiter limiter = options.limiter();
        this.member = limiter == null ? null : limiter.join(config, this::granted);
        this.inline = options.inline();
        this.runner = runner;
        this.utilization = direct.minimumSlotUtilization();
        this.delayNanos = utilization > 0 ? Math.max(0, direct.maxQueueDelay().toNanos()) : 0;
    }

    @Override
    void stir(Slot slot, Outbox out, long now) {
        Strand strand = slot.strand;
        if (!claimed && strand != null && strand.ready()) {
            claim(out, now);
        }
    }

    @Override
    void stirAll(Outbox out, long now) {
        if (!claimed) {
            claim(out, now);
        }
    }

    private void claim(Outbox out, long now) {
        if (!blocked && ready(now)) {
            claimed = true;
            out.add(out.mayRun && tiny() ? this::runHere : this::enlist);
        }
    }

    /** Whether the thread that brings a request may as well run it. */
    private boolean tiny() {
        return member == null
                && delayNanos == 0
                && (inline == Inline.ALWAYS || (inline == Inline.MEASURED && runTimes.tiny()));
    }

    private void runHere() {
        if (runOne()) {
            enlist();
        }
    }

    /** Called by the rate limiter, without the lock: this instance may run. */
    private void granted() {
        Outbox out = new Outbox();
        boolean unused;
        synchronized (sequences.lock) {
            blocked = false;
            if (!claimed) {
                claim(out, sequences.clock.nanos());
            }
            unused = !claimed;
        }
        out.send();
        if (unused && member != null) {
            member.returnUnused();
        }
    }

    private void enlist() {
        if (!sequences.pool.enlist(this)) {
            synchronized (sequences.lock) {
                claimed = false;
            }
            sequences.abandon();
        }
    }

    /** Whether a batch should go now; notes when it is due if not. */
    private boolean ready(long now) {
        due = Sequences.NEVER;
        if (sequences.book.held()) {
            return false;
        }
        int count = 0;
        long oldest = 0;
        for (Slot slot : slots) {
            SequenceJob head = head(slot);
            if (head == null) {
                continue;
            }
            if (delayNanos == 0 || sequences.closed()) {
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

    private static @Nullable SequenceJob head(Slot slot) {
        Strand strand = slot.strand;
        return strand != null && strand.ready() ? strand.queue.peek() : null;
    }

    /** Called by the pool, without the lock: forms one batch and runs it. */
    @Override
    public boolean runOne() {
        long now = sequences.clock.nanos();
        Outbox out = new Outbox();
        List<@Nullable SequenceJob> rows = null;
        synchronized (sequences.lock) {
            sequences.book.sweep(out, now);
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
            sequences.settled(this, out);
        }
        out.send();
        if (rows == null) {
            return false;
        }
        run(rows, now);
        boolean again;
        synchronized (sequences.lock) {
            long end = sequences.clock.nanos();
            runTimes.ran(end - now);
            running = 0;
            again = ready(end);
            if (member != null) {
                // The instance takes its turn among those of other models.
                boolean more = again;
                blocked = more;
                again = false;
                out.add(() -> member.release(0, more));
            }
            claimed = again;
            sequences.settled(this, out);
        }
        out.send();
        return again;
    }

    /** One row for each place, with null for those that have no request that fits. */
    private List<@Nullable SequenceJob> form(Outbox out, long now) {
        SequenceJob first = passedOver < 0 ? null : head(slots[passedOver]);
        for (int i = 0; first == null && i < slots.length; i++) {
            first = head(slots[i]);
        }
        passedOver = -1;
        List<@Nullable SequenceJob> rows = new ArrayList<>(slots.length);
        for (Slot slot : slots) {
            SequenceJob head = head(slot);
            if (head == null || first == null) {
                rows.add(null);
            } else if (head != first && !sequences.joinable(first, head)) {
                passedOver = passedOver < 0 ? slot.number : passedOver;
                rows.add(null);
            } else {
                rows.add(head);
            }
        }
        // Taken only now: until then the states that the shapes are compared by must stay.
        for (SequenceJob job : rows) {
            if (job != null) {
                sequences.book.take(job.strand);
                if (job.end) {
                    sequences.book.release(job.strand, out, now);
                }
            }
        }
        return rows;
    }

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
            jobs.add(job != null ? job : new FillerJob(example.request(), given, sequences.controls));
        }
        try {
            runner.run(instance, Collections.unmodifiableList(jobs), BatchCut.SEQUENCE);
        } catch (Throwable t) {
            LOG.error("model {}: a run threw, which it must not", sequences.model, t);
            for (InferenceJob job : jobs) {
                job.fail(ServingException.from(t));
            }
        }
    }

    /** Whether a job is to run; if not, it has ended. */
    private static boolean begin(SequenceJob job, long now) {
        job.job.onCancel(null);
        if (job.cancelled()) {
            job.fail(Refusals.cancelled(job.job));
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
