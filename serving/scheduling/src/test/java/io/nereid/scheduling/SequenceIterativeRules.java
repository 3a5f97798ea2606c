// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.scheduling.execution.SequenceStage;
import io.nereid.scheduling.sequence.SequenceBatcher;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.config.SequenceControl;
import io.nereid.spi.config.SequenceControl.Kind;
import io.nereid.tensor.DataType;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Iterative sequences: requests that are rescheduled until the model completes them. A subclass for each strategy. */
abstract class SequenceIterativeRules {
    final SequenceStage stage = new SequenceStage();
    private final Map<String, Integer> runs = new HashMap<>();

    abstract void choose();

    @BeforeEach
    void iterative() {
        stage.iterative = true;
        stage.maxBatch = 4;
        stage.controls = SequenceStage.allControls();
        choose();
    }

    /** Sends one response per run and completes after three. */
    private void threeTimes(InferenceJob job) {
        if (runs.merge(job.request().id(), 1, Integer::sum) < 3) {
            job.respond(stage.puppet.sums(job), Map.of());
            ((ReschedulableJob) job).reschedule();
        } else {
            job.complete(stage.puppet.sums(job), Map.of());
        }
    }

    @Test
    void comeBackUntilTheyAreDone() {
        SequenceBatcher batcher = stage.open();
        stage.puppet.instead = this::threeTimes;
        Turn turn = stage.turn("1");
        turn.sequence = null;
        stage.submit(batcher, turn);
        stage.runAll();
        assertThat(stage.puppet.seen)
                .containsExactly(
                        List.of("START=1 READY=1 END=0 CORRID=1"),
                        List.of("START=0 READY=1 END=0 CORRID=1"),
                        List.of("START=0 READY=1 END=0 CORRID=1"));
        assertThat(turn.answers).hasSize(3);
        assertThat(turn.code).isEqualTo(ErrorCode.OK);
        stage.end(batcher);
    }

    @Test
    void joinOthersThatHaveBegunEarlier() {
        SequenceBatcher batcher = stage.open();
        stage.puppet.instead = this::threeTimes;
        stage.submit(batcher, stage.turn("5"));
        stage.runOne();
        stage.submit(batcher, stage.turn("5"));
        stage.runAll();
        assertThat(stage.ran()).hasSize(4);
        assertThat(stage.ran().get(1)).containsExactlyInAnyOrder("r1", "r2");
        assertThat(stage.puppet.seen.get(1).stream().map(s -> s.substring(s.indexOf("CORRID"))))
                .as("the server generates the ids")
                .containsExactlyInAnyOrder("CORRID=1", "CORRID=2");
        stage.end(batcher);
    }

    @Test
    void areNotEndedWhenIdle() {
        SequenceBatcher batcher = stage.open();
        stage.puppet.instead = this::threeTimes;
        Turn turn = stage.submit(batcher, stage.turn("1"));
        for (int i = 0; i < 3; i++) {
            stage.time.advance(2 * SequenceStage.IDLE);
            assertThat(stage.runOne()).isTrue();
        }
        assertThat(turn.code).isEqualTo(ErrorCode.OK);
        stage.end(batcher);
    }

    @Test
    void endWithTheModelBeingNotifiedWhenTheirClientGoes() {
        SequenceBatcher batcher = stage.open();
        List<Boolean> cancelledSeen = new ArrayList<>();
        stage.puppet.instead = job -> {
            cancelledSeen.add(job.cancelled());
            ((ReschedulableJob) job).reschedule();
        };
        Turn turn = stage.submit(batcher, stage.turn("1"));
        stage.runOne();
        turn.cancel();
        stage.runAll();
        assertThat(cancelledSeen).containsExactly(false, true);
        assertThat(turn.code).isEqualTo(ErrorCode.CANCELLED);
        stage.end(batcher);
    }

    @Test
    void endWithTheModelBeingNotifiedWhenTheirDeadlinePasses() {
        SequenceBatcher batcher = stage.open();
        List<Boolean> cancelledSeen = new ArrayList<>();
        stage.puppet.instead = job -> {
            cancelledSeen.add(job.cancelled());
            ((ReschedulableJob) job).reschedule();
        };
        Turn turn = stage.submit(batcher, stage.turn("1").until(stage.time.nanos() + 100));
        stage.runOne();
        stage.time.advance(100);
        stage.runAll();
        assertThat(cancelledSeen).containsExactly(false, true);
        assertThat(turn.code).isEqualTo(ErrorCode.DEADLINE_EXCEEDED);
        stage.end(batcher);
    }

    @Test
    void areDroppedWhenTheirClientGoesBeforeTheFirstRun() {
        SequenceBatcher batcher = stage.open();
        Turn turn = stage.submit(batcher, stage.turn("1"));
        turn.cancel();
        assertThat(turn.code).isEqualTo(ErrorCode.CANCELLED);
        stage.runAll();
        assertThat(stage.ran()).isEmpty();
        stage.end(batcher);
    }

    @Test
    void endWhenTheModelFails() {
        SequenceBatcher batcher = stage.open();
        stage.puppet.failure = ServingException.of(ErrorCode.INTERNAL, "no");
        Turn turn = stage.submit(batcher, stage.turn("1"));
        stage.runAll();
        assertThat(turn.code).isEqualTo(ErrorCode.INTERNAL);
        stage.end(batcher);
    }

    @Test
    void finishAfterTheBatcherIsClosed() {
        SequenceBatcher batcher = stage.open();
        stage.puppet.instead = this::threeTimes;
        Turn turn = stage.submit(batcher, stage.turn("1"));
        stage.runOne();
        batcher.close();
        stage.end(batcher);
        assertThat(turn.answers).hasSize(3);
    }

    @Test
    void carryStates() {
        stage.controls = List.of();
        stage.states = List.of(SequenceStage.state("S", 1));
        SequenceBatcher batcher = stage.open();
        stage.puppet.instead = this::threeTimes;
        stage.submit(batcher, stage.turn("1"));
        stage.runAll();
        assertThat(stage.puppet.seen).containsExactly(List.of("SIN=0"), List.of("SIN=1"), List.of("SIN=2"));
        stage.end(batcher);
    }

    @Test
    void haveIdsOfTheTypeTheModelReads() {
        stage.controls = List.of(new SequenceControl("ID", Kind.CORRID, DataType.BYTES, 0, 0));
        SequenceBatcher batcher = stage.open();
        stage.submit(batcher, stage.turn("17"));
        stage.runAll();
        assertThat(stage.puppet.seen.get(0)).containsExactly("ID=1");
        stage.end(batcher);
    }
}
