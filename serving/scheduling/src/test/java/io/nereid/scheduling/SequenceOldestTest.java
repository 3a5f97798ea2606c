// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

import static io.nereid.scheduling.execution.SequenceStage.oldest;
import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.scheduling.execution.SequenceStage;
import io.nereid.scheduling.sequence.SequenceBatcher;
import io.nereid.spi.config.SequenceBatching.Oldest;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** The oldest strategy. */
class SequenceOldestTest {
    private final SequenceStage stage = new SequenceStage();

    @BeforeEach
    void eightRows() {
        stage.maxBatch = 8;
        stage.strategy = oldest(4, 0);
    }

    @Test
    void joinsRequestsOfDifferentSequencesAndNoTwoOfOne() {
        SequenceBatcher batcher = stage.open();
        stage.submit(batcher, "1 S");
        stage.submit(batcher, "1");
        stage.submit(batcher, "2 S");
        stage.submit(batcher, "2");
        stage.submit(batcher, "3 S");
        assertThat(batcher.queued()).isEqualTo(5);
        stage.runAll();
        assertThat(stage.ran()).containsExactly(List.of("r1", "r3", "r5"), List.of("r2", "r4"));
        assertThat(batcher.batches()).isEqualTo(2);
        stage.end(batcher);
    }

    @Test
    void bindsASequenceToOneInstance() {
        stage.instances = 2;
        stage.strategy = oldest(1, 0);
        SequenceBatcher batcher = stage.open();
        stage.submit(batcher, "1 S");
        stage.submit(batcher, "2 S");
        stage.runAll();
        stage.submit(batcher, "2");
        stage.runAll();
        stage.submit(batcher, "1");
        stage.runAll();
        assertThat(stage.ran()).containsExactly(List.of("r1"), List.of("r2"), List.of("r3"), List.of("r4"));
        assertThat(stage.puppet.instances).containsExactly(0, 1, 1, 0);
        stage.end(batcher);
    }

    @Test
    void letsOnlySoManySequencesInAndTheOthersWait() {
        stage.strategy = oldest(2, 0);
        SequenceBatcher batcher = stage.open();
        for (int i = 1; i <= 5; i++) {
            stage.submit(batcher, i + " SE");
        }
        stage.runAll();
        assertThat(stage.ran()).containsExactly(List.of("r1", "r2"), List.of("r3", "r4"), List.of("r5"));
        stage.end(batcher);
    }

    @Test
    void waitsForAPreferredSizeOrTheDelay() {
        stage.strategy = oldest(8, 100, 2, 4);
        SequenceBatcher batcher = stage.open();
        stage.submit(batcher, "1 S");
        assertThat(stage.runOne()).isFalse();
        stage.submit(batcher, "2 S");
        stage.runAll();
        assertThat(stage.ran()).containsExactly(List.of("r1", "r2"));
        stage.submit(batcher, "3 S");
        stage.time.advance(99);
        assertThat(stage.runOne()).isFalse();
        stage.time.advance(1);
        stage.runAll();
        assertThat(stage.ran().get(1)).containsExactly("r3");
        assertThat(stage.puppet.cuts).containsExactly(BatchCloseReason.PREFERRED_SIZE, BatchCloseReason.DELAY);
        stage.end(batcher);
    }

    @Test
    void keepsOtherShapesApart() {
        SequenceBatcher batcher = stage.open();
        stage.submit(batcher, stage.turn("1 S", 2));
        stage.submit(batcher, stage.turn("2 S", 3));
        stage.submit(batcher, stage.turn("3 S", 3));
        stage.runAll();
        assertThat(stage.ran()).containsExactly(List.of("r1"), List.of("r2", "r3"));
        stage.end(batcher);
    }

    @Test
    void letsResponsesOutInOrderWhenAskedTo() {
        stage.strategy = new Oldest(4, List.of(), Duration.ZERO, true);
        SequenceBatcher batcher = stage.open();
        stage.puppet.keep = true;
        Turn first = stage.submit(batcher, "1 S");
        Turn second = stage.submit(batcher, "2 S");
        stage.runAll();
        stage.puppet.keep = false;
        stage.puppet.kept.get(1).complete(List.of(), Map.of());
        assertThat(second.ends.get()).isZero();
        stage.puppet.kept.get(0).complete(List.of(), Map.of());
        assertThat(first.code).isEqualTo(ErrorCode.OK);
        assertThat(second.code).isEqualTo(ErrorCode.OK);
        stage.end(batcher);
    }

    @Test
    void runsTheNextOfASequenceWhenTheModelHasFailedOnOne() {
        SequenceBatcher batcher = stage.open();
        stage.puppet.instead = job -> {
            stage.puppet.instead = null;
            job.fail(ServingException.of(ErrorCode.INTERNAL, "no"));
        };
        Turn first = stage.submit(batcher, "1 S");
        Turn second = stage.submit(batcher, "1");
        stage.runAll();
        assertThat(first.code).isEqualTo(ErrorCode.INTERNAL);
        assertThat(second.code).isEqualTo(ErrorCode.OK);
        stage.end(batcher);
    }

    @Test
    void endsTheSequenceOfARequestCancelledBeforeItRan() {
        SequenceBatcher batcher = stage.open();
        Turn first = stage.submit(batcher, "1 S");
        Turn second = stage.submit(batcher, "1");
        Turn other = stage.submit(batcher, "2 S");
        first.cancel();
        assertThat(first.code).isEqualTo(ErrorCode.CANCELLED);
        assertThat(second.code).isEqualTo(ErrorCode.CANCELLED);
        assertThat(stage.rejected(batcher, stage.turn("1"))).hasMessageContaining("must specify the START flag");
        stage.runAll();
        assertThat(other.code).isEqualTo(ErrorCode.OK);
        stage.end(batcher);
    }

    @Test
    void endsTheSequenceOfARequestThatMissesItsDeadline() {
        SequenceBatcher batcher = stage.open();
        Turn first = stage.submit(batcher, stage.turn("1 S").until(stage.time.nanos() + 100));
        Turn second = stage.submit(batcher, "1");
        stage.time.advance(100);
        assertThat(first.code).isEqualTo(ErrorCode.DEADLINE_EXCEEDED);
        assertThat(second.code).isEqualTo(ErrorCode.CANCELLED);
        stage.end(batcher);
    }

    @Test
    void endsAnIdleSequenceBehindItsWork() {
        stage.strategy = oldest(1, 0);
        SequenceBatcher batcher = stage.open();
        stage.submit(batcher, "1 S");
        stage.submit(batcher, "1");
        stage.submit(batcher, "2 S");
        stage.time.advance(SequenceStage.IDLE);
        stage.runAll();
        assertThat(stage.ran()).containsExactly(List.of("r1"), List.of("r2"), List.of("r3"));
        stage.end(batcher);
    }

    @Test
    void worksWithoutABatchDimension() {
        stage.maxBatch = 0;
        SequenceBatcher batcher = stage.open();
        stage.submit(batcher, "1 S");
        stage.submit(batcher, "2 S");
        stage.runAll();
        assertThat(stage.ran()).containsExactly(List.of("r1"), List.of("r2"));
        stage.end(batcher);
    }

    @Test
    void runsOnTheCallersThreadWhenTheModelIsTiny() {
        stage.options = new SchedulerOptions(100, InlinePolicy.ALWAYS);
        SequenceBatcher batcher = stage.open();
        Turn first = stage.submit(batcher, "1 S");
        assertThat(first.code).isEqualTo(ErrorCode.OK);
        Turn second = stage.submit(batcher, "1");
        assertThat(second.code).isEqualTo(ErrorCode.OK);
        stage.end(batcher);
    }

    @Test
    void ignoresARequestsTimeoutOnceItsSequenceHasASlot() {
        SequenceBatcher batcher = stage.open();
        Turn first = stage.submit(batcher, stage.turn("1 S").timeout(100));
        stage.time.advance(1_000);
        stage.runAll();
        assertThat(first.code).isEqualTo(ErrorCode.OK);
        stage.end(batcher);
    }
}
