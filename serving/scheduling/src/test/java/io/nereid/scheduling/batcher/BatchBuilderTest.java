// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.batcher;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.scheduling.BatchCloseReason;
import io.nereid.scheduling.BatchStrategy;
import io.nereid.scheduling.FakeJob;
import io.nereid.scheduling.InlinePolicy;
import io.nereid.scheduling.Puppet;
import io.nereid.scheduling.Scheduler;
import io.nereid.scheduling.SchedulerOptions;
import io.nereid.scheduling.execution.DeviceExecutor;
import io.nereid.scheduling.execution.ManualTime;
import io.nereid.scheduling.factory.SchedulerFactory;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.config.DynamicBatching;
import io.nereid.spi.config.ModelConfig;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

class BatchBuilderTest {
    private final ManualTime time = new ManualTime();
    private final DeviceExecutor pool = new DeviceExecutor("test", 0, time, time);
    private final Puppet puppet = new Puppet();

    private Scheduler batcher(
            InlinePolicy inline, @Nullable BatchStrategy strategy, int max, long delay, Integer... preferred) {
        ModelConfig config = ModelConfig.builder("m")
                .maxBatchSize(max)
                .batching(new DynamicBatching(List.of(preferred), Duration.ofNanos(delay), false))
                .instances(1)
                .build();
        return SchedulerFactory.create(config, puppet, pool, new SchedulerOptions(100, inline).withStrategy(strategy));
    }

    private Scheduler batcher(int max, long delay, Integer... preferred) {
        return batcher(InlinePolicy.NEVER, null, max, delay, preferred);
    }

    private void submit(Scheduler s, FakeJob... jobs) {
        for (FakeJob job : jobs) {
            s.submit(job);
        }
    }

    private void submit(Scheduler s, int from, int to) {
        for (int i = from; i <= to; i++) {
            s.submit(FakeJob.of(i));
        }
    }

    private void runAll() {
        while (pool.runNext()) {
            assertThat(puppet.ran).hasSizeLessThan(1_000);
        }
    }

    private void expect(BatchCloseReason cut, Integer... jobs) {
        assertThat(puppet.ran).first().isEqualTo(List.of(jobs));
        assertThat(puppet.cuts).first().isEqualTo(cut);
    }

    @Test
    void saysThatTheModelTakesOneAtATime() {
        submit(batcher(0, 0), 1, 2);
        runAll();
        expect(BatchCloseReason.SINGLE, 1);
    }

    @Test
    void saysThatTheJobRanOnItsCallersThread() {
        submit(batcher(InlinePolicy.ALWAYS, null, 4, 0), 1, 1);
        expect(BatchCloseReason.INLINE, 1);
    }

    @Test
    void saysThatAPreferredSizeWasReached() {
        submit(batcher(8, 100, 2), 1, 2);
        runAll();
        expect(BatchCloseReason.PREFERRED_SIZE, 1, 2);
    }

    @Test
    void saysThatALargestPreferredSizeWouldHaveBeenPassed() {
        submit(batcher(8, 100, 4), FakeJob.rows(1, 3), FakeJob.rows(2, 2));
        runAll();
        expect(BatchCloseReason.PREFERRED_SIZE, 1);
    }

    @Test
    void saysThatAPreferredSizeWasReachedThoughTheDelayIsOverToo() {
        Scheduler s = batcher(8, 100, 2);
        submit(s, FakeJob.of(1));
        time.spend(200);
        submit(s, FakeJob.of(2), FakeJob.of(3));
        runAll();
        expect(BatchCloseReason.PREFERRED_SIZE, 1, 2);
    }

    @Test
    void saysThatTheBatchIsAsLargeAsTheModelTakes() {
        submit(batcher(4, 100), 1, 5);
        runAll();
        expect(BatchCloseReason.MAX_SIZE, 1, 2, 3, 4);
    }

    @Test
    void saysThatTheNextJobWouldHaveBeenTooMuchForTheModel() {
        submit(batcher(4, 100), FakeJob.rows(1, 3), FakeJob.rows(2, 2));
        runAll();
        expect(BatchCloseReason.MAX_SIZE, 1);
    }

    @Test
    void saysThatTheNextJobHasAnotherShape() {
        submit(batcher(4, 100), FakeJob.shaped(1, 1), FakeJob.shaped(2, 2));
        runAll();
        expect(BatchCloseReason.SHAPE, 1);
    }

    @Test
    void saysThatTheDelayWasOver() {
        submit(batcher(4, 100), 1, 2);
        time.advance(100);
        runAll();
        expect(BatchCloseReason.DELAY, 1, 2);
    }

    @Test
    void saysThatNothingElseWaited() {
        submit(batcher(4, 0), 1, 2);
        runAll();
        expect(BatchCloseReason.NO_MORE, 1, 2);
    }

    @Test
    void saysThatTheSchedulerEnds() {
        Scheduler s = batcher(4, 100);
        submit(s, 1, 2);
        s.close();
        runAll();
        expect(BatchCloseReason.CLOSING, 1, 2);
    }

    @Test
    void asksTheStrategyAndSaysThatItEndedTheBatch() {
        Volume volume = new Volume(5);
        Scheduler s = batcher(InlinePolicy.ALWAYS, volume, 8, 100);
        submit(s, FakeJob.of(2), FakeJob.of(3), FakeJob.of(1));
        runAll();
        expect(BatchCloseReason.STRATEGY, 2, 3);
        time.advance(100);
        runAll();
        assertThat(puppet.ran).containsExactly(List.of(2, 3), List.of(1));
        assertThat(puppet.cuts).containsExactly(BatchCloseReason.STRATEGY, BatchCloseReason.DELAY);
        s.close();
        assertThat(volume.log).as("every begin has an end").containsExactly("begin", "end", "begin", "end", "close");
    }

    @Test
    void runsAJobAloneThatTheStrategyWouldNeverTake() {
        Scheduler s = batcher(InlinePolicy.NEVER, new Volume(5), 8, 100);
        submit(s, FakeJob.of(9), FakeJob.of(1));
        runAll();
        expect(BatchCloseReason.STRATEGY, 9);
        time.advance(100);
        runAll();
        assertThat(puppet.ran).containsExactly(List.of(9), List.of(1));
    }

    @Test
    void beginsTheStrategyAnewWhenAJobOfTheBatchGoesAway() {
        Volume volume = new Volume(5);
        Scheduler s = batcher(InlinePolicy.NEVER, volume, 8, 100);
        FakeJob gone = FakeJob.of(4);
        submit(s, gone, FakeJob.of(1));
        gone.cancel();
        submit(s, FakeJob.of(3));
        time.advance(100);
        runAll();
        assertThat(puppet.ran).containsExactly(List.of(1, 3));
        assertThat(volume.log).containsExactly("begin", "end", "begin", "end");
    }

    @Test
    void takesAStrategyThatThrowsForANo() {
        BatchStrategy broken = new BatchStrategy() {
            @Override
            public @Nullable Object begin() {
                throw new IllegalStateException("broken");
            }

            @Override
            public boolean include(InferenceJob job, @Nullable Object state) {
                throw new IllegalStateException("broken");
            }

            @Override
            public void end(@Nullable Object state) {
                throw new IllegalStateException("broken");
            }

            @Override
            public void close() {
                throw new IllegalStateException("broken");
            }
        };
        Scheduler s = batcher(InlinePolicy.NEVER, broken, 8, 0);
        submit(s, 1, 2);
        runAll();
        assertThat(puppet.ran).containsExactly(List.of(1), List.of(2));
        s.close();
        assertThat(s.drained().toCompletableFuture()).isCompleted();
    }

    /** Includes jobs while the sum of their numbers is small. Confined to one thread. */
    private static final class Volume implements BatchStrategy {
        final List<String> log = new ArrayList<>();
        private final int most;

        Volume(int most) {
            this.most = most;
        }

        @Override
        public Object begin() {
            log.add("begin");
            return new int[1];
        }

        @Override
        public boolean include(InferenceJob job, @Nullable Object state) {
            if (!(state instanceof int[] sum)) {
                throw new AssertionError("another's state: " + state);
            }
            int next = sum[0] + Puppet.number(job);
            if (next > most) {
                return false;
            }
            sum[0] = next;
            return true;
        }

        @Override
        public void end(@Nullable Object state) {
            log.add("end");
        }

        @Override
        public void close() {
            log.add("close");
        }
    }
}
