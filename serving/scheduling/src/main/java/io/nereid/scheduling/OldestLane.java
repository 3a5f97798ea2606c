// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

import io.nereid.base.ServingException;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.ModelConfig;
import io.nereid.spi.ModelConfig.Batching;
import io.nereid.spi.ModelConfig.Queue;
import io.nereid.spi.ModelConfig.Sequence.Oldest;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletionStage;

/**
 * An instance whose sequences are batched with each other, oldest request first: a dynamic batcher that gets at most one
 * request of each sequence at a time. Guarded by the batcher's lock, but where a method says otherwise.
 */
final class OldestLane extends SequenceLane {
    private final DynamicBatcher inner;

    /**
     * @param config with the group of this instance alone
     */
    OldestLane(
            Sequences sequences,
            int instance,
            int places,
            ModelConfig config,
            Oldest oldest,
            BatchRunner runner,
            DevicePool pool,
            SchedulerOptions options) {
        super(sequences, instance, places);
        // An iterative request comes back through its job, which an ordered exit would hide.
        boolean ordered = oldest.preserveOrdering() && !sequences.iterative;
        ModelConfig own = config.toBuilder()
                .sequence(null)
                .queue(new Queue(0, Duration.ZERO, false))
                .batching(new Batching(oldest.preferredSizes(), oldest.maxQueueDelay(), ordered))
                .build();
        SchedulerOptions unlimited =
                new SchedulerOptions(Integer.MAX_VALUE, options.inline(), null, options.limiter(), 0, 0);
        inner = new DynamicBatcher(own, new Renumbered(runner, sequences), pool, unlimited);
    }

    @Override
    void stir(Slot slot, Outbox out, long now) {
        Strand strand = slot.strand;
        if (strand != null && strand.ready() && !sequences.book.held()) {
            SequenceJob next = sequences.book.take(strand);
            out.add(() -> hand(next));
        }
    }

    /** Without the lock. */
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

    /** The runner, as the dynamic batcher of one instance sees it. */
    private final class Renumbered implements BatchRunner {
        private final BatchRunner runner;
        private final Sequences owner;

        Renumbered(BatchRunner runner, Sequences owner) {
            this.runner = runner;
            this.owner = owner;
        }

        @Override
        public void run(int zero, List<InferenceJob> jobs, BatchCut cut) {
            for (InferenceJob job : jobs) {
                if (job instanceof SequenceJob s) {
                    s.running();
                }
            }
            runner.run(instance, jobs, cut);
        }

        @Override
        public boolean joinable(InferenceJob a, InferenceJob b) {
            return a instanceof SequenceJob x && b instanceof SequenceJob y
                    ? owner.joinable(x, y)
                    : runner.joinable(a, b);
        }
    }
}
