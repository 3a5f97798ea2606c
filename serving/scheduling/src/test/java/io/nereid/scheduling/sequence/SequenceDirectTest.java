// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.sequence;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.scheduling.BatchCloseReason;
import io.nereid.scheduling.InlinePolicy;
import io.nereid.scheduling.SchedulerOptions;
import io.nereid.scheduling.execution.RateLimiter;
import io.nereid.scheduling.execution.RunTimeEstimator;
import io.nereid.spi.config.InstanceGroup;
import io.nereid.spi.config.InstanceGroup.Resource;
import io.nereid.spi.config.SequenceBatching.Direct;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** The direct strategy, and the rules of both strategies. */
class SequenceDirectTest {
    private final SequenceFixture fixture = new SequenceFixture();

    @BeforeEach
    void batchesOfFour() {
        fixture.maxBatch = 4;
    }

    @Test
    void rejectsARequestOfSeveralRows() {
        SequenceBatcher batcher = fixture.open();
        FakeSequenceJob request = fixture.request("1 S");
        request.rows = 2;
        ServingException e = fixture.rejected(batcher, request);
        assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
        assertThat(e)
                .hasMessage("inference request to model 'm' must specify batch-size 1 due to requirements of sequence"
                        + " batcher");
        fixture.end(batcher);
    }

    @Test
    void rejectsARequestWithoutAnId() {
        SequenceBatcher batcher = fixture.open();
        String text = "inference request to model 'm' must specify a non-zero or non-empty correlation ID";
        assertThat(fixture.rejected(batcher, fixture.request("0 S"))).hasMessage(text);
        assertThat(fixture.rejected(batcher, fixture.request("", true, false, 1)))
                .hasMessage(text);
        FakeSequenceJob none = fixture.request("1 S");
        none.sequence = null;
        ServingException e = fixture.rejected(batcher, none);
        assertThat(e).hasMessage(text);
        assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
        fixture.end(batcher);
    }

    @Test
    void rejectsAFirstRequestWithoutStart() {
        SequenceBatcher batcher = fixture.open();
        ServingException e = fixture.rejected(batcher, fixture.request("18446744073709551615"));
        assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
        assertThat(e)
                .hasMessage("inference request for sequence 18446744073709551615 to model 'm' must specify the START"
                        + " flag on the first request of the sequence");
        assertThat(fixture.rejected(batcher, fixture.request("abc E")))
                .hasMessageContaining("for sequence abc to model 'm'");
        fixture.end(batcher);
    }

    @Test
    void rejectsWhatFollowsAnEnd() {
        SequenceBatcher batcher = fixture.open();
        fixture.submit(batcher, "1 S");
        fixture.submit(batcher, "1 E");
        assertThat(fixture.rejected(batcher, fixture.request("1"))).hasMessageContaining("must specify the START flag");
        fixture.end(batcher);
    }

    @Test
    void runsARequestThatIsBothFirstAndLast() {
        SequenceBatcher batcher = fixture.open();
        FakeSequenceJob request = fixture.submit(batcher, "1 SE");
        fixture.runAll();
        assertThat(request.code).isEqualTo(ErrorCode.OK);
        assertThat(fixture.rejected(batcher, fixture.request("1"))).hasMessageContaining("must specify the START flag");
        fixture.end(batcher);
    }

    @Test
    void givesEverySequenceARowOfItsOwn() {
        SequenceBatcher batcher = fixture.open();
        fixture.submit(batcher, "1 S");
        fixture.submit(batcher, "2 S");
        fixture.submit(batcher, "3 S");
        fixture.submit(batcher, "1");
        fixture.submit(batcher, "3");
        assertThat(batcher.queued()).isEqualTo(5);
        fixture.runAll();
        assertThat(fixture.ran()).containsExactly(List.of("r1", "r2", "r3"), List.of("r4", "-", "r5"));
        assertThat(fixture.puppet.cuts).containsOnly(BatchCloseReason.SEQUENCE);
        assertThat(batcher.batches()).isEqualTo(2);
        fixture.end(batcher);
    }

    @Test
    void sendsNoRowsAboveTheLastOneWithARequest() {
        SequenceBatcher batcher = fixture.open();
        fixture.submit(batcher, "1 S");
        fixture.submit(batcher, "2 S");
        fixture.submit(batcher, "3 S");
        fixture.runAll();
        fixture.submit(batcher, "2");
        fixture.runAll();
        assertThat(fixture.ran().get(1)).containsExactly("-", "r4");
        fixture.end(batcher);
    }

    @Test
    void hasOneSlotForEachInstanceOfAModelWithoutBatches() {
        fixture.maxBatch = 0;
        fixture.instances = 2;
        SequenceBatcher batcher = fixture.open();
        fixture.submit(batcher, "1 SE");
        fixture.submit(batcher, "2 SE");
        fixture.submit(batcher, "3 SE");
        fixture.runAll();
        assertThat(fixture.ran()).containsExactly(List.of("r1"), List.of("r2"), List.of("r3"));
        assertThat(fixture.puppet.instances).containsExactly(0, 1, 0);
        fixture.end(batcher);
    }

    @Test
    void givesOutTheLowestSlotOfAnyInstanceFirst() {
        fixture.instances = 2;
        SequenceBatcher batcher = fixture.open();
        for (int i = 1; i <= 5; i++) {
            fixture.submit(batcher, i + " S");
        }
        fixture.runAll();
        assertThat(fixture.ran()).containsExactly(List.of("r1", "r3", "r5"), List.of("r2", "r4"));
        assertThat(fixture.puppet.instances).containsExactly(0, 1);
        fixture.submit(batcher, "3 E");
        fixture.runAll();
        assertThat(fixture.ran().get(2)).containsExactly("-", "r6");
        fixture.submit(batcher, "6 S");
        fixture.runAll();
        assertThat(fixture.ran().get(3)).containsExactly("-", "r7");
        assertThat(fixture.puppet.instances).containsExactly(0, 1, 0, 0);
        fixture.end(batcher);
    }

    @Test
    void keepsTheOrderWithinASequence() {
        fixture.maxBatch = 0;
        SequenceBatcher batcher = fixture.open();
        fixture.submit(batcher, "1 S");
        fixture.submit(batcher, "1");
        fixture.submit(batcher, "1 E");
        fixture.runAll();
        assertThat(fixture.ran()).containsExactly(List.of("r1"), List.of("r2"), List.of("r3"));
        fixture.end(batcher);
    }

    @Test
    void formsTheNextBatchOfAnInstanceOnlyAfterThePreviousOne() {
        SequenceBatcher batcher = fixture.open();
        fixture.puppet.during = () -> {
            fixture.submit(batcher, "2 S");
            assertThat(fixture.pool.runNext()).isFalse();
            assertThat(batcher.running()).isEqualTo(1);
        };
        fixture.submit(batcher, "1 S");
        fixture.runAll();
        assertThat(fixture.ran()).containsExactly(List.of("r1"), List.of("-", "r2"));
        fixture.end(batcher);
    }

    @Test
    void givesASlotToTheNextAsSoonAsTheLastRequestIsInABatch() {
        fixture.maxBatch = 1;
        SequenceBatcher batcher = fixture.open();
        fixture.puppet.during = () -> {
            fixture.submit(batcher, fixture.request("2 S").timeout(10));
            // It has the only slot, so its timeout does not apply; the other sequence waits in the backlog.
            fixture.submit(batcher, "3 SE");
            fixture.time.advance(10);
            fixture.submit(batcher, "2 E");
        };
        fixture.submit(batcher, "1 SE");
        fixture.runAll();
        assertThat(fixture.ran()).containsExactly(List.of("r1"), List.of("r2"), List.of("r4"), List.of("r3"));
        fixture.end(batcher);
    }

    @Test
    void leavesRequestsOfOtherShapesForALaterRound() {
        SequenceBatcher batcher = fixture.open();
        fixture.submit(batcher, fixture.request("1 S", 2));
        fixture.submit(batcher, fixture.request("2 S", 3));
        fixture.submit(batcher, fixture.request("3 S", 2));
        fixture.submit(batcher, fixture.request("1", 2));
        fixture.runAll();
        // A slot that was passed over is the first of the next batch; otherwise a busy first row would starve it.
        assertThat(fixture.ran()).containsExactly(List.of("r1", "-", "r3"), List.of("-", "r2"), List.of("r4"));
        fixture.end(batcher);
    }

    @Test
    void waitsForMoreSlotsToBeReadyAsLongAsTheDelayAllows() {
        fixture.strategy = new Direct(Duration.ofNanos(100), 0.75);
        SequenceBatcher batcher = fixture.open();
        fixture.submit(batcher, "1 S");
        fixture.time.advance(60);
        fixture.submit(batcher, "2 S");
        fixture.time.advance(39);
        assertThat(fixture.runOne()).isFalse();
        fixture.time.advance(1);
        fixture.runAll();
        assertThat(fixture.ran()).containsExactly(List.of("r1", "r2"));
        fixture.end(batcher);
    }

    @Test
    void goesAtOnceWhenEnoughSlotsAreReady() {
        fixture.strategy = new Direct(Duration.ofNanos(100), 0.5);
        SequenceBatcher batcher = fixture.open();
        fixture.submit(batcher, "1 S");
        assertThat(fixture.runOne()).isFalse();
        fixture.submit(batcher, "2 S");
        fixture.runAll();
        assertThat(fixture.ran()).containsExactly(List.of("r1", "r2"));
        fixture.end(batcher);
    }

    @Test
    void neverWaitsWithoutAMinimumOrWithoutADelay() {
        for (Direct direct : List.of(new Direct(Duration.ofNanos(100), 0), new Direct(Duration.ZERO, 1))) {
            SequenceFixture own = new SequenceFixture();
            own.maxBatch = 4;
            own.strategy = direct;
            SequenceBatcher batcher = own.open();
            own.submit(batcher, "1 SE");
            assertThat(own.runOne()).isTrue();
            own.end(batcher);
        }
    }

    @Test
    void doesNotWaitOnceItIsClosed() {
        fixture.strategy = new Direct(Duration.ofNanos(100), 1);
        SequenceBatcher batcher = fixture.open();
        FakeSequenceJob request = fixture.submit(batcher, "1 S");
        fixture.end(batcher);
        assertThat(request.code).isEqualTo(ErrorCode.OK);
    }

    @Test
    void beginsANewSequenceInTheSameSlotWhenALiveOneIsStarted() {
        SequenceBatcher batcher = fixture.open();
        fixture.submit(batcher, "9 S");
        fixture.submit(batcher, "1 S");
        fixture.submit(batcher, "1");
        fixture.submit(batcher, "1 S");
        fixture.submit(batcher, "1 E");
        fixture.runAll();
        assertThat(fixture.ran())
                .containsExactly(List.of("r1", "r2"), List.of("-", "r3"), List.of("-", "r4"), List.of("-", "r5"));
        fixture.end(batcher);
    }

    @Test
    void keepsTheSlotWhenTheModelFails() {
        SequenceBatcher batcher = fixture.open();
        fixture.puppet.failure = ServingException.of(ErrorCode.INTERNAL, "no");
        FakeSequenceJob first = fixture.submit(batcher, "1 S");
        fixture.submit(batcher, "2 S");
        fixture.runAll();
        assertThat(first.code).isEqualTo(ErrorCode.INTERNAL);
        fixture.puppet.failure = null;
        FakeSequenceJob second = fixture.submit(batcher, "2");
        fixture.runAll();
        assertThat(second.code).isEqualTo(ErrorCode.OK);
        assertThat(fixture.ran().get(1)).containsExactly("-", "r3");
        fixture.end(batcher);
    }

    @Test
    void failsTheJobsOfARunThatThrowsAndGoesOn() {
        SequenceBatcher batcher = fixture.open();
        fixture.puppet.instead = job -> {
            throw new IllegalStateException("oh");
        };
        FakeSequenceJob first = fixture.submit(batcher, "1 S");
        FakeSequenceJob other = fixture.submit(batcher, "2 S");
        fixture.runAll();
        assertThat(first.code).isEqualTo(ErrorCode.INTERNAL);
        assertThat(other.code).isEqualTo(ErrorCode.INTERNAL);
        fixture.puppet.instead = null;
        assertThat(fixture.submit(batcher, "1 E").ends.get()).isZero();
        fixture.runAll();
        assertThat(fixture.requests.get(2).code).isEqualTo(ErrorCode.OK);
        fixture.end(batcher);
    }

    @Test
    void keepsASequenceInOrderThoughItsModelRespondsLater() {
        SequenceBatcher batcher = fixture.open();
        fixture.puppet.keep = true;
        fixture.submit(batcher, "1 S");
        fixture.submit(batcher, "1");
        fixture.submit(batcher, "2 S");
        fixture.runAll();
        assertThat(fixture.ran()).containsExactly(List.of("r1", "r3"));
        fixture.puppet.keep = false;
        fixture.submit(batcher, "2");
        fixture.puppet.kept.remove(1).complete(List.of(), java.util.Map.of());
        fixture.runAll();
        assertThat(fixture.ran().get(1)).containsExactly("-", "r4");
        fixture.puppet.kept.remove(0).complete(List.of(), java.util.Map.of());
        fixture.runAll();
        assertThat(fixture.ran().get(2)).containsExactly("r2");
        fixture.end(batcher);
    }

    @Test
    void runsOnTheCallersThreadWhenTheModelIsTiny() {
        fixture.options = new SchedulerOptions(100, InlinePolicy.ALWAYS);
        SequenceBatcher batcher = fixture.open();
        FakeSequenceJob first = fixture.submit(batcher, "1 S");
        assertThat(first.code).isEqualTo(ErrorCode.OK);
        fixture.puppet.during = () -> fixture.submit(batcher, "2 S");
        FakeSequenceJob second = fixture.submit(batcher, "1");
        assertThat(second.code).isEqualTo(ErrorCode.OK);
        assertThat(fixture.ran())
                .as("requests that arrive meanwhile run in the pool")
                .containsExactly(List.of("r1"), List.of("r2"));
        fixture.runAll();
        assertThat(fixture.ran().get(2)).containsExactly("-", "r3");
        fixture.end(batcher);
    }

    @Test
    void learnsThatTheModelIsTiny() {
        fixture.options = new SchedulerOptions(100, InlinePolicy.MEASURED);
        SequenceBatcher batcher = fixture.open();
        fixture.submit(batcher, "1 S");
        for (int i = 0; i < RunTimeEstimator.RUNS_BEFORE_JUDGEMENT; i++) {
            assertThat(fixture.runOne()).isTrue();
            fixture.submit(batcher, "1");
        }
        assertThat(fixture.runOne()).isFalse();
        fixture.end(batcher);
    }

    @Test
    void takesItsTurnAtTheRateLimiter() {
        RateLimiter limiter = new RateLimiter(List.of(new RateLimiter.Total("R", 1, 0)));
        fixture.options = new SchedulerOptions(100, InlinePolicy.ALWAYS).withLimiter(limiter);
        fixture.maxBatch = 1;
        fixture.groups = List.of(new InstanceGroup(
                "g", InstanceGroup.Kind.CPU, 2, List.of(), false, "", List.of(new Resource("R", true, 1)), 0));
        SequenceBatcher batcher = fixture.open();
        List<Integer> used = new ArrayList<>();
        fixture.puppet.during = () -> {
            used.add(limiter.used("R", -2));
            // The other instance gets no requests now.
            fixture.pool.runNext();
            assertThat(fixture.ran()).hasSize(1);
        };
        fixture.submit(batcher, "1 S");
        fixture.submit(batcher, "2 S");
        fixture.submit(batcher, "1");
        fixture.submit(batcher, "2");
        fixture.runAll();
        assertThat(used).containsExactly(1);
        assertThat(fixture.ran()).hasSize(4);
        assertThat(limiter.used("R", -2)).isZero();
        FakeSequenceJob gone = fixture.submit(batcher, "2");
        gone.cancel();
        fixture.runAll();
        assertThat(limiter.used("R", -2)).isZero();
        batcher.instances(3);
        batcher.instances(1);
        fixture.end(batcher);
        assertThat(limiter.used("R", -2)).isZero();
    }

    @Test
    void takesResourcesOfTheDeviceThatTheInstanceIsOn() {
        RateLimiter limiter = new RateLimiter(List.of());
        fixture.options = new SchedulerOptions(100, InlinePolicy.NEVER).withLimiter(limiter);
        fixture.maxBatch = 1;
        fixture.groups = List.of(new InstanceGroup(
                "g", InstanceGroup.Kind.GPU, 2, List.of(3, 4), false, "", List.of(new Resource("R", false, 1)), 0));
        for (var strategy : List.of(SequenceFixture.DIRECT, SequenceFixture.oldest(1, 0))) {
            fixture.strategy = strategy;
            SequenceBatcher batcher = fixture.open();
            List<List<Integer>> used = new ArrayList<>();
            fixture.submit(batcher, "1 SE");
            fixture.submit(batcher, "2 SE");
            for (int i = 0; i < 2; i++) {
                fixture.puppet.during = () -> used.add(List.of(limiter.used("R", 3), limiter.used("R", 4)));
                fixture.runOne();
            }
            assertThat(used).containsExactly(List.of(1, 0), List.of(0, 1));
            fixture.end(batcher);
        }
    }

    @Test
    void rejectsInstancesThatCouldNeverRun() {
        fixture.options = fixture.options.withLimiter(new RateLimiter(List.of(new RateLimiter.Total("R", 1, 0))));
        fixture.groups = List.of(new InstanceGroup(
                "g", InstanceGroup.Kind.CPU, 2, List.of(), false, "", List.of(new Resource("R", true, 2)), 0));
        for (var strategy : List.of(SequenceFixture.DIRECT, SequenceFixture.oldest(2, 0))) {
            fixture.strategy = strategy;
            assertThatThrownBy(fixture::open).hasMessageContaining("Resource count for \"R\" is limited to 1");
        }
    }

    @Test
    void fillsTheRowOfARequestWhoseClientGoesAtTheLastMoment() {
        SequenceBatcher batcher = fixture.open();
        fixture.submit(batcher, "1 S");
        FakeSequenceJob gone = fixture.submit(batcher, "2 S");
        FakeSequenceJob behind = fixture.submit(batcher, "2");
        fixture.submit(batcher, "3 S");
        gone.onTaken = gone::cancel;
        fixture.runAll();
        assertThat(fixture.ran()).containsExactly(List.of("r1", "-", "r4"));
        assertThat(gone.code).isEqualTo(ErrorCode.CANCELLED);
        assertThat(behind.code).isEqualTo(ErrorCode.CANCELLED);
        fixture.end(batcher);
    }

    @Test
    void runsNothingWhenAllClientsGoAtTheLastMoment() {
        SequenceBatcher batcher = fixture.open();
        FakeSequenceJob gone = fixture.submit(batcher, "1 S");
        gone.onTaken = gone::cancel;
        fixture.runAll();
        assertThat(fixture.ran()).isEmpty();
        assertThat(gone.code).isEqualTo(ErrorCode.CANCELLED);
        fixture.end(batcher);
    }
}
