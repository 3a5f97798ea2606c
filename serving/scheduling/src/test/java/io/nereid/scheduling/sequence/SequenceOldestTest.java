// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.sequence;

import static io.nereid.scheduling.sequence.SequenceFixture.oldest;
import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.scheduling.BatchCloseReason;
import io.nereid.scheduling.InlinePolicy;
import io.nereid.scheduling.SchedulerOptions;
import io.nereid.spi.config.SequenceBatching.Oldest;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** The oldest strategy. */
class SequenceOldestTest {
    private final SequenceFixture fixture = new SequenceFixture();

    @BeforeEach
    void eightRows() {
        fixture.maxBatch = 8;
        fixture.strategy = oldest(4, 0);
    }

    @Test
    void joinsRequestsOfDifferentSequencesAndNoTwoOfOne() {
        SequenceBatcher batcher = fixture.open();
        fixture.submit(batcher, "1 S");
        fixture.submit(batcher, "1");
        fixture.submit(batcher, "2 S");
        fixture.submit(batcher, "2");
        fixture.submit(batcher, "3 S");
        assertThat(batcher.queued()).isEqualTo(5);
        fixture.runAll();
        assertThat(fixture.ran()).containsExactly(List.of("r1", "r3", "r5"), List.of("r2", "r4"));
        assertThat(batcher.batches()).isEqualTo(2);
        fixture.end(batcher);
    }

    @Test
    void bindsASequenceToOneInstance() {
        fixture.instances = 2;
        fixture.strategy = oldest(1, 0);
        SequenceBatcher batcher = fixture.open();
        fixture.submit(batcher, "1 S");
        fixture.submit(batcher, "2 S");
        fixture.runAll();
        fixture.submit(batcher, "2");
        fixture.runAll();
        fixture.submit(batcher, "1");
        fixture.runAll();
        assertThat(fixture.ran()).containsExactly(List.of("r1"), List.of("r2"), List.of("r3"), List.of("r4"));
        assertThat(fixture.puppet.instances).containsExactly(0, 1, 1, 0);
        fixture.end(batcher);
    }

    @Test
    void letsOnlySoManySequencesInAndTheOthersWait() {
        fixture.strategy = oldest(2, 0);
        SequenceBatcher batcher = fixture.open();
        for (int i = 1; i <= 5; i++) {
            fixture.submit(batcher, i + " SE");
        }
        fixture.runAll();
        assertThat(fixture.ran()).containsExactly(List.of("r1", "r2"), List.of("r3", "r4"), List.of("r5"));
        fixture.end(batcher);
    }

    @Test
    void waitsForAPreferredSizeOrTheDelay() {
        fixture.strategy = oldest(8, 100, 2, 4);
        SequenceBatcher batcher = fixture.open();
        fixture.submit(batcher, "1 S");
        assertThat(fixture.runOne()).isFalse();
        fixture.submit(batcher, "2 S");
        fixture.runAll();
        assertThat(fixture.ran()).containsExactly(List.of("r1", "r2"));
        fixture.submit(batcher, "3 S");
        fixture.time.advance(99);
        assertThat(fixture.runOne()).isFalse();
        fixture.time.advance(1);
        fixture.runAll();
        assertThat(fixture.ran().get(1)).containsExactly("r3");
        assertThat(fixture.puppet.cuts).containsExactly(BatchCloseReason.PREFERRED_SIZE, BatchCloseReason.DELAY);
        fixture.end(batcher);
    }

    @Test
    void keepsOtherShapesApart() {
        SequenceBatcher batcher = fixture.open();
        fixture.submit(batcher, fixture.request("1 S", 2));
        fixture.submit(batcher, fixture.request("2 S", 3));
        fixture.submit(batcher, fixture.request("3 S", 3));
        fixture.runAll();
        assertThat(fixture.ran()).containsExactly(List.of("r1"), List.of("r2", "r3"));
        fixture.end(batcher);
    }

    @Test
    void letsResponsesOutInOrderWhenAskedTo() {
        fixture.strategy = new Oldest(4, List.of(), Duration.ZERO, true);
        SequenceBatcher batcher = fixture.open();
        fixture.puppet.keep = true;
        FakeSequenceJob first = fixture.submit(batcher, "1 S");
        FakeSequenceJob second = fixture.submit(batcher, "2 S");
        fixture.runAll();
        fixture.puppet.keep = false;
        fixture.puppet.kept.get(1).complete(List.of(), Map.of());
        assertThat(second.ends.get()).isZero();
        fixture.puppet.kept.get(0).complete(List.of(), Map.of());
        assertThat(first.code).isEqualTo(ErrorCode.OK);
        assertThat(second.code).isEqualTo(ErrorCode.OK);
        fixture.end(batcher);
    }

    @Test
    void runsTheNextOfASequenceWhenTheModelHasFailedOnOne() {
        SequenceBatcher batcher = fixture.open();
        fixture.puppet.instead = job -> {
            fixture.puppet.instead = null;
            job.fail(ServingException.of(ErrorCode.INTERNAL, "no"));
        };
        FakeSequenceJob first = fixture.submit(batcher, "1 S");
        FakeSequenceJob second = fixture.submit(batcher, "1");
        fixture.runAll();
        assertThat(first.code).isEqualTo(ErrorCode.INTERNAL);
        assertThat(second.code).isEqualTo(ErrorCode.OK);
        fixture.end(batcher);
    }

    @Test
    void endsTheSequenceOfARequestCancelledBeforeItRan() {
        SequenceBatcher batcher = fixture.open();
        FakeSequenceJob first = fixture.submit(batcher, "1 S");
        FakeSequenceJob second = fixture.submit(batcher, "1");
        FakeSequenceJob other = fixture.submit(batcher, "2 S");
        first.cancel();
        assertThat(first.code).isEqualTo(ErrorCode.CANCELLED);
        assertThat(second.code).isEqualTo(ErrorCode.CANCELLED);
        assertThat(fixture.rejected(batcher, fixture.request("1"))).hasMessageContaining("must specify the START flag");
        fixture.runAll();
        assertThat(other.code).isEqualTo(ErrorCode.OK);
        fixture.end(batcher);
    }

    @Test
    void endsTheSequenceOfARequestThatMissesItsDeadline() {
        SequenceBatcher batcher = fixture.open();
        FakeSequenceJob first = fixture.submit(batcher, fixture.request("1 S").until(fixture.time.nanos() + 100));
        FakeSequenceJob second = fixture.submit(batcher, "1");
        fixture.time.advance(100);
        assertThat(first.code).isEqualTo(ErrorCode.DEADLINE_EXCEEDED);
        assertThat(second.code).isEqualTo(ErrorCode.CANCELLED);
        fixture.end(batcher);
    }

    @Test
    void endsAnIdleSequenceBehindItsWork() {
        fixture.strategy = oldest(1, 0);
        SequenceBatcher batcher = fixture.open();
        fixture.submit(batcher, "1 S");
        fixture.submit(batcher, "1");
        fixture.submit(batcher, "2 S");
        fixture.time.advance(SequenceFixture.IDLE);
        fixture.runAll();
        assertThat(fixture.ran()).containsExactly(List.of("r1"), List.of("r2"), List.of("r3"));
        fixture.end(batcher);
    }

    @Test
    void worksWithoutABatchDimension() {
        fixture.maxBatch = 0;
        SequenceBatcher batcher = fixture.open();
        fixture.submit(batcher, "1 S");
        fixture.submit(batcher, "2 S");
        fixture.runAll();
        assertThat(fixture.ran()).containsExactly(List.of("r1"), List.of("r2"));
        fixture.end(batcher);
    }

    @Test
    void runsOnTheCallersThreadWhenTheModelIsTiny() {
        fixture.options = new SchedulerOptions(100, InlinePolicy.ALWAYS);
        SequenceBatcher batcher = fixture.open();
        FakeSequenceJob first = fixture.submit(batcher, "1 S");
        assertThat(first.code).isEqualTo(ErrorCode.OK);
        FakeSequenceJob second = fixture.submit(batcher, "1");
        assertThat(second.code).isEqualTo(ErrorCode.OK);
        fixture.end(batcher);
    }

    @Test
    void ignoresARequestsTimeoutOnceItsSequenceHasASlot() {
        SequenceBatcher batcher = fixture.open();
        FakeSequenceJob first = fixture.submit(batcher, fixture.request("1 S").timeout(100));
        fixture.time.advance(1_000);
        fixture.runAll();
        assertThat(first.code).isEqualTo(ErrorCode.OK);
        fixture.end(batcher);
    }
}
