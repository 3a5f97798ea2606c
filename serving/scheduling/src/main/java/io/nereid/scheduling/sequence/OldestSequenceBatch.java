// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.sequence;

import io.nereid.base.ServingException;
import io.nereid.scheduling.BatchCloseReason;
import io.nereid.scheduling.BatchRunner;
import io.nereid.scheduling.SchedulerOptions;
import io.nereid.scheduling.batcher.DynamicBatcher;
import io.nereid.scheduling.execution.DeviceExecutor;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.config.DynamicBatching;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.QueuePolicy;
import io.nereid.spi.config.SequenceBatching.Oldest;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletionStage;

/**
 * The oldest strategy (Triton: {@code OldestSequenceBatch}): the requests of all sequences of an instance are batched
 * together, oldest first. An inner {@link DynamicBatcher} receives at most one request of each sequence at a time, so it
 * needs no knowledge of sequences.
 *
 * <p>Guarded by the batcher's lock, except for methods that state otherwise.
 */
final class OldestSequenceBatch extends SequenceBatch {
    private final DynamicBatcher inner;

    /**
     * @param config with an instance group of this instance only
     */
    OldestSequenceBatch(
            SequenceBatcher batcher,
            int instance,
            int places,
            ModelConfig config,
            Oldest oldest,
            BatchRunner runner,
            DeviceExecutor pool,
            SchedulerOptions options) {
        super(batcher, instance, places);
        // A rescheduled request is recognized by its job, which the decorator of ordered responses would hide.
        boolean ordered = oldest.preserveOrdering() && !batcher.iterative;
        DynamicBatching settings = new DynamicBatching(oldest.preferredSizes(), oldest.maxQueueDelay(), ordered);
        ModelConfig own = config.toBuilder()
                .sequence(null)
                .queue(new QueuePolicy(0, Duration.ZERO, false))
                .batching(settings)
                .build();
        SchedulerOptions unlimited =
                new SchedulerOptions(Integer.MAX_VALUE, options.inline(), null, options.limiter(), 0, 0, null);
        inner = new DynamicBatcher(own, new Renumbered(runner, batcher), pool, batcher.runs, unlimited);
    }

    @Override
    void trySchedule(SequenceSlot slot, DeferredActions out, long now) {
        ActiveSequence sequence = slot.sequence;
        if (sequence != null && sequence.ready() && !batcher.registry.held()) {
            SequenceJob next = batcher.registry.take(sequence, now);
            out.add(() -> hand(next));
        }
    }

    /** Submits a request that was taken from its sequence; called without the lock. */
    private void hand(SequenceJob next) {
        try {
            next.job.onCancel(null);
            next.prepare();
            inner.submit(next);
        } catch (RuntimeException e) {
            next.fail(ServingException.from(e));
        }
    }

    @Override
    int running() {
        return inner.running();
    }

    @Override
    long batches() {
        return inner.batches();
    }

    @Override
    int queued() {
        return inner.queued();
    }

    @Override
    CompletionStage<Void> close() {
        inner.close();
        return inner.drained();
    }

    /** Adapts the runner: the inner queue has one instance with number 0, which is {@link #instance} for the runner. */
    private final class Renumbered implements BatchRunner {
        private final BatchRunner runner;
        private final SequenceBatcher owner;

        Renumbered(BatchRunner runner, SequenceBatcher owner) {
            this.runner = runner;
            this.owner = owner;
        }

        @Override
        public void run(int zero, List<InferenceJob> jobs, BatchCloseReason reason) {
            for (InferenceJob job : jobs) {
                if (job instanceof SequenceJob s) {
                    s.running();
                }
            }
            runner.run(instance, jobs, reason);
        }

        @Override
        public boolean joinable(InferenceJob a, InferenceJob b) {
            return a instanceof SequenceJob x && b instanceof SequenceJob y
                    ? owner.joinable(x, y)
                    : runner.joinable(a, b);
        }
    }
}
