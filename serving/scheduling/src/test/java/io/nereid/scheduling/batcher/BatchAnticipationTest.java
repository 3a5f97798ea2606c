// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.batcher;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.scheduling.BatchCloseReason;
import io.nereid.scheduling.FakeJob;
import io.nereid.scheduling.InlinePolicy;
import io.nereid.scheduling.Puppet;
import io.nereid.scheduling.SchedulerOptions;
import io.nereid.scheduling.execution.DeviceExecutor;
import io.nereid.scheduling.execution.ManualTime;
import io.nereid.spi.config.DynamicBatching;
import io.nereid.spi.config.ModelConfig;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** {@link DynamicBatcher} with anticipation: clients that send again 50 microseconds after a response, one instance. */
class BatchAnticipationTest {
    private static final long FIXED = 1_000_000;
    private static final long ROW = 100_000;
    private static final long BACK = 50_000;

    private final ManualTime time = new ManualTime();
    private final DeviceExecutor pool = new DeviceExecutor("test", 0, time, time);
    private final Puppet puppet = new Puppet();
    private int number;

    private DynamicBatcher batcher(long delay, Map<String, String> parameters) {
        DynamicBatching batching = new DynamicBatching(List.of(), Duration.ofNanos(delay), false, 2, 2, Map.of());
        ModelConfig config = DynamicBatcherTest.config(8, 1, batching).toBuilder()
                .parameters(parameters)
                .build();
        return new DynamicBatcher(config, puppet, pool, new SchedulerOptions(100, InlinePolicy.NEVER));
    }

    /** Submits a request and returns it. */
    private FakeJob submit(DynamicBatcher batcher) {
        FakeJob job = FakeJob.of(++number);
        batcher.submit(job);
        return job;
    }

    /** Runs the batch that a thread would run now, while others arrive, and returns its size. */
    private int run(DynamicBatcher batcher, int arriving) {
        int before = puppet.ran.size();
        puppet.during = () -> {
            for (int i = 0; i < arriving; i++) {
                submit(batcher);
            }
            time.spend(FIXED + ROW * puppet.ran.get(before).size());
        };
        assertThat(pool.runNext()).isTrue();
        assertThat(puppet.trouble).isEmpty();
        return puppet.ran.get(before).size();
    }

    private int run(DynamicBatcher batcher) {
        return run(batcher, 0);
    }

    private void awaitBatch() {
        for (int i = 0; i < 1_000 && pool.waiting() == 0; i++) {
            time.advance(10_000);
        }
    }

    /** Lets clients send again whenever they have a response, over a number of runs; afterwards all are about to send. */
    private void loop(DynamicBatcher batcher, int clients, int runs) {
        int back = clients;
        for (int i = 0; i < runs; i++) {
            time.advance(BACK);
            while (back > 0 && pool.waiting() == 0) {
                submit(batcher);
                back--;
                time.advance(1_000);
            }
            awaitBatch();
            back = run(batcher, back);
        }
        if (batcher.queued() > 0) {
            awaitBatch();
            run(batcher);
        }
        assertThat(batcher.queued()).isZero();
        time.advance(BACK);
    }

    @Test
    void aSingleClientDoesNotWaitForTheDelayOnceItIsKnown() {
        DynamicBatcher batcher = batcher(2_000_000, Map.of());
        submit(batcher);
        assertThat(pool.waiting()).isZero();
        time.advance(2_000_000);
        assertThat(run(batcher)).isEqualTo(1);
        loop(batcher, 1, 20);
        submit(batcher);
        assertThat(pool.waiting()).isEqualTo(1);
        run(batcher);
        assertThat(puppet.cuts).contains(BatchCloseReason.DELAY).endsWith(BatchCloseReason.NO_MORE);
    }

    @Test
    void aSecondClientIsWaitedForAsLongAsTheDelayAllows() {
        DynamicBatcher batcher = batcher(2_000_000, Map.of());
        loop(batcher, 1, 20);
        loop(batcher, 2, 3);
        submit(batcher);
        assertThat(pool.waiting()).isZero();
        time.advance(1_999_999);
        assertThat(pool.waiting()).isZero();
        time.advance(1);
        assertThat(pool.waiting()).isEqualTo(1);
        run(batcher);
        submit(batcher);
        submit(batcher);
        assertThat(pool.waiting()).isEqualTo(1);
        assertThat(run(batcher)).isEqualTo(2);
    }

    @Test
    void withoutADelayABatchWaitsForTheOtherClientsOfTheLastRun() {
        DynamicBatcher batcher = known();
        FakeJob first = submit(batcher);
        assertThat(pool.waiting()).isZero();
        time.advance(2_000);
        submit(batcher);
        assertThat(pool.waiting()).isEqualTo(1);
        assertThat(run(batcher)).isEqualTo(2);
        assertThat(first.ends.get()).isEqualTo(1);
        assertThat(puppet.cuts).endsWith(BatchCloseReason.NO_MORE);
    }

    @Test
    void aClientThatStaysAwayIsNotWaitedForLong() {
        DynamicBatcher batcher = known();
        submit(batcher);
        assertThat(pool.waiting()).isZero();
        // Half of what a run less saves is the longest wait.
        time.advance(FIXED / 2);
        assertThat(pool.waiting()).isEqualTo(1);
        assertThat(run(batcher)).isEqualTo(1);
        loop(batcher, 1, 40);
        submit(batcher);
        assertThat(pool.waiting()).isEqualTo(1);
    }

    @Test
    void aJobThatWouldBeLateOrIsUrgentDoesNotWait() {
        DynamicBatcher batcher = known();
        batcher.submit(FakeJob.until(++number, time.nanos() + 1_100_000));
        assertThat(pool.waiting()).isEqualTo(1);
        run(batcher);
        time.advance(BACK);
        batcher.submit(FakeJob.of(++number).priority(1));
        assertThat(pool.waiting()).isEqualTo(1);
    }

    @Test
    void aCloseEndsTheWait() {
        DynamicBatcher batcher = known();
        submit(batcher);
        assertThat(pool.waiting()).isZero();
        batcher.close();
        assertThat(pool.waiting()).isEqualTo(1);
        run(batcher);
        assertThat(batcher.drained().toCompletableFuture()).isCompleted();
    }

    @Test
    void switchedOffABatchClosesAsConfigured() {
        Map<String, String> off = Map.of(DynamicBatching.ANTICIPATION, "off");
        DynamicBatcher delayed = batcher(2_000_000, off);
        loop(delayed, 1, 20);
        submit(delayed);
        assertThat(pool.waiting()).isZero();
        time.advance(2_000_000);
        assertThat(pool.waiting()).isEqualTo(1);
        run(delayed);

        DynamicBatcher eager = batcher(0, off);
        loop(eager, 2, 40);
        submit(eager);
        assertThat(pool.waiting()).isEqualTo(1);
    }

    @Test
    void anotherValueIsRefused() {
        assertThatThrownBy(() -> batcher(0, Map.of(DynamicBatching.ANTICIPATION, "maybe")))
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT))
                .hasMessageContaining("batching_anticipation")
                .hasMessageContaining("'maybe' (expected: on or off)");
    }

    /** Returns a batcher without a delay that has served two clients for a while; both are about to send again. */
    private DynamicBatcher known() {
        DynamicBatcher batcher = batcher(0, Map.of());
        loop(batcher, 2, 60);
        return batcher;
    }
}
