// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.sequence;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.scheduling.ReschedulableJob;
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
    final SequenceFixture fixture = new SequenceFixture();
    private final Map<String, Integer> runs = new HashMap<>();

    abstract void choose();

    @BeforeEach
    void iterative() {
        fixture.iterative = true;
        fixture.maxBatch = 4;
        fixture.controls = SequenceFixture.allControls();
        choose();
    }

    /** Sends one response per run and completes after three. */
    private void threeTimes(InferenceJob job) {
        if (runs.merge(job.request().id(), 1, Integer::sum) < 3) {
            job.respond(fixture.puppet.sums(job), Map.of());
            ((ReschedulableJob) job).reschedule();
        } else {
            job.complete(fixture.puppet.sums(job), Map.of());
        }
    }

    @Test
    void comeBackUntilTheyAreDone() {
        SequenceBatcher batcher = fixture.open();
        fixture.puppet.instead = this::threeTimes;
        FakeSequenceJob request = fixture.request("1");
        request.sequence = null;
        fixture.submit(batcher, request);
        fixture.runAll();
        assertThat(fixture.puppet.seen)
                .containsExactly(
                        List.of("START=1 READY=1 END=0 CORRID=1"),
                        List.of("START=0 READY=1 END=0 CORRID=1"),
                        List.of("START=0 READY=1 END=0 CORRID=1"));
        assertThat(request.answers).hasSize(3);
        assertThat(request.code).isEqualTo(ErrorCode.OK);
        fixture.end(batcher);
    }

    @Test
    void joinOthersThatHaveBegunEarlier() {
        SequenceBatcher batcher = fixture.open();
        fixture.puppet.instead = this::threeTimes;
        fixture.submit(batcher, fixture.request("5"));
        fixture.runOne();
        fixture.submit(batcher, fixture.request("5"));
        fixture.runAll();
        assertThat(fixture.ran()).hasSize(4);
        assertThat(fixture.ran().get(1)).containsExactlyInAnyOrder("r1", "r2");
        assertThat(fixture.puppet.seen.get(1).stream().map(s -> s.substring(s.indexOf("CORRID"))))
                .as("the server generates the ids")
                .containsExactlyInAnyOrder("CORRID=1", "CORRID=2");
        fixture.end(batcher);
    }

    @Test
    void areNotEndedWhenIdle() {
        SequenceBatcher batcher = fixture.open();
        fixture.puppet.instead = this::threeTimes;
        FakeSequenceJob request = fixture.submit(batcher, fixture.request("1"));
        for (int i = 0; i < 3; i++) {
            fixture.time.advance(2 * SequenceFixture.IDLE);
            assertThat(fixture.runOne()).isTrue();
        }
        assertThat(request.code).isEqualTo(ErrorCode.OK);
        fixture.end(batcher);
    }

    @Test
    void endWithTheModelBeingNotifiedWhenTheirClientGoes() {
        SequenceBatcher batcher = fixture.open();
        List<Boolean> cancelledSeen = new ArrayList<>();
        fixture.puppet.instead = job -> {
            cancelledSeen.add(job.cancelled());
            ((ReschedulableJob) job).reschedule();
        };
        FakeSequenceJob request = fixture.submit(batcher, fixture.request("1"));
        fixture.runOne();
        request.cancel();
        fixture.runAll();
        assertThat(cancelledSeen).containsExactly(false, true);
        assertThat(request.code).isEqualTo(ErrorCode.CANCELLED);
        fixture.end(batcher);
    }

    @Test
    void endWithTheModelBeingNotifiedWhenTheirDeadlinePasses() {
        SequenceBatcher batcher = fixture.open();
        List<Boolean> cancelledSeen = new ArrayList<>();
        fixture.puppet.instead = job -> {
            cancelledSeen.add(job.cancelled());
            ((ReschedulableJob) job).reschedule();
        };
        FakeSequenceJob request = fixture.submit(batcher, fixture.request("1").until(fixture.time.nanos() + 100));
        fixture.runOne();
        fixture.time.advance(100);
        fixture.runAll();
        assertThat(cancelledSeen).containsExactly(false, true);
        assertThat(request.code).isEqualTo(ErrorCode.DEADLINE_EXCEEDED);
        fixture.end(batcher);
    }

    @Test
    void areDroppedWhenTheirClientGoesBeforeTheFirstRun() {
        SequenceBatcher batcher = fixture.open();
        FakeSequenceJob request = fixture.submit(batcher, fixture.request("1"));
        request.cancel();
        assertThat(request.code).isEqualTo(ErrorCode.CANCELLED);
        fixture.runAll();
        assertThat(fixture.ran()).isEmpty();
        fixture.end(batcher);
    }

    @Test
    void endWhenTheModelFails() {
        SequenceBatcher batcher = fixture.open();
        fixture.puppet.failure = ServingException.of(ErrorCode.INTERNAL, "no");
        FakeSequenceJob request = fixture.submit(batcher, fixture.request("1"));
        fixture.runAll();
        assertThat(request.code).isEqualTo(ErrorCode.INTERNAL);
        fixture.end(batcher);
    }

    @Test
    void finishAfterTheBatcherIsClosed() {
        SequenceBatcher batcher = fixture.open();
        fixture.puppet.instead = this::threeTimes;
        FakeSequenceJob request = fixture.submit(batcher, fixture.request("1"));
        fixture.runOne();
        batcher.close();
        fixture.end(batcher);
        assertThat(request.answers).hasSize(3);
    }

    @Test
    void carryStates() {
        fixture.controls = List.of();
        fixture.states = List.of(SequenceFixture.state("S", 1));
        SequenceBatcher batcher = fixture.open();
        fixture.puppet.instead = this::threeTimes;
        fixture.submit(batcher, fixture.request("1"));
        fixture.runAll();
        assertThat(fixture.puppet.seen).containsExactly(List.of("SIN=0"), List.of("SIN=1"), List.of("SIN=2"));
        fixture.end(batcher);
    }

    @Test
    void haveIdsOfTheTypeTheModelReads() {
        fixture.controls = List.of(new SequenceControl("ID", Kind.CORRID, DataType.BYTES, 0, 0));
        SequenceBatcher batcher = fixture.open();
        fixture.submit(batcher, fixture.request("17"));
        fixture.runAll();
        assertThat(fixture.puppet.seen.get(0)).containsExactly("ID=1");
        fixture.end(batcher);
    }
}
