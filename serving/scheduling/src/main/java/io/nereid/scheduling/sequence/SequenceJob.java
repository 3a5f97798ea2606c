// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.sequence;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.scheduling.ReschedulableJob;
import io.nereid.scheduling.batcher.QueueErrors;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceRequest.RequestedOutput;
import io.nereid.tensor.Tensor;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/**
 * One run of a request of a sequence: adds control inputs and implicit states to the request before the run, and takes
 * the states out of the response after it. A rescheduled request gets a new job for each run.
 *
 * <p>{@code place} and {@code due} are guarded by the batcher's lock. The other fields are confined to the thread that
 * prepares and runs the job, except for volatile ones.
 */
final class SequenceJob implements InferenceJob, ReschedulableJob, Comparable<SequenceJob> {
    final InferenceJob job;
    final ActiveSequence sequence;
    final boolean start;
    final boolean end;
    final long since;
    final long number;
    /** Number of earlier runs of the request. */
    final int runs;

    Place place = Place.NEW;
    /** When it times out in the queue. */
    long due = SequenceBatcher.NEVER;

    private final SequenceBatcher batcher;
    private final AtomicBoolean ended = new AtomicBoolean();
    private volatile boolean began;
    private volatile boolean running;
    private @Nullable InferenceRequest full;
    private List<Tensor> extras = List.of();

    SequenceJob(
            SequenceBatcher batcher,
            InferenceJob job,
            ActiveSequence sequence,
            boolean start,
            boolean end,
            int runs,
            long since,
            long number) {
        this.batcher = batcher;
        this.job = job;
        this.sequence = sequence;
        this.start = start;
        this.end = end;
        this.runs = runs;
        this.since = since;
        this.number = number;
    }

    /** Builds the request with controls and states; called by the thread that is about to run it. */
    void prepare() {
        if (start) {
            sequence.dropStates();
        }
        InferenceRequest raw = job.request();
        SequenceControls controls = batcher.controls;
        ImplicitStates states = batcher.states;
        List<Tensor> inputs = new ArrayList<>(raw.inputs().size() + controls.count() + states.count());
        inputs.addAll(raw.inputs());
        controls.append(inputs, start, end, sequence.idTensor(controls));
        states.append(inputs, sequence);
        extras = inputs.subList(raw.inputs().size(), inputs.size());
        InferenceRequest seen = raw.with(inputs, states.withStates(raw.outputs()));
        // In iterative mode each request is a sequence of its own; its id lets the model recognize a rescheduled
        // request.
        full = batcher.iterative
                ? seen.withSequence(new InferenceRequest.SequenceFlags(sequence.id, start, false))
                : seen;
    }

    /** Marks the job as running: from now on it reports a cancellation to the model. */
    void running() {
        running = true;
    }

    @Override
    public InferenceRequest request() {
        InferenceRequest f = full;
        return f == null ? job.request() : f;
    }

    @Override
    public int batchSize() {
        return job.batchSize();
    }

    /**
     * Returns no deadline for a request that ran before: it must not be dropped in the queue, because the model has to
     * be notified that it ended, so that it can release the request's state. The model sees it as cancelled instead.
     */
    @Override
    public long deadlineNanos() {
        return runs > 0 ? SequenceBatcher.NEVER : job.deadlineNanos();
    }

    @Override
    public boolean refusable() {
        return job.refusable();
    }

    @Override
    public boolean cancelled() {
        if (runs == 0) {
            return job.cancelled();
        }
        // A rescheduled request must reach the model even when it was cancelled or is late; only then is that reported.
        return running && (job.cancelled() || late());
    }

    private boolean late() {
        long deadline = job.deadlineNanos();
        return deadline != SequenceBatcher.NEVER && deadline - batcher.clock.nanos() <= 0;
    }

    @Override
    public void onCancel(@Nullable Runnable action) {
        // In the queue a rescheduled request ignores cancellation, as cancelled() explains.
        if (runs == 0 || running || action == null) {
            job.onCancel(action);
        }
    }

    @Override
    public void queued(long nanos) {
        // The time in the queue began when the request arrived at the batcher.
    }

    @Override
    public long queuedNanos() {
        return job.queuedNanos();
    }

    @Override
    public void started(long nanos) {
        began = true;
        job.started(nanos);
    }

    @Override
    public void ran(long from, long to, int rows) {
        job.ran(from, to, rows);
    }

    @Override
    public void respond(List<Tensor> outputs, Map<String, Object> parameters) {
        if (ended.get()) {
            Tensor.closeAll(outputs);
            return;
        }
        List<Tensor> answer;
        try {
            answer = batcher.states.take(sequence, outputs, wanted(), !end);
        } catch (ServingException e) {
            Tensor.closeAll(outputs);
            fail(e);
            return;
        }
        job.respond(answer, parameters);
    }

    @Override
    public void complete(List<Tensor> outputs, Map<String, Object> parameters) {
        if (!ended.compareAndSet(false, true)) {
            Tensor.closeAll(outputs);
            return;
        }
        try {
            List<Tensor> answer;
            try {
                answer = batcher.states.take(sequence, outputs, wanted(), !end);
            } catch (ServingException e) {
                Tensor.closeAll(outputs);
                job.fail(e);
                return;
            }
            job.complete(answer, parameters);
        } finally {
            leave(false);
        }
    }

    @Override
    public void fail(ServingException e) {
        if (!ended.compareAndSet(false, true)) {
            return;
        }
        // The sequence cannot continue when one of its requests did not run, because the states lack its contribution.
        boolean broken = !began
                || (e.code() == ErrorCode.CANCELLED && job.cancelled())
                || (e.code() == ErrorCode.DEADLINE_EXCEEDED && late());
        try {
            job.fail(e);
        } finally {
            leave(broken);
        }
    }

    @Override
    public void reschedule() {
        if (!batcher.iterative) {
            fail(batcher.errors.notIterative());
        } else if (job.cancelled()) {
            fail(QueueErrors.cancelled(job));
        } else if (late()) {
            fail(QueueErrors.late(job));
        } else if (ended.compareAndSet(false, true)) {
            dropExtras();
            batcher.again(this);
        }
    }

    private void leave(boolean broken) {
        dropExtras();
        batcher.ended(this, broken);
    }

    private void dropExtras() {
        List<Tensor> mine = extras;
        extras = List.of();
        Tensor.closeAll(mine);
    }

    private List<RequestedOutput> wanted() {
        return job.request().outputs();
    }

    @Override
    public int compareTo(SequenceJob other) {
        int byDue = Long.signum(due - other.due);
        return byDue != 0 ? byDue : Long.compare(number, other.number);
    }

    @Override
    public boolean equals(@Nullable Object o) {
        return this == o;
    }

    @Override
    public int hashCode() {
        return Long.hashCode(number);
    }

    /** The state of the job: NEW → WAITING → TAKEN or GONE. */
    enum Place {
        NEW,
        WAITING,
        TAKEN,
        GONE
    }
}
