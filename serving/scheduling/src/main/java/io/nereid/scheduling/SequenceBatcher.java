// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

import io.nereid.base.ServingException;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.ModelConfig;
import io.nereid.spi.ModelConfig.Sequence;
import io.nereid.tensor.DataType;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Brings the requests of one sequence, one after the other, to one place of one instance, and tells the model where in its
 * sequence each stands. A sequence begins with a request that says START and ends with the one that says END, when it has
 * been silent for too long, or when a request of it is cancelled or misses its deadline before it ran; a failure of the
 * model does not end it. Sequences that find no free place wait for one in the order they came; meanwhile a request's
 * {@code timeout} counts, and a sequence one of whose requests has waited longer fails as a whole.
 *
 * <p>The runner is given jobs whose requests hold the controls and states beside the client's inputs, and ask for the
 * states' outputs too; those are kept for the sequence's next request. With the direct strategy a batch has a row for
 * every place up to the last one with a request; {@link #isFiller} tells those that stand for none.
 *
 * <p>A silent sequence's time runs from when its last request came, or from when it left the backlog. Requests of
 * iterative sequences are sequences by themselves and never count as silent.
 *
 * <p>Thread-safe by one short lock; nothing blocks.
 */
public final class SequenceBatcher implements Scheduler {
    private final Sequences sequences;
    private final ControlTensors controls;
    private final boolean iterative;
    private final long greatestOwnId;
    private final boolean ownIdsAreTexts;
    private final AtomicLong ownIds = new AtomicLong();

    /**
     * For a model whose configuration has a {@code sequence}; {@code pool} gives threads, timer and clock and outlives
     * this.
     *
     * @throws ServingException INVALID_ARGUMENT when a control or a state cannot be as configured, and whatever
     *     {@code initialStates} throws
     */
    public SequenceBatcher(
            ModelConfig config,
            BatchRunner runner,
            DevicePool pool,
            SchedulerOptions options,
            InitialStates initialStates) {
        Sequence sequence = config.sequence();
        if (sequence == null) {
            throw new IllegalArgumentException("model '" + config.name() + "' has no sequence batching");
        }
        this.iterative = sequence.iterative();
        this.controls = new ControlTensors(config, sequence.controls());
        DataType idType = controls.idType();
        this.ownIdsAreTexts = idType == DataType.BYTES;
        this.greatestOwnId = idType == DataType.INT32 || idType == DataType.UINT32 ? Integer.MAX_VALUE : Long.MAX_VALUE;
        StateTensors states = null;
        try {
            states = new StateTensors(config, sequence.states(), initialStates);
            this.sequences = new Sequences(config, sequence, runner, pool, options, controls, states);
        } catch (RuntimeException e) {
            controls.close();
            if (states != null) {
                states.close();
            }
            throw e;
        }
    }

    /** Whether a job that a {@link BatchRunner} got is a row without a request: it counts in no statistics. */
    public static boolean isFiller(InferenceJob job) {
        return job instanceof FillerJob;
    }

    /**
     * Takes a job, as {@link Scheduler#submit}.
     *
     * @throws ServingException also INVALID_ARGUMENT when the request has several rows, names no sequence or one that is
     *     not under way without saying START, or names it as the model cannot be told
     */
    @Override
    public void submit(InferenceJob job) {
        long deadline = job.deadlineNanos();
        if (deadline != Sequences.NEVER && deadline - sequences.clock.nanos() <= 0) {
            throw Refusals.late(job);
        }
        if (job.cancelled()) {
            throw Refusals.cancelled(job);
        }
        if (job.batchSize() != 1) {
            throw sequences.refusals.batchSize();
        }
        if (iterative) {
            long id = 1 + Math.floorMod(ownIds.getAndIncrement(), greatestOwnId);
            sequences.submit(job, ownIdsAreTexts ? Long.toString(id) : id, true, false);
            return;
        }
        InferenceRequest.Sequence where = job.request().options().sequence();
        if (where == null || where.id().equals(0L) || where.id().equals("")) {
            throw sequences.refusals.noId();
        }
        controls.checkId(where.id());
        sequences.submit(job, where.id(), where.start(), where.end());
    }

    @Override
    public int queued() {
        return sequences.queued();
    }

    @Override
    public int instances() {
        return sequences.instances();
    }

    /** As {@link Scheduler#instances(int)}; an instance beyond {@code count} keeps its sequences until they end. */
    @Override
    public void instances(int count) {
        sequences.resize(count);
    }

    @Override
    public int running() {
        return sequences.running();
    }

    @Override
    public long batches() {
        return sequences.batches();
    }

    /** Accepts no more jobs; sequences under way end after what they have queued. Returns at once. Idempotent. */
    @Override
    public void close() {
        sequences.close();
    }

    @Override
    public CompletionStage<Void> drained() {
        return sequences.drained();
    }
}
