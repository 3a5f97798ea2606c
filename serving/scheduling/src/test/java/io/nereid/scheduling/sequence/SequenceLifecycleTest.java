// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.sequence;

import static io.nereid.scheduling.sequence.SequenceFixture.IDLE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.scheduling.InlinePolicy;
import io.nereid.scheduling.SchedulerOptions;
import io.nereid.scheduling.admission.AdmissionControl;
import io.nereid.scheduling.admission.AdmissionPolicy;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Start, backlog, idle timeout, cancellation and end of sequences. One slot, unless a test configures more. */
class SequenceLifecycleTest {
    private final SequenceFixture fixture = new SequenceFixture();

    @Test
    void keepsSequencesWithoutASlotInTheOrderTheyCame() {
        SequenceBatcher batcher = fixture.open();
        fixture.submit(batcher, "1 S");
        fixture.submit(batcher, "2 S");
        fixture.submit(batcher, "3 S");
        fixture.submit(batcher, "3 E");
        fixture.submit(batcher, "2 E");
        fixture.runAll();
        assertThat(fixture.ran()).containsExactly(List.of("r1"));
        fixture.submit(batcher, "1 E");
        fixture.runAll();
        assertThat(fixture.ran().subList(1, 6))
                .containsExactly(List.of("r6"), List.of("r2"), List.of("r5"), List.of("r3"), List.of("r4"));
        fixture.end(batcher);
    }

    @Test
    void takesTheEndOfASequenceThatStillWaitsAndANewOneOfTheSameId() {
        SequenceBatcher batcher = fixture.open();
        fixture.submit(batcher, "1 S");
        fixture.submit(batcher, "2 S");
        fixture.submit(batcher, "2 E");
        assertThat(fixture.rejected(batcher, fixture.request("2"))).hasMessageContaining("must specify the START flag");
        fixture.submit(batcher, "2 S");
        fixture.submit(batcher, "1 E");
        fixture.runAll();
        assertThat(fixture.ran())
                .containsExactly(List.of("r1"), List.of("r6"), List.of("r2"), List.of("r3"), List.of("r5"));
        fixture.end(batcher);
    }

    @Test
    void anOverloadRefusesNewSequencesOnly() {
        boolean[] overloaded = {false};
        fixture.options = fixture.options.withAdmission(new AdmissionControl(() -> new AdmissionPolicy() {
            @Override
            public boolean admits(long now, int ahead, long deadline) {
                return !overloaded[0];
            }

            @Override
            public boolean taken(long now, int count, long waited, int left) {
                return overloaded[0];
            }

            @Override
            public void removed(int count) {}

            @Override
            public void ran(long nanos) {}

            @Override
            public int keep() {
                return 0;
            }

            @Override
            public long waitLimit() {
                return NEVER;
            }

            @Override
            public long retryNanos() {
                return 2_500_000_000L;
            }

            @Override
            public boolean refuses() {
                return overloaded[0];
            }

            @Override
            public String reason() {
                return "";
            }
        }));
        SequenceBatcher batcher = fixture.open();
        fixture.submit(batcher, "1 S");
        overloaded[0] = true;
        ServingException e = fixture.rejected(batcher, fixture.request("2 S"));
        assertThat(e.code()).isEqualTo(ErrorCode.UNAVAILABLE);
        assertThat(e.retryAfter()).isEqualTo(Duration.ofSeconds(3));
        assertThat(e).hasMessageContaining("model 'm' is overloaded");
        fixture.submit(batcher, "1");
        fixture.submit(batcher, "1 E");
        fixture.runAll();
        assertThat(fixture.requests).allMatch(t -> t.code == ErrorCode.OK).hasSize(3);
        overloaded[0] = false;
        fixture.submit(batcher, "3 S");
        fixture.end(batcher);
    }

    @Test
    void boundsAllThatWaits() {
        fixture.options = new SchedulerOptions(3, InlinePolicy.NEVER);
        SequenceBatcher batcher = fixture.open();
        fixture.submit(batcher, "1 S");
        fixture.submit(batcher, "2 S");
        fixture.submit(batcher, "2");
        ServingException e = fixture.rejected(batcher, fixture.request("1"));
        assertThat(e.code()).isEqualTo(ErrorCode.UNAVAILABLE);
        assertThat(e).hasMessage("[request id: r4] Exceeds maximum queue size");
        assertThat(fixture.rejected(batcher, fixture.request("3 S")))
                .hasMessageContaining("Exceeds maximum queue size");
        fixture.runAll();
        fixture.submit(batcher, "1 E");
        fixture.end(batcher);
        assertThat(fixture.requests).allMatch(t -> t.code == ErrorCode.OK);
    }

    @Test
    void failsAWholeSequenceWhenARequestHasBeenInTheBacklogForItsTimeout() {
        SequenceBatcher batcher = fixture.open();
        fixture.submit(batcher, "1 S");
        FakeSequenceJob first = fixture.submit(batcher, "2 S");
        FakeSequenceJob second = fixture.submit(batcher, fixture.request("2").timeout(500));
        FakeSequenceJob third = fixture.submit(batcher, "2");
        FakeSequenceJob other = fixture.submit(batcher, "3 S");
        fixture.time.advance(499);
        assertThat(second.ends.get()).isZero();
        fixture.time.advance(1);
        for (FakeSequenceJob request : List.of(first, second, third)) {
            assertThat(request.code).isEqualTo(ErrorCode.UNAVAILABLE);
            assertThat(request.error)
                    .hasMessage("[request id: r" + request.number
                            + "] timeout of the corresponding sequence has been expired");
        }
        assertThat(fixture.rejected(batcher, fixture.request("2"))).hasMessageContaining("must specify the START flag");
        fixture.submit(batcher, "1 E");
        fixture.runAll();
        assertThat(other.code).isEqualTo(ErrorCode.OK);
        fixture.end(batcher);
    }

    @Test
    void forgetsTheTimeoutOnceTheSequenceHasASlot() {
        SequenceBatcher batcher = fixture.open();
        FakeSequenceJob here = fixture.submit(batcher, fixture.request("1 S").timeout(100));
        FakeSequenceJob waits = fixture.submit(batcher, fixture.request("2 S").timeout(500));
        fixture.time.advance(300);
        fixture.submit(batcher, "1 E");
        fixture.runOne();
        fixture.runOne();
        fixture.time.advance(400);
        fixture.runAll();
        assertThat(here.code).isEqualTo(ErrorCode.OK);
        assertThat(waits.code).isEqualTo(ErrorCode.OK);
        fixture.end(batcher);
    }

    @Test
    void endsASequenceWhoseRequestMissesItsDeadline() {
        SequenceBatcher batcher = fixture.open();
        FakeSequenceJob before = fixture.submit(batcher, "1 S");
        FakeSequenceJob late = fixture.submit(batcher, fixture.request("1").until(fixture.time.nanos() + 100));
        FakeSequenceJob after = fixture.submit(batcher, "1");
        FakeSequenceJob next = fixture.submit(batcher, "2 S");
        fixture.time.advance(100);
        assertThat(late.code).isEqualTo(ErrorCode.DEADLINE_EXCEEDED);
        assertThat(late.error).hasMessage("[request id: r2] Request timeout expired");
        assertThat(after.code).isEqualTo(ErrorCode.CANCELLED);
        assertThat(fixture.rejected(batcher, fixture.request("1"))).hasMessageContaining("must specify the START flag");
        fixture.runAll();
        assertThat(before.code).isEqualTo(ErrorCode.OK);
        assertThat(next.code).isEqualTo(ErrorCode.OK);
        fixture.end(batcher);
    }

    @Test
    void neverRunsARequestPastItsDeadlineThoughTheTimerIsLate() {
        SequenceBatcher batcher = fixture.open();
        FakeSequenceJob late = fixture.submit(batcher, fixture.request("1 S").until(fixture.time.nanos() + 100));
        fixture.time.spend(100);
        fixture.runAll();
        assertThat(fixture.ran()).isEmpty();
        assertThat(late.code).isEqualTo(ErrorCode.DEADLINE_EXCEEDED);
        assertThat(fixture.rejected(batcher, fixture.request("2 S").until(fixture.time.nanos())))
                .hasMessageContaining("Request timeout expired");
        fixture.end(batcher);
    }

    @Test
    void freesTheSlotOfASequenceThatIsIdleForTooLong() {
        SequenceBatcher batcher = fixture.open();
        fixture.submit(batcher, "1 S");
        FakeSequenceJob waits = fixture.submit(batcher, "2 S");
        fixture.runAll();
        fixture.time.advance(IDLE - 1);
        fixture.submit(batcher, "1");
        fixture.runAll();
        fixture.time.advance(IDLE - 1);
        assertThat(waits.ends.get()).isZero();
        fixture.time.advance(1);
        fixture.runAll();
        assertThat(waits.code).isEqualTo(ErrorCode.OK);
        assertThat(fixture.rejected(batcher, fixture.request("1"))).hasMessageContaining("must specify the START flag");
        fixture.end(batcher);
    }

    @Test
    void countsIdleTimeFromTheLastRequestAndEndsBehindWhatIsQueued() {
        SequenceBatcher batcher = fixture.open();
        fixture.submit(batcher, "1 S");
        fixture.submit(batcher, "1");
        FakeSequenceJob waits = fixture.submit(batcher, "2 SE");
        fixture.time.advance(IDLE);
        assertThat(fixture.rejected(batcher, fixture.request("1"))).hasMessageContaining("must specify the START flag");
        fixture.runAll();
        assertThat(fixture.ran()).containsExactly(List.of("r1"), List.of("r2"), List.of("r3"));
        assertThat(waits.code).isEqualTo(ErrorCode.OK);
        fixture.end(batcher);
    }

    @Test
    void freesTheSlotOfAnIdleSequenceOnlyWhenItsRunHasEnded() {
        SequenceBatcher batcher = fixture.open();
        fixture.puppet.keep = true;
        fixture.submit(batcher, "1 S");
        fixture.submit(batcher, "2 S");
        fixture.runAll();
        fixture.time.advance(IDLE);
        fixture.runAll();
        assertThat(fixture.ran()).hasSize(1);
        fixture.puppet.keep = false;
        fixture.puppet.kept.remove(0).complete(List.of(), java.util.Map.of());
        fixture.runAll();
        assertThat(fixture.ran()).containsExactly(List.of("r1"), List.of("r2"));
        fixture.end(batcher);
    }

    @Test
    void neverEndsASequenceInTheBacklogForItsIdleTime() {
        SequenceBatcher batcher = fixture.open();
        fixture.submit(batcher, "1 S");
        FakeSequenceJob waits = fixture.submit(batcher, "2 S");
        for (int i = 0; i < 5; i++) {
            fixture.time.advance(IDLE / 2);
            fixture.submit(batcher, "1");
        }
        fixture.submit(batcher, "1 E");
        fixture.runAll();
        assertThat(waits.code).isEqualTo(ErrorCode.OK);
        // Its idle time begins when it gets the slot.
        fixture.time.advance(IDLE - 1);
        fixture.submit(batcher, "2");
        fixture.runAll();
        fixture.end(batcher);
    }

    @Test
    void ringsNoMoreOftenThanNeededForManySequences() {
        fixture.maxBatch = 100;
        SequenceBatcher batcher = fixture.open();
        for (int i = 1; i <= 100; i++) {
            fixture.submit(batcher, i + " S");
            fixture.time.advance(10);
        }
        assertThat(fixture.time.scheduled()).isEqualTo(1);
        fixture.runAll();
        fixture.time.advance(2 * IDLE);
        assertThat(fixture.time.scheduled()).isZero();
        fixture.end(batcher);
    }

    @Test
    void cancelsTheRestOfASequenceFromTheCancelledRequestOn() {
        SequenceBatcher batcher = fixture.open();
        FakeSequenceJob first = fixture.submit(batcher, "1 S");
        FakeSequenceJob second = fixture.submit(batcher, "1");
        FakeSequenceJob third = fixture.submit(batcher, "1");
        FakeSequenceJob next = fixture.submit(batcher, "2 S");
        second.cancel();
        assertThat(second.code).isEqualTo(ErrorCode.CANCELLED);
        assertThat(third.code).isEqualTo(ErrorCode.CANCELLED);
        assertThat(fixture.rejected(batcher, fixture.request("1"))).hasMessageContaining("must specify the START flag");
        fixture.runAll();
        assertThat(first.code).isEqualTo(ErrorCode.OK);
        assertThat(next.code).isEqualTo(ErrorCode.OK);
        fixture.end(batcher);
    }

    @Test
    void freesTheSlotAtOnceWhenTheFirstInLineIsCancelled() {
        SequenceBatcher batcher = fixture.open();
        fixture.submit(batcher, "1 S");
        fixture.runAll();
        FakeSequenceJob head = fixture.submit(batcher, "1");
        FakeSequenceJob next = fixture.submit(batcher, "2 S");
        head.cancel();
        fixture.runAll();
        assertThat(fixture.ran()).containsExactly(List.of("r1"), List.of("r3"));
        assertThat(next.code).isEqualTo(ErrorCode.OK);
        fixture.end(batcher);
    }

    @Test
    void cancelsAWholeSequenceInTheBacklog() {
        SequenceBatcher batcher = fixture.open();
        fixture.submit(batcher, "1 S");
        FakeSequenceJob first = fixture.submit(batcher, "2 S");
        FakeSequenceJob second = fixture.submit(batcher, "2");
        FakeSequenceJob third = fixture.submit(batcher, "2 E");
        second.cancel();
        assertThat(List.of(first, second, third)).allMatch(t -> t.code == ErrorCode.CANCELLED);
        assertThat(batcher.queued()).isEqualTo(1);
        fixture.end(batcher);
    }

    @Test
    void sparesTheSequenceThatBeginsBehindTheCancelledOne() {
        SequenceBatcher batcher = fixture.open();
        fixture.submit(batcher, "1 S");
        FakeSequenceJob gone = fixture.submit(batcher, "1");
        fixture.submit(batcher, "1 S");
        gone.cancel();
        fixture.submit(batcher, "1 E");
        fixture.runAll();
        assertThat(fixture.ran()).containsExactly(List.of("r1"), List.of("r3"), List.of("r4"));
        fixture.end(batcher);
    }

    @Test
    void endsASequenceWhoseRunWasStoppedByItsClient() {
        SequenceBatcher batcher = fixture.open();
        FakeSequenceJob first = fixture.submit(batcher, "1 S");
        FakeSequenceJob second = fixture.submit(batcher, "1");
        fixture.puppet.during = first::cancel;
        fixture.puppet.failure = ServingException.of(ErrorCode.CANCELLED, "stopped");
        fixture.runOne();
        fixture.puppet.failure = null;
        assertThat(first.code).isEqualTo(ErrorCode.CANCELLED);
        assertThat(second.code).isEqualTo(ErrorCode.CANCELLED);
        fixture.end(batcher);
    }

    @Test
    void goesOnWhenTheResponseWasFasterThanTheCancellation() {
        SequenceBatcher batcher = fixture.open();
        FakeSequenceJob first = fixture.submit(batcher, "1 S");
        FakeSequenceJob second = fixture.submit(batcher, "1");
        fixture.puppet.during = first::cancel;
        fixture.runAll();
        assertThat(first.code).isEqualTo(ErrorCode.OK);
        assertThat(second.code).isEqualTo(ErrorCode.OK);
        fixture.end(batcher);
    }

    @Test
    void rejectsARequestWhoseClientHasGone() {
        SequenceBatcher batcher = fixture.open();
        FakeSequenceJob gone = fixture.request("1 S");
        gone.cancel();
        assertThatThrownBy(() -> batcher.submit(gone))
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.CANCELLED));
        gone.drop();
        fixture.requests.clear();
        fixture.end(batcher);
    }

    @Test
    void finishesWhatIsQueuedAfterItIsClosed() {
        SequenceBatcher batcher = fixture.open();
        FakeSequenceJob first = fixture.submit(batcher, "1 S");
        FakeSequenceJob second = fixture.submit(batcher, "1");
        FakeSequenceJob waits = fixture.submit(batcher, "2 S");
        batcher.close();
        assertThat(fixture.rejected(batcher, fixture.request("1")))
                .hasMessage("[request id: r4] Server is stopping, scheduler for model has stopped accepting new"
                        + " inference requests");
        assertThat(batcher.drained().toCompletableFuture()).isNotDone();
        fixture.end(batcher);
        assertThat(List.of(first, second, waits)).allMatch(t -> t.code == ErrorCode.OK);
    }

    @Test
    void drainsAtOnceWhenNothingIsQueued() {
        SequenceBatcher batcher = fixture.open();
        fixture.submit(batcher, "1 S");
        fixture.runAll();
        batcher.close();
        assertThat(batcher.drained().toCompletableFuture()).isCompleted();
        fixture.end(batcher);
    }

    @Test
    void failsWhatWaitsWhenThePoolIsClosed() {
        for (boolean oldest : new boolean[] {false, true}) {
            SequenceFixture own = new SequenceFixture();
            if (oldest) {
                own.strategy = SequenceFixture.oldest(1, 0);
            }
            SequenceBatcher batcher = own.open();
            own.pool.close();
            FakeSequenceJob request = own.submit(batcher, "1 S");
            assertThat(request.code).isEqualTo(ErrorCode.UNAVAILABLE);
            FakeSequenceJob other = own.submit(batcher, "2 S");
            assertThat(other.code).isEqualTo(ErrorCode.UNAVAILABLE);
            own.end(batcher);
        }
    }

    @Test
    void givesNewInstancesToTheBacklogAtOnce() {
        SequenceBatcher batcher = fixture.open();
        fixture.submit(batcher, "1 S");
        fixture.submit(batcher, "2 S");
        fixture.submit(batcher, "3 S");
        batcher.instances(2);
        assertThat(batcher.instances()).isEqualTo(2);
        fixture.runAll();
        assertThat(fixture.ran()).containsExactly(List.of("r1"), List.of("r2"));
        assertThat(fixture.puppet.instances).containsExactly(0, 1);
        fixture.end(batcher);
    }

    @Test
    void takesAnInstanceAwayWhenItsSequencesHaveEnded() {
        for (boolean oldest : new boolean[] {false, true}) {
            SequenceFixture own = new SequenceFixture();
            own.instances = 2;
            if (oldest) {
                own.strategy = SequenceFixture.oldest(1, 0);
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
            assertThat(own.requests.get(2).ends.get())
                    .as("the third stays in the backlog")
                    .isZero();
            assertThat(batcher.batches()).isEqualTo(4);
            batcher.instances(2);
            own.runAll();
            assertThat(own.requests.get(2).code).isEqualTo(ErrorCode.OK);
            assertThat(own.puppet.instances).endsWith(1);
            own.end(batcher);
        }
    }

    @Test
    void givesAnInstanceBackThatWasToGo() {
        fixture.instances = 2;
        SequenceBatcher batcher = fixture.open();
        fixture.submit(batcher, "1 S");
        fixture.submit(batcher, "2 S");
        batcher.instances(1);
        batcher.instances(2);
        fixture.submit(batcher, "2 E");
        fixture.submit(batcher, "3 S");
        fixture.runAll();
        assertThat(fixture.puppet.retired).isEmpty();
        assertThat(fixture.requests).allMatch(t -> t.code == ErrorCode.OK);
        fixture.end(batcher);
    }

    @Test
    void holdsEverythingBackUntilEnoughWaitsForTests() {
        for (boolean oldest : new boolean[] {false, true}) {
            SequenceFixture own = new SequenceFixture();
            own.options = new SchedulerOptions(100, InlinePolicy.NEVER).delayed(2, 1);
            if (oldest) {
                own.strategy = SequenceFixture.oldest(1, 0);
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
        fixture.options = new SchedulerOptions(100, InlinePolicy.NEVER).delayed(9, 9);
        SequenceBatcher batcher = fixture.open();
        FakeSequenceJob request = fixture.submit(batcher, "1 S");
        assertThat(fixture.runOne()).isFalse();
        fixture.end(batcher);
        assertThat(request.code).isEqualTo(ErrorCode.OK);
    }

    @Test
    void goesOnWithASequenceWhoseNamesakeEndsAfterItsStart() {
        fixture.maxBatch = 2;
        SequenceBatcher batcher = fixture.open();
        fixture.submit(batcher, "1 S");
        fixture.submit(batcher, "1 E");
        fixture.submit(batcher, "1 S");
        fixture.runAll();
        FakeSequenceJob request = fixture.submit(batcher, "1");
        fixture.runAll();
        assertThat(fixture.ran()).containsExactly(List.of("r1", "r3"), List.of("r2"), List.of("-", "r4"));
        assertThat(request.code).isEqualTo(ErrorCode.OK);
        fixture.end(batcher);
    }

    @Test
    void givesNoNewSequenceToAnInstanceThatIsToGo() {
        fixture.instances = 2;
        fixture.maxBatch = 2;
        SequenceBatcher batcher = fixture.open();
        fixture.submit(batcher, "1 S");
        fixture.submit(batcher, "2 S");
        batcher.instances(1);
        fixture.submit(batcher, "3 S");
        fixture.submit(batcher, "4 S");
        fixture.runAll();
        assertThat(fixture.ran()).containsExactly(List.of("r1", "r3"), List.of("r2"));
        assertThat(fixture.puppet.instances).containsExactly(0, 1);
        fixture.end(batcher);
    }

    @Test
    void takesAnInstanceInAgainThatIsWantedWhileItGoes() {
        for (boolean oldest : new boolean[] {false, true}) {
            SequenceFixture own = new SequenceFixture();
            own.instances = 2;
            if (oldest) {
                own.strategy = SequenceFixture.oldest(1, 0);
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
        SequenceBatcher batcher = fixture.open();
        List<Boolean> drained = new java.util.ArrayList<>();
        fixture.puppet.instead = job -> {
            batcher.close();
            job.complete(List.of(), java.util.Map.of());
            drained.add(batcher.drained().toCompletableFuture().isDone());
        };
        fixture.submit(batcher, "1 S");
        fixture.runAll();
        assertThat(drained).containsExactly(false);
        fixture.end(batcher);
    }
}
