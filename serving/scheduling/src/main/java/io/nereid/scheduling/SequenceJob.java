// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
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
 * One run of a request of a sequence: the request with the controls and states that the model reads beside its inputs. A
 * request that is rescheduled gets another of these. Its place in a queue is guarded by the batcher's lock; the rest
 * belongs to whoever has the job.
 */
final class SequenceJob implements InferenceJob, Reschedulable, Comparable<SequenceJob> {
    final InferenceJob job;
    final Strand strand;
    final boolean start;
    final boolean end;
    final long since;
    final long number;
    /** How often the request ran before. */
    final int runs;

    Place place = Place.NEW;
    /** When it falls out of the queue. */
    long due = Sequences.NEVER;

    private final Sequences sequences;
    private final AtomicBoolean ended = new AtomicBoolean();
    private volatile boolean began;
    private volatile boolean running;
    private @Nullable InferenceRequest full;
    private List<Tensor> extras = List.of();

    SequenceJob(
            Sequences sequences,
            InferenceJob job,
            Strand strand,
            boolean start,
            boolean end,
            int runs,
            long since,
            long number) {
        this.sequences = sequences;
        this.job = job;
        this.strand = strand;
        this.start = start;
        this.end = end;
        this.runs = runs;
        this.since = since;
        this.number = number;
    }

    /** Makes the request as the model sees it; for the one that is about to run it. */
    void prepare() {
        if (start) {
            strand.dropStates();
        }
        InferenceRequest raw = job.request();
        ControlTensors controls = sequences.controls;
        StateTensors states = sequences.states;
        List<Tensor> inputs = new ArrayList<>(raw.inputs().size() + controls.count() + states.count());
        inputs.addAll(raw.inputs());
        controls.append(inputs, start, end, strand.idTensor(controls));
        states.append(inputs, strand);
        extras = inputs.subList(raw.inputs().size(), inputs.size());
        InferenceRequest seen = raw.with(inputs, states.withStates(raw.outputs()));
        // The model knows the request again, when it comes back, by the sequence that stands for it.
        full = sequences.iterative ? seen.in(new InferenceRequest.Sequence(strand.id, start, false)) : seen;
    }

    /** The model gets it now. */
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

    /** A request that ran before is never dropped: the model must hear that it is over. */
    @Override
    public long deadlineNanos() {
        return runs > 0 ? Sequences.NEVER : job.deadlineNanos();
    }

    @Override
    public boolean cancelled() {
        if (runs == 0) {
            return job.cancelled();
        }
        return running && (job.cancelled() || late());
    }

    private boolean late() {
        long deadline = job.deadlineNanos();
        return deadline != Sequences.NEVER && deadline - sequences.clock.nanos() <= 0;
    }

    @Override
    public void onCancel(@Nullable Runnable action) {
        if (runs == 0 || running || action == null) {
            job.onCancel(action);
        }
    }

    @Override
    public void queued(long nanos) {
        // Its time in the queue began when it came to the batcher.
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
            answer = sequences.states.take(strand, outputs, wanted(), !end);
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
                answer = sequences.states.take(strand, outputs, wanted(), !end);
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
        // The sequence cannot go on when one of its requests never ran.
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
        if (!sequences.iterative) {
            fail(sequences.refusals.notIterative());
        } else if (job.cancelled()) {
            fail(Refusals.cancelled(job));
        } else if (late()) {
            fail(Refusals.late(job));
        } else if (ended.compareAndSet(false, true)) {
            dropExtras();
            sequences.again(this);
        }
    }

    private void leave(boolean broken) {
        dropExtras();
        sequences.ended(this, broken);
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

    /** Where the job is. */
    enum Place {
        NEW,
        WAITING,
        TAKEN,
        GONE
    }
}
