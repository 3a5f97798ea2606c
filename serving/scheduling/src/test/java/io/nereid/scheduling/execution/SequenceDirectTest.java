// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.execution;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.scheduling.BatchCloseReason;
import io.nereid.scheduling.InlinePolicy;
import io.nereid.scheduling.SchedulerOptions;
import io.nereid.scheduling.Turn;
import io.nereid.scheduling.sequence.SequenceBatcher;
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
    private final SequenceStage stage = new SequenceStage();

    @BeforeEach
    void batchesOfFour() {
        stage.maxBatch = 4;
    }

    @Test
    void rejectsARequestOfSeveralRows() {
        SequenceBatcher batcher = stage.open();
        Turn turn = stage.turn("1 S");
        turn.rows = 2;
        ServingException e = stage.rejected(batcher, turn);
        assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
        assertThat(e)
                .hasMessage("inference request to model 'm' must specify batch-size 1 due to requirements of sequence"
                        + " batcher");
        stage.end(batcher);
    }

    @Test
    void rejectsARequestWithoutAnId() {
        SequenceBatcher batcher = stage.open();
        String text = "inference request to model 'm' must specify a non-zero or non-empty correlation ID";
        assertThat(stage.rejected(batcher, stage.turn("0 S"))).hasMessage(text);
        assertThat(stage.rejected(batcher, stage.turn("", true, false, 1))).hasMessage(text);
        Turn none = stage.turn("1 S");
        none.sequence = null;
        ServingException e = stage.rejected(batcher, none);
        assertThat(e).hasMessage(text);
        assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
        stage.end(batcher);
    }

    @Test
    void rejectsAFirstRequestWithoutStart() {
        SequenceBatcher batcher = stage.open();
        ServingException e = stage.rejected(batcher, stage.turn("18446744073709551615"));
        assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
        assertThat(e)
                .hasMessage("inference request for sequence 18446744073709551615 to model 'm' must specify the START"
                        + " flag on the first request of the sequence");
        assertThat(stage.rejected(batcher, stage.turn("abc E"))).hasMessageContaining("for sequence abc to model 'm'");
        stage.end(batcher);
    }

    @Test
    void rejectsWhatFollowsAnEnd() {
        SequenceBatcher batcher = stage.open();
        stage.submit(batcher, "1 S");
        stage.submit(batcher, "1 E");
        assertThat(stage.rejected(batcher, stage.turn("1"))).hasMessageContaining("must specify the START flag");
        stage.end(batcher);
    }

    @Test
    void runsARequestThatIsBothFirstAndLast() {
        SequenceBatcher batcher = stage.open();
        Turn turn = stage.submit(batcher, "1 SE");
        stage.runAll();
        assertThat(turn.code).isEqualTo(ErrorCode.OK);
        assertThat(stage.rejected(batcher, stage.turn("1"))).hasMessageContaining("must specify the START flag");
        stage.end(batcher);
    }

    @Test
    void givesEverySequenceARowOfItsOwn() {
        SequenceBatcher batcher = stage.open();
        stage.submit(batcher, "1 S");
        stage.submit(batcher, "2 S");
        stage.submit(batcher, "3 S");
        stage.submit(batcher, "1");
        stage.submit(batcher, "3");
        assertThat(batcher.queued()).isEqualTo(5);
        stage.runAll();
        assertThat(stage.ran()).containsExactly(List.of("r1", "r2", "r3"), List.of("r4", "-", "r5"));
        assertThat(stage.puppet.cuts).containsOnly(BatchCloseReason.SEQUENCE);
        assertThat(batcher.batches()).isEqualTo(2);
        stage.end(batcher);
    }

    @Test
    void sendsNoRowsAboveTheLastOneWithARequest() {
        SequenceBatcher batcher = stage.open();
        stage.submit(batcher, "1 S");
        stage.submit(batcher, "2 S");
        stage.submit(batcher, "3 S");
        stage.runAll();
        stage.submit(batcher, "2");
        stage.runAll();
        assertThat(stage.ran().get(1)).containsExactly("-", "r4");
        stage.end(batcher);
    }

    @Test
    void hasOneSlotForEachInstanceOfAModelWithoutBatches() {
        stage.maxBatch = 0;
        stage.instances = 2;
        SequenceBatcher batcher = stage.open();
        stage.submit(batcher, "1 SE");
        stage.submit(batcher, "2 SE");
        stage.submit(batcher, "3 SE");
        stage.runAll();
        assertThat(stage.ran()).containsExactly(List.of("r1"), List.of("r2"), List.of("r3"));
        assertThat(stage.puppet.instances).containsExactly(0, 1, 0);
        stage.end(batcher);
    }

    @Test
    void givesOutTheLowestSlotOfAnyInstanceFirst() {
        stage.instances = 2;
        SequenceBatcher batcher = stage.open();
        for (int i = 1; i <= 5; i++) {
            stage.submit(batcher, i + " S");
        }
        stage.runAll();
        assertThat(stage.ran()).containsExactly(List.of("r1", "r3", "r5"), List.of("r2", "r4"));
        assertThat(stage.puppet.instances).containsExactly(0, 1);
        stage.submit(batcher, "3 E");
        stage.runAll();
        assertThat(stage.ran().get(2)).containsExactly("-", "r6");
        stage.submit(batcher, "6 S");
        stage.runAll();
        assertThat(stage.ran().get(3)).containsExactly("-", "r7");
        assertThat(stage.puppet.instances).containsExactly(0, 1, 0, 0);
        stage.end(batcher);
    }

    @Test
    void keepsTheOrderWithinASequence() {
        stage.maxBatch = 0;
        SequenceBatcher batcher = stage.open();
        stage.submit(batcher, "1 S");
        stage.submit(batcher, "1");
        stage.submit(batcher, "1 E");
        stage.runAll();
        assertThat(stage.ran()).containsExactly(List.of("r1"), List.of("r2"), List.of("r3"));
        stage.end(batcher);
    }

    @Test
    void formsTheNextBatchOfAnInstanceOnlyAfterThePreviousOne() {
        SequenceBatcher batcher = stage.open();
        stage.puppet.during = () -> {
            stage.submit(batcher, "2 S");
            assertThat(stage.pool.runNext()).isFalse();
            assertThat(batcher.running()).isEqualTo(1);
        };
        stage.submit(batcher, "1 S");
        stage.runAll();
        assertThat(stage.ran()).containsExactly(List.of("r1"), List.of("-", "r2"));
        stage.end(batcher);
    }

    @Test
    void givesASlotToTheNextAsSoonAsTheLastRequestIsInABatch() {
        stage.maxBatch = 1;
        SequenceBatcher batcher = stage.open();
        stage.puppet.during = () -> {
            stage.submit(batcher, stage.turn("2 S").timeout(10));
            // It has the only slot, so its timeout does not apply; the other sequence waits in the backlog.
            stage.submit(batcher, "3 SE");
            stage.time.advance(10);
            stage.submit(batcher, "2 E");
        };
        stage.submit(batcher, "1 SE");
        stage.runAll();
        assertThat(stage.ran()).containsExactly(List.of("r1"), List.of("r2"), List.of("r4"), List.of("r3"));
        stage.end(batcher);
    }

    @Test
    void leavesRequestsOfOtherShapesForALaterRound() {
        SequenceBatcher batcher = stage.open();
        stage.submit(batcher, stage.turn("1 S", 2));
        stage.submit(batcher, stage.turn("2 S", 3));
        stage.submit(batcher, stage.turn("3 S", 2));
        stage.submit(batcher, stage.turn("1", 2));
        stage.runAll();
        // A slot that was passed over is the first of the next batch; otherwise a busy first row would starve it.
        assertThat(stage.ran()).containsExactly(List.of("r1", "-", "r3"), List.of("-", "r2"), List.of("r4"));
        stage.end(batcher);
    }

    @Test
    void waitsForMoreSlotsToBeReadyAsLongAsTheDelayAllows() {
        stage.strategy = new Direct(Duration.ofNanos(100), 0.75);
        SequenceBatcher batcher = stage.open();
        stage.submit(batcher, "1 S");
        stage.time.advance(60);
        stage.submit(batcher, "2 S");
        stage.time.advance(39);
        assertThat(stage.runOne()).isFalse();
        stage.time.advance(1);
        stage.runAll();
        assertThat(stage.ran()).containsExactly(List.of("r1", "r2"));
        stage.end(batcher);
    }

    @Test
    void goesAtOnceWhenEnoughSlotsAreReady() {
        stage.strategy = new Direct(Duration.ofNanos(100), 0.5);
        SequenceBatcher batcher = stage.open();
        stage.submit(batcher, "1 S");
        assertThat(stage.runOne()).isFalse();
        stage.submit(batcher, "2 S");
        stage.runAll();
        assertThat(stage.ran()).containsExactly(List.of("r1", "r2"));
        stage.end(batcher);
    }

    @Test
    void neverWaitsWithoutAMinimumOrWithoutADelay() {
        for (Direct direct : List.of(new Direct(Duration.ofNanos(100), 0), new Direct(Duration.ZERO, 1))) {
            SequenceStage own = new SequenceStage();
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
        stage.strategy = new Direct(Duration.ofNanos(100), 1);
        SequenceBatcher batcher = stage.open();
        Turn turn = stage.submit(batcher, "1 S");
        stage.end(batcher);
        assertThat(turn.code).isEqualTo(ErrorCode.OK);
    }

    @Test
    void beginsANewSequenceInTheSameSlotWhenALiveOneIsStarted() {
        SequenceBatcher batcher = stage.open();
        stage.submit(batcher, "9 S");
        stage.submit(batcher, "1 S");
        stage.submit(batcher, "1");
        stage.submit(batcher, "1 S");
        stage.submit(batcher, "1 E");
        stage.runAll();
        assertThat(stage.ran())
                .containsExactly(List.of("r1", "r2"), List.of("-", "r3"), List.of("-", "r4"), List.of("-", "r5"));
        stage.end(batcher);
    }

    @Test
    void keepsTheSlotWhenTheModelFails() {
        SequenceBatcher batcher = stage.open();
        stage.puppet.failure = ServingException.of(ErrorCode.INTERNAL, "no");
        Turn first = stage.submit(batcher, "1 S");
        stage.submit(batcher, "2 S");
        stage.runAll();
        assertThat(first.code).isEqualTo(ErrorCode.INTERNAL);
        stage.puppet.failure = null;
        Turn second = stage.submit(batcher, "2");
        stage.runAll();
        assertThat(second.code).isEqualTo(ErrorCode.OK);
        assertThat(stage.ran().get(1)).containsExactly("-", "r3");
        stage.end(batcher);
    }

    @Test
    void failsTheJobsOfARunThatThrowsAndGoesOn() {
        SequenceBatcher batcher = stage.open();
        stage.puppet.instead = job -> {
            throw new IllegalStateException("oh");
        };
        Turn first = stage.submit(batcher, "1 S");
        Turn other = stage.submit(batcher, "2 S");
        stage.runAll();
        assertThat(first.code).isEqualTo(ErrorCode.INTERNAL);
        assertThat(other.code).isEqualTo(ErrorCode.INTERNAL);
        stage.puppet.instead = null;
        assertThat(stage.submit(batcher, "1 E").ends.get()).isZero();
        stage.runAll();
        assertThat(stage.turns.get(2).code).isEqualTo(ErrorCode.OK);
        stage.end(batcher);
    }

    @Test
    void keepsASequenceInOrderThoughItsModelRespondsLater() {
        SequenceBatcher batcher = stage.open();
        stage.puppet.keep = true;
        stage.submit(batcher, "1 S");
        stage.submit(batcher, "1");
        stage.submit(batcher, "2 S");
        stage.runAll();
        assertThat(stage.ran()).containsExactly(List.of("r1", "r3"));
        stage.puppet.keep = false;
        stage.submit(batcher, "2");
        stage.puppet.kept.remove(1).complete(List.of(), java.util.Map.of());
        stage.runAll();
        assertThat(stage.ran().get(1)).containsExactly("-", "r4");
        stage.puppet.kept.remove(0).complete(List.of(), java.util.Map.of());
        stage.runAll();
        assertThat(stage.ran().get(2)).containsExactly("r2");
        stage.end(batcher);
    }

    @Test
    void runsOnTheCallersThreadWhenTheModelIsTiny() {
        stage.options = new SchedulerOptions(100, InlinePolicy.ALWAYS);
        SequenceBatcher batcher = stage.open();
        Turn first = stage.submit(batcher, "1 S");
        assertThat(first.code).isEqualTo(ErrorCode.OK);
        stage.puppet.during = () -> stage.submit(batcher, "2 S");
        Turn second = stage.submit(batcher, "1");
        assertThat(second.code).isEqualTo(ErrorCode.OK);
        assertThat(stage.ran())
                .as("requests that arrive meanwhile run in the pool")
                .containsExactly(List.of("r1"), List.of("r2"));
        stage.runAll();
        assertThat(stage.ran().get(2)).containsExactly("-", "r3");
        stage.end(batcher);
    }

    @Test
    void learnsThatTheModelIsTiny() {
        stage.options = new SchedulerOptions(100, InlinePolicy.MEASURED);
        SequenceBatcher batcher = stage.open();
        stage.submit(batcher, "1 S");
        for (int i = 0; i < RunTimeEstimator.RUNS_BEFORE_JUDGEMENT; i++) {
            assertThat(stage.runOne()).isTrue();
            stage.submit(batcher, "1");
        }
        assertThat(stage.runOne()).isFalse();
        stage.end(batcher);
    }

    @Test
    void takesItsTurnAtTheRateLimiter() {
        RateLimiter limiter = new RateLimiter(List.of(new RateLimiter.Total("R", 1, 0)));
        stage.options = new SchedulerOptions(100, InlinePolicy.ALWAYS).withLimiter(limiter);
        stage.maxBatch = 1;
        stage.groups = List.of(new InstanceGroup(
                "g", InstanceGroup.Kind.CPU, 2, List.of(), false, "", List.of(new Resource("R", true, 1)), 0));
        SequenceBatcher batcher = stage.open();
        List<Integer> used = new ArrayList<>();
        stage.puppet.during = () -> {
            used.add(limiter.used("R", -2));
            // The other instance gets no requests now.
            stage.pool.runNext();
            assertThat(stage.ran()).hasSize(1);
        };
        stage.submit(batcher, "1 S");
        stage.submit(batcher, "2 S");
        stage.submit(batcher, "1");
        stage.submit(batcher, "2");
        stage.runAll();
        assertThat(used).containsExactly(1);
        assertThat(stage.ran()).hasSize(4);
        assertThat(limiter.used("R", -2)).isZero();
        Turn gone = stage.submit(batcher, "2");
        gone.cancel();
        stage.runAll();
        assertThat(limiter.used("R", -2)).isZero();
        batcher.instances(3);
        batcher.instances(1);
        stage.end(batcher);
        assertThat(limiter.used("R", -2)).isZero();
    }

    @Test
    void takesResourcesOfTheDeviceThatTheInstanceIsOn() {
        RateLimiter limiter = new RateLimiter(List.of());
        stage.options = new SchedulerOptions(100, InlinePolicy.NEVER).withLimiter(limiter);
        stage.maxBatch = 1;
        stage.groups = List.of(new InstanceGroup(
                "g", InstanceGroup.Kind.GPU, 2, List.of(3, 4), false, "", List.of(new Resource("R", false, 1)), 0));
        for (var strategy : List.of(SequenceStage.DIRECT, SequenceStage.oldest(1, 0))) {
            stage.strategy = strategy;
            SequenceBatcher batcher = stage.open();
            List<List<Integer>> used = new ArrayList<>();
            stage.submit(batcher, "1 SE");
            stage.submit(batcher, "2 SE");
            for (int i = 0; i < 2; i++) {
                stage.puppet.during = () -> used.add(List.of(limiter.used("R", 3), limiter.used("R", 4)));
                stage.runOne();
            }
            assertThat(used).containsExactly(List.of(1, 0), List.of(0, 1));
            stage.end(batcher);
        }
    }

    @Test
    void rejectsInstancesThatCouldNeverRun() {
        stage.options = stage.options.withLimiter(new RateLimiter(List.of(new RateLimiter.Total("R", 1, 0))));
        stage.groups = List.of(new InstanceGroup(
                "g", InstanceGroup.Kind.CPU, 2, List.of(), false, "", List.of(new Resource("R", true, 2)), 0));
        for (var strategy : List.of(SequenceStage.DIRECT, SequenceStage.oldest(2, 0))) {
            stage.strategy = strategy;
            assertThatThrownBy(stage::open).hasMessageContaining("Resource count for \"R\" is limited to 1");
        }
    }

    @Test
    void fillsTheRowOfARequestWhoseClientGoesAtTheLastMoment() {
        SequenceBatcher batcher = stage.open();
        stage.submit(batcher, "1 S");
        Turn gone = stage.submit(batcher, "2 S");
        Turn behind = stage.submit(batcher, "2");
        stage.submit(batcher, "3 S");
        gone.onTaken = gone::cancel;
        stage.runAll();
        assertThat(stage.ran()).containsExactly(List.of("r1", "-", "r4"));
        assertThat(gone.code).isEqualTo(ErrorCode.CANCELLED);
        assertThat(behind.code).isEqualTo(ErrorCode.CANCELLED);
        stage.end(batcher);
    }

    @Test
    void runsNothingWhenAllClientsGoAtTheLastMoment() {
        SequenceBatcher batcher = stage.open();
        Turn gone = stage.submit(batcher, "1 S");
        gone.onTaken = gone::cancel;
        stage.runAll();
        assertThat(stage.ran()).isEmpty();
        assertThat(gone.code).isEqualTo(ErrorCode.CANCELLED);
        stage.end(batcher);
    }
}
