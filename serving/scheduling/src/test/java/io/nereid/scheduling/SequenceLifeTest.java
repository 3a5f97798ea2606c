// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

import static io.nereid.scheduling.execution.SequenceStage.IDLE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.scheduling.execution.SequenceStage;
import io.nereid.scheduling.sequence.SequenceBatcher;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Start, backlog, idle timeout, cancellation and end of sequences. One slot, unless a test configures more. */
class SequenceLifeTest {
    private final SequenceStage stage = new SequenceStage();

    @Test
    void keepsSequencesWithoutASlotInTheOrderTheyCame() {
        SequenceBatcher batcher = stage.open();
        stage.submit(batcher, "1 S");
        stage.submit(batcher, "2 S");
        stage.submit(batcher, "3 S");
        stage.submit(batcher, "3 E");
        stage.submit(batcher, "2 E");
        stage.runAll();
        assertThat(stage.ran()).containsExactly(List.of("r1"));
        stage.submit(batcher, "1 E");
        stage.runAll();
        assertThat(stage.ran().subList(1, 6))
                .containsExactly(List.of("r6"), List.of("r2"), List.of("r5"), List.of("r3"), List.of("r4"));
        stage.end(batcher);
    }

    @Test
    void takesTheEndOfASequenceThatStillWaitsAndANewOneOfTheSameId() {
        SequenceBatcher batcher = stage.open();
        stage.submit(batcher, "1 S");
        stage.submit(batcher, "2 S");
        stage.submit(batcher, "2 E");
        assertThat(stage.rejected(batcher, stage.turn("2"))).hasMessageContaining("must specify the START flag");
        stage.submit(batcher, "2 S");
        stage.submit(batcher, "1 E");
        stage.runAll();
        assertThat(stage.ran())
                .containsExactly(List.of("r1"), List.of("r6"), List.of("r2"), List.of("r3"), List.of("r5"));
        stage.end(batcher);
    }

    @Test
    void boundsAllThatWaits() {
        stage.options = new SchedulerOptions(3, InlinePolicy.NEVER);
        SequenceBatcher batcher = stage.open();
        stage.submit(batcher, "1 S");
        stage.submit(batcher, "2 S");
        stage.submit(batcher, "2");
        ServingException e = stage.rejected(batcher, stage.turn("1"));
        assertThat(e.code()).isEqualTo(ErrorCode.UNAVAILABLE);
        assertThat(e).hasMessage("[request id: r4] Exceeds maximum queue size");
        assertThat(stage.rejected(batcher, stage.turn("3 S"))).hasMessageContaining("Exceeds maximum queue size");
        stage.runAll();
        stage.submit(batcher, "1 E");
        stage.end(batcher);
        assertThat(stage.turns).allMatch(t -> t.code == ErrorCode.OK);
    }

    @Test
    void failsAWholeSequenceWhenARequestHasBeenInTheBacklogForItsTimeout() {
        SequenceBatcher batcher = stage.open();
        stage.submit(batcher, "1 S");
        Turn first = stage.submit(batcher, "2 S");
        Turn second = stage.submit(batcher, stage.turn("2").timeout(500));
        Turn third = stage.submit(batcher, "2");
        Turn other = stage.submit(batcher, "3 S");
        stage.time.advance(499);
        assertThat(second.ends.get()).isZero();
        stage.time.advance(1);
        for (Turn turn : List.of(first, second, third)) {
            assertThat(turn.code).isEqualTo(ErrorCode.UNAVAILABLE);
            assertThat(turn.error)
                    .hasMessage("[request id: r" + turn.number
                            + "] timeout of the corresponding sequence has been expired");
        }
        assertThat(stage.rejected(batcher, stage.turn("2"))).hasMessageContaining("must specify the START flag");
        stage.submit(batcher, "1 E");
        stage.runAll();
        assertThat(other.code).isEqualTo(ErrorCode.OK);
        stage.end(batcher);
    }

    @Test
    void forgetsTheTimeoutOnceTheSequenceHasASlot() {
        SequenceBatcher batcher = stage.open();
        Turn here = stage.submit(batcher, stage.turn("1 S").timeout(100));
        Turn waits = stage.submit(batcher, stage.turn("2 S").timeout(500));
        stage.time.advance(300);
        stage.submit(batcher, "1 E");
        stage.runOne();
        stage.runOne();
        stage.time.advance(400);
        stage.runAll();
        assertThat(here.code).isEqualTo(ErrorCode.OK);
        assertThat(waits.code).isEqualTo(ErrorCode.OK);
        stage.end(batcher);
    }

    @Test
    void endsASequenceWhoseRequestMissesItsDeadline() {
        SequenceBatcher batcher = stage.open();
        Turn before = stage.submit(batcher, "1 S");
        Turn late = stage.submit(batcher, stage.turn("1").until(stage.time.nanos() + 100));
        Turn after = stage.submit(batcher, "1");
        Turn next = stage.submit(batcher, "2 S");
        stage.time.advance(100);
        assertThat(late.code).isEqualTo(ErrorCode.DEADLINE_EXCEEDED);
        assertThat(late.error).hasMessage("[request id: r2] Request timeout expired");
        assertThat(after.code).isEqualTo(ErrorCode.CANCELLED);
        assertThat(stage.rejected(batcher, stage.turn("1"))).hasMessageContaining("must specify the START flag");
        stage.runAll();
        assertThat(before.code).isEqualTo(ErrorCode.OK);
        assertThat(next.code).isEqualTo(ErrorCode.OK);
        stage.end(batcher);
    }

    @Test
    void neverRunsARequestPastItsDeadlineThoughTheTimerIsLate() {
        SequenceBatcher batcher = stage.open();
        Turn late = stage.submit(batcher, stage.turn("1 S").until(stage.time.nanos() + 100));
        stage.time.spend(100);
        stage.runAll();
        assertThat(stage.ran()).isEmpty();
        assertThat(late.code).isEqualTo(ErrorCode.DEADLINE_EXCEEDED);
        assertThat(stage.rejected(batcher, stage.turn("2 S").until(stage.time.nanos())))
                .hasMessageContaining("Request timeout expired");
        stage.end(batcher);
    }

    @Test
    void freesTheSlotOfASequenceThatIsIdleForTooLong() {
        SequenceBatcher batcher = stage.open();
        stage.submit(batcher, "1 S");
        Turn waits = stage.submit(batcher, "2 S");
        stage.runAll();
        stage.time.advance(IDLE - 1);
        stage.submit(batcher, "1");
        stage.runAll();
        stage.time.advance(IDLE - 1);
        assertThat(waits.ends.get()).isZero();
        stage.time.advance(1);
        stage.runAll();
        assertThat(waits.code).isEqualTo(ErrorCode.OK);
        assertThat(stage.rejected(batcher, stage.turn("1"))).hasMessageContaining("must specify the START flag");
        stage.end(batcher);
    }

    @Test
    void countsIdleTimeFromTheLastRequestAndEndsBehindWhatIsQueued() {
        SequenceBatcher batcher = stage.open();
        stage.submit(batcher, "1 S");
        stage.submit(batcher, "1");
        Turn waits = stage.submit(batcher, "2 SE");
        stage.time.advance(IDLE);
        assertThat(stage.rejected(batcher, stage.turn("1"))).hasMessageContaining("must specify the START flag");
        stage.runAll();
        assertThat(stage.ran()).containsExactly(List.of("r1"), List.of("r2"), List.of("r3"));
        assertThat(waits.code).isEqualTo(ErrorCode.OK);
        stage.end(batcher);
    }

    @Test
    void freesTheSlotOfAnIdleSequenceOnlyWhenItsRunHasEnded() {
        SequenceBatcher batcher = stage.open();
        stage.puppet.keep = true;
        stage.submit(batcher, "1 S");
        stage.submit(batcher, "2 S");
        stage.runAll();
        stage.time.advance(IDLE);
        stage.runAll();
        assertThat(stage.ran()).hasSize(1);
        stage.puppet.keep = false;
        stage.puppet.kept.remove(0).complete(List.of(), java.util.Map.of());
        stage.runAll();
        assertThat(stage.ran()).containsExactly(List.of("r1"), List.of("r2"));
        stage.end(batcher);
    }

    @Test
    void neverEndsASequenceInTheBacklogForItsIdleTime() {
        SequenceBatcher batcher = stage.open();
        stage.submit(batcher, "1 S");
        Turn waits = stage.submit(batcher, "2 S");
        for (int i = 0; i < 5; i++) {
            stage.time.advance(IDLE / 2);
            stage.submit(batcher, "1");
        }
        stage.submit(batcher, "1 E");
        stage.runAll();
        assertThat(waits.code).isEqualTo(ErrorCode.OK);
        // Its idle time begins when it gets the slot.
        stage.time.advance(IDLE - 1);
        stage.submit(batcher, "2");
        stage.runAll();
        stage.end(batcher);
    }

    @Test
    void ringsNoMoreOftenThanNeededForManySequences() {
        stage.maxBatch = 100;
        SequenceBatcher batcher = stage.open();
        for (int i = 1; i <= 100; i++) {
            stage.submit(batcher, i + " S");
            stage.time.advance(10);
        }
        assertThat(stage.time.scheduled()).isEqualTo(1);
        stage.runAll();
        stage.time.advance(2 * IDLE);
        assertThat(stage.time.scheduled()).isZero();
        stage.end(batcher);
    }

    @Test
    void cancelsTheRestOfASequenceFromTheCancelledRequestOn() {
        SequenceBatcher batcher = stage.open();
        Turn first = stage.submit(batcher, "1 S");
        Turn second = stage.submit(batcher, "1");
        Turn third = stage.submit(batcher, "1");
        Turn next = stage.submit(batcher, "2 S");
        second.cancel();
        assertThat(second.code).isEqualTo(ErrorCode.CANCELLED);
        assertThat(third.code).isEqualTo(ErrorCode.CANCELLED);
        assertThat(stage.rejected(batcher, stage.turn("1"))).hasMessageContaining("must specify the START flag");
        stage.runAll();
        assertThat(first.code).isEqualTo(ErrorCode.OK);
        assertThat(next.code).isEqualTo(ErrorCode.OK);
        stage.end(batcher);
    }

    @Test
    void freesTheSlotAtOnceWhenTheFirstInLineIsCancelled() {
        SequenceBatcher batcher = stage.open();
        stage.submit(batcher, "1 S");
        stage.runAll();
        Turn head = stage.submit(batcher, "1");
        Turn next = stage.submit(batcher, "2 S");
        head.cancel();
        stage.runAll();
        assertThat(stage.ran()).containsExactly(List.of("r1"), List.of("r3"));
        assertThat(next.code).isEqualTo(ErrorCode.OK);
        stage.end(batcher);
    }

    @Test
    void cancelsAWholeSequenceInTheBacklog() {
        SequenceBatcher batcher = stage.open();
        stage.submit(batcher, "1 S");
        Turn first = stage.submit(batcher, "2 S");
        Turn second = stage.submit(batcher, "2");
        Turn third = stage.submit(batcher, "2 E");
        second.cancel();
        assertThat(List.of(first, second, third)).allMatch(t -> t.code == ErrorCode.CANCELLED);
        assertThat(batcher.queued()).isEqualTo(1);
        stage.end(batcher);
    }

    @Test
    void sparesTheSequenceThatBeginsBehindTheCancelledOne() {
        SequenceBatcher batcher = stage.open();
        stage.submit(batcher, "1 S");
        Turn gone = stage.submit(batcher, "1");
        stage.submit(batcher, "1 S");
        gone.cancel();
        stage.submit(batcher, "1 E");
        stage.runAll();
        assertThat(stage.ran()).containsExactly(List.of("r1"), List.of("r3"), List.of("r4"));
        stage.end(batcher);
    }

    @Test
    void endsASequenceWhoseRunWasStoppedByItsClient() {
        SequenceBatcher batcher = stage.open();
        Turn first = stage.submit(batcher, "1 S");
        Turn second = stage.submit(batcher, "1");
        stage.puppet.during = first::cancel;
        stage.puppet.failure = ServingException.of(ErrorCode.CANCELLED, "stopped");
        stage.runOne();
        stage.puppet.failure = null;
        assertThat(first.code).isEqualTo(ErrorCode.CANCELLED);
        assertThat(second.code).isEqualTo(ErrorCode.CANCELLED);
        stage.end(batcher);
    }

    @Test
    void goesOnWhenTheResponseWasFasterThanTheCancellation() {
        SequenceBatcher batcher = stage.open();
        Turn first = stage.submit(batcher, "1 S");
        Turn second = stage.submit(batcher, "1");
        stage.puppet.during = first::cancel;
        stage.runAll();
        assertThat(first.code).isEqualTo(ErrorCode.OK);
        assertThat(second.code).isEqualTo(ErrorCode.OK);
        stage.end(batcher);
    }

    @Test
    void rejectsARequestWhoseClientHasGone() {
        SequenceBatcher batcher = stage.open();
        Turn gone = stage.turn("1 S");
        gone.cancel();
        assertThatThrownBy(() -> batcher.submit(gone))
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.CANCELLED));
        gone.drop();
        stage.turns.clear();
        stage.end(batcher);
    }

    @Test
    void finishesWhatIsQueuedAfterItIsClosed() {
        SequenceBatcher batcher = stage.open();
        Turn first = stage.submit(batcher, "1 S");
        Turn second = stage.submit(batcher, "1");
        Turn waits = stage.submit(batcher, "2 S");
        batcher.close();
        assertThat(stage.rejected(batcher, stage.turn("1")))
                .hasMessage("[request id: r4] Server is stopping, scheduler for model has stopped accepting new"
                        + " inference requests");
        assertThat(batcher.drained().toCompletableFuture()).isNotDone();
        stage.end(batcher);
        assertThat(List.of(first, second, waits)).allMatch(t -> t.code == ErrorCode.OK);
    }

    @Test
    void drainsAtOnceWhenNothingIsQueued() {
        SequenceBatcher batcher = stage.open();
        stage.submit(batcher, "1 S");
        stage.runAll();
        batcher.close();
        assertThat(batcher.drained().toCompletableFuture()).isCompleted();
        stage.end(batcher);
    }

    @Test
    void failsWhatWaitsWhenThePoolIsClosed() {
        for (boolean oldest : new boolean[] {false, true}) {
            SequenceStage own = new SequenceStage();
            if (oldest) {
                own.strategy = SequenceStage.oldest(1, 0);
            }
            SequenceBatcher batcher = own.open();
            own.pool.close();
            Turn turn = own.submit(batcher, "1 S");
            assertThat(turn.code).isEqualTo(ErrorCode.UNAVAILABLE);
            Turn other = own.submit(batcher, "2 S");
            assertThat(other.code).isEqualTo(ErrorCode.UNAVAILABLE);
            own.end(batcher);
        }
    }

    @Test
    void givesNewInstancesToTheBacklogAtOnce() {
        SequenceBatcher batcher = stage.open();
        stage.submit(batcher, "1 S");
        stage.submit(batcher, "2 S");
        stage.submit(batcher, "3 S");
        batcher.instances(2);
        assertThat(batcher.instances()).isEqualTo(2);
        stage.runAll();
        assertThat(stage.ran()).containsExactly(List.of("r1"), List.of("r2"));
        assertThat(stage.puppet.instances).containsExactly(0, 1);
        stage.end(batcher);
    }

    @Test
    void takesAnInstanceAwayWhenItsSequencesHaveEnded() {
        for (boolean oldest : new boolean[] {false, true}) {
            SequenceStage own = new SequenceStage();
            own.instances = 2;
            if (oldest) {
                own.strategy = SequenceStage.oldest(1, 0);
            }
            SequenceBatcher batcher = own.open();
            own.submit(batcher, "1 S");
            own.submit(batcher, "2 S");
            own.submit(batcher, "3 S");
            batcher.instances(1);
            own.submit(batcher, "2");
            own.runAll();
            assertThat(own.puppet.retired).isEmpty();
            own.submit(batcher, "2 E");
            own.runAll();
            assertThat(own.puppet.retired).containsExactly(1);
            assertThat(own.turns.get(2).ends.get())
                    .as("the third stays in the backlog")
                    .isZero();
            assertThat(batcher.batches()).isEqualTo(4);
            batcher.instances(2);
            own.runAll();
            assertThat(own.turns.get(2).code).isEqualTo(ErrorCode.OK);
            assertThat(own.puppet.instances).endsWith(1);
            own.end(batcher);
        }
    }

    @Test
    void givesAnInstanceBackThatWasToGo() {
        stage.instances = 2;
        SequenceBatcher batcher = stage.open();
        stage.submit(batcher, "1 S");
        stage.submit(batcher, "2 S");
        batcher.instances(1);
        batcher.instances(2);
        stage.submit(batcher, "2 E");
        stage.submit(batcher, "3 S");
        stage.runAll();
        assertThat(stage.puppet.retired).isEmpty();
        assertThat(stage.turns).allMatch(t -> t.code == ErrorCode.OK);
        stage.end(batcher);
    }

    @Test
    void holdsEverythingBackUntilEnoughWaitsForTests() {
        for (boolean oldest : new boolean[] {false, true}) {
            SequenceStage own = new SequenceStage();
            own.options = new SchedulerOptions(100, InlinePolicy.NEVER).delayed(2, 1);
            if (oldest) {
                own.strategy = SequenceStage.oldest(1, 0);
            }
            SequenceBatcher batcher = own.open();
            own.submit(batcher, "1 S");
            own.submit(batcher, "1");
            assertThat(own.runOne()).isFalse();
            own.submit(batcher, "2 S");
            own.runAll();
            assertThat(own.ran()).containsExactly(List.of("r1"), List.of("r2"));
            own.end(batcher);
        }
    }

    @Test
    void runsWhatIsHeldBackWhenItIsClosed() {
        stage.options = new SchedulerOptions(100, InlinePolicy.NEVER).delayed(9, 9);
        SequenceBatcher batcher = stage.open();
        Turn turn = stage.submit(batcher, "1 S");
        assertThat(stage.runOne()).isFalse();
        stage.end(batcher);
        assertThat(turn.code).isEqualTo(ErrorCode.OK);
    }

    @Test
    void goesOnWithASequenceWhoseNamesakeEndsAfterItsStart() {
        stage.maxBatch = 2;
        SequenceBatcher batcher = stage.open();
        stage.submit(batcher, "1 S");
        stage.submit(batcher, "1 E");
        stage.submit(batcher, "1 S");
        stage.runAll();
        Turn turn = stage.submit(batcher, "1");
        stage.runAll();
        assertThat(stage.ran()).containsExactly(List.of("r1", "r3"), List.of("r2"), List.of("-", "r4"));
        assertThat(turn.code).isEqualTo(ErrorCode.OK);
        stage.end(batcher);
    }

    @Test
    void givesNoNewSequenceToAnInstanceThatIsToGo() {
        stage.instances = 2;
        stage.maxBatch = 2;
        SequenceBatcher batcher = stage.open();
        stage.submit(batcher, "1 S");
        stage.submit(batcher, "2 S");
        batcher.instances(1);
        stage.submit(batcher, "3 S");
        stage.submit(batcher, "4 S");
        stage.runAll();
        assertThat(stage.ran()).containsExactly(List.of("r1", "r3"), List.of("r2"));
        assertThat(stage.puppet.instances).containsExactly(0, 1);
        stage.end(batcher);
    }

    @Test
    void takesAnInstanceInAgainThatIsWantedWhileItGoes() {
        for (boolean oldest : new boolean[] {false, true}) {
            SequenceStage own = new SequenceStage();
            own.instances = 2;
            if (oldest) {
                own.strategy = SequenceStage.oldest(1, 0);
            }
            SequenceBatcher batcher = own.open();
            own.submit(batcher, "1 S");
            own.puppet.onRetired = () -> batcher.instances(2);
            batcher.instances(1);
            assertThat(own.puppet.retired).containsExactly(1);
            own.submit(batcher, "2 S");
            own.runAll();
            assertThat(own.puppet.instances).containsExactly(0, 1);
            own.end(batcher);
        }
    }

    @Test
    void isNotDrainedBeforeTheLastRunHasReturned() {
        SequenceBatcher batcher = stage.open();
        List<Boolean> drained = new java.util.ArrayList<>();
        stage.puppet.instead = job -> {
            batcher.close();
            job.complete(List.of(), java.util.Map.of());
            drained.add(batcher.drained().toCompletableFuture().isDone());
        };
        stage.submit(batcher, "1 S");
        stage.runAll();
        assertThat(drained).containsExactly(false);
        stage.end(batcher);
    }
}
