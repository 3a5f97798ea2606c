// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.batcher;

import io.nereid.base.ServingException;
import io.nereid.scheduling.BatchRunner;
import io.nereid.scheduling.InitialStateFiles;
import io.nereid.scheduling.SchedulerOptions;
import io.nereid.scheduling.execution.DeviceExecutor;
import io.nereid.scheduling.queue.QueueErrors;
import io.nereid.scheduling.sequence.ImplicitStates;
import io.nereid.scheduling.sequence.PaddingJob;
import io.nereid.scheduling.sequence.SequenceBatcherCore;
import io.nereid.scheduling.sequence.SequenceControls;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.SequenceBatching;
import io.nereid.tensor.DataType;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.atomic.AtomicLong;

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
 * <p><b>What the runner sees.</b> The requests in its jobs contain the control inputs and the implicit states in
 * addition to the client's inputs, and request the outputs of the states, which are kept for the next request of the
 * sequence. With the direct strategy a batch has a row for each slot up to the last one with a request;
 * {@link #isFiller} identifies rows without a request.
 *
 * <p>Thread-safe: one short lock; no method blocks.
 */
public final class SequenceBatcher implements Scheduler {
    private final SequenceBatcherCore batcher;
    private final SequenceControls controls;
    private final boolean iterative;
    private final long greatestOwnId;
    private final boolean ownIdsAreTexts;
    private final AtomicLong ownIds = new AtomicLong();

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
        this.iterative = sequence.iterative();
        this.controls = new SequenceControls(config, sequence.controls());
        DataType idType = controls.idType();
        this.ownIdsAreTexts = idType == DataType.BYTES;
        this.greatestOwnId = idType == DataType.INT32 || idType == DataType.UINT32 ? Integer.MAX_VALUE : Long.MAX_VALUE;
        ImplicitStates states = null;
        try {
            states = new ImplicitStates(config, sequence.states(), initialStates);
            this.batcher = new SequenceBatcherCore(config, sequence, runner, pool, options, controls, states);
        } catch (RuntimeException e) {
            controls.close();
            if (states != null) {
                states.close();
            }
            throw e;
        }
    }

    /** Returns whether a job of a batch is a row without a request, which must not be counted in statistics. */
    public static boolean isFiller(InferenceJob job) {
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
        if (deadline != SequenceBatcherCore.NEVER && deadline - batcher.clock.nanos() <= 0) {
            throw QueueErrors.late(job);
        }
        if (job.cancelled()) {
            throw QueueErrors.cancelled(job);
        }
        if (job.batchSize() != 1) {
            throw batcher.errors.batchSize();
        }
        if (iterative) {
            long id = 1 + Math.floorMod(ownIds.getAndIncrement(), greatestOwnId);
            batcher.submit(job, ownIdsAreTexts ? Long.toString(id) : id, true, false);
            return;
        }
        InferenceRequest.SequenceFlags where = job.request().options().sequence();
        if (where == null || where.id().equals(0L) || where.id().equals("")) {
            throw batcher.errors.noId();
        }
        controls.checkId(where.id());
        batcher.submit(job, where.id(), where.start(), where.end());
    }

    @Override
    public int queued() {
        return batcher.queued();
    }

    @Override
    public int instances() {
        return batcher.instances();
    }

    /** {@inheritDoc} An instance beyond {@code count} keeps its sequences until they end. */
    @Override
    public void instances(int count) {
        batcher.resize(count);
    }

    @Override
    public int running() {
        return batcher.running();
    }

    @Override
    public long batches() {
        return batcher.batches();
    }

    /** {@inheritDoc} Active sequences end after the requests that they have queued. */
    @Override
    public void close() {
        batcher.close();
    }

    @Override
    public CompletionStage<Void> drained() {
        return batcher.drained();
    }
}
