// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.sequence;

import static io.nereid.scheduling.sequence.SequenceFixture.control;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.config.SequenceControl;
import io.nereid.spi.config.SequenceControl.Kind;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The control inputs of sequences. */
class SequenceControlTest {
    private final SequenceFixture fixture = new SequenceFixture();

    @Test
    void tellEveryRowWhereItStands() {
        fixture.maxBatch = 4;
        fixture.controls = SequenceFixture.allControls();
        SequenceBatcher batcher = fixture.open();
        fixture.submit(batcher, "7 S");
        fixture.submit(batcher, "8 SE");
        fixture.submit(batcher, "9 S");
        fixture.runAll();
        fixture.submit(batcher, "7");
        fixture.submit(batcher, "9 E");
        fixture.runAll();
        assertThat(fixture.puppet.seen.get(0))
                .containsExactly(
                        "START=1 READY=1 END=0 CORRID=7",
                        "START=1 READY=1 END=1 CORRID=8",
                        "START=1 READY=1 END=0 CORRID=9");
        assertThat(fixture.puppet.seen.get(1))
                .containsExactly(
                        "START=0 READY=1 END=0 CORRID=7",
                        "START=0 READY=0 END=0 CORRID=0",
                        "START=0 READY=1 END=1 CORRID=9");
        fixture.end(batcher);
    }

    @Test
    void haveABatchDimensionWhenTheModelHasOne() {
        for (int maxBatch : new int[] {0, 4}) {
            SequenceFixture own = new SequenceFixture();
            own.maxBatch = maxBatch;
            own.controls = SequenceFixture.allControls();
            SequenceBatcher batcher = own.open();
            List<Shape> shapes = new ArrayList<>();
            List<String> names = new ArrayList<>();
            own.puppet.instead = job -> {
                for (Tensor t : job.request().inputs()) {
                    shapes.add(t.shape());
                    names.add(t.name());
                }
                job.complete(List.of(), java.util.Map.of());
            };
            own.submit(batcher, "7 S");
            own.runAll();
            Shape expected = maxBatch > 0 ? Shape.of(1, 1) : Shape.of(1);
            assertThat(names).containsExactly("IN", "START", "READY", "END", "CORRID");
            assertThat(shapes.subList(1, 5)).containsOnly(expected);
            own.end(batcher);
        }
    }

    @Test
    void comeInEveryTypeAndWithAnyPairOfValues() {
        fixture.controls = List.of(
                new SequenceControl("I", Kind.START, DataType.INT32, -3, 5),
                new SequenceControl("F", Kind.READY, DataType.FP32, 0.5, 2.5),
                new SequenceControl("B", Kind.END, DataType.BOOL, 1, 0));
        SequenceBatcher batcher = fixture.open();
        fixture.submit(batcher, "7 S");
        fixture.submit(batcher, "7 E");
        fixture.runAll();
        assertThat(fixture.puppet.seen).containsExactly(List.of("I=5 F=2.5 B=1"), List.of("I=-3 F=2.5 B=0"));
        fixture.end(batcher);
    }

    @ParameterizedTest
    @CsvSource({
        "UINT64, 18446744073709551615",
        "INT64, 9223372036854775807",
        "UINT32, 4294967295",
        "INT32, 2147483647",
        "BYTES, naïve-id"
    })
    void carryAnIdThatFits(DataType type, String id) {
        fixture.maxBatch = 2;
        fixture.controls = List.of(new SequenceControl("ID", Kind.CORRID, type, 0, 0));
        SequenceBatcher batcher = fixture.open();
        fixture.submit(batcher, "1 S".replace("1", id.matches("\\d+") ? "5" : "other"));
        fixture.submit(batcher, id + " S");
        fixture.runAll();
        fixture.submit(batcher, id + " E");
        fixture.runAll();
        assertThat(fixture.puppet.seen.get(0).get(1)).isEqualTo("ID=" + id);
        assertThat(fixture.puppet.seen.get(1)).containsExactly(type == DataType.BYTES ? "ID=" : "ID=0", "ID=" + id);
        fixture.end(batcher);
    }

    @ParameterizedTest
    @CsvSource({"INT64, 9223372036854775808", "UINT32, 4294967296", "INT32, 2147483648", "INT32, 18446744073709551615"})
    void refuseAnIdThatDoesNotFit(DataType type, String id) {
        fixture.controls = List.of(new SequenceControl("ID", Kind.CORRID, type, 0, 0));
        SequenceBatcher batcher = fixture.open();
        ServingException e = fixture.rejected(batcher, fixture.request(id + " S"));
        assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
        assertThat(e).hasMessageContaining(id).hasMessageContaining("'ID'").hasMessageContaining(type.name());
        fixture.end(batcher);
    }

    @ParameterizedTest
    @CsvSource({"BYTES, 123, UINT64", "UINT64, corrid, BYTES", "INT64, corrid, BYTES", "INT32, corrid, BYTES"})
    void refuseAnIdOfTheOtherType(DataType type, String id, String given) {
        fixture.controls = List.of(new SequenceControl("CORRID", Kind.CORRID, type, 0, 0));
        SequenceBatcher batcher = fixture.open();
        ServingException e = fixture.rejected(batcher, fixture.request(id + " S"));
        assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
        assertThat(e)
                .hasMessage("sequence batching control 'CORRID' data-type is '" + given + "', but model 'm' expects '"
                        + type + "'");
        fixture.end(batcher);
    }

    @Test
    void takeAnyIdWhenTheModelHasNoCorridControl() {
        SequenceBatcher batcher = fixture.open();
        fixture.submit(batcher, "abc S");
        fixture.submit(batcher, "18446744073709551615 SE");
        fixture.submit(batcher, "abc E");
        fixture.end(batcher);
    }

    @Test
    void cannotBeOfOtherTypes() {
        fixture.controls = List.of(control(Kind.START), new SequenceControl("ID", Kind.CORRID, DataType.FP32, 0, 0));
        assertThatThrownBy(fixture::open)
                .hasMessageContaining(
                        "Allowed data types are TYPE_UINT64, TYPE_INT64, TYPE_UINT32, TYPE_INT32 and" + " TYPE_STRING");
        fixture.controls = List.of(new SequenceControl("S", Kind.START, DataType.INT8, 0, 0));
        assertThatThrownBy(fixture::open).hasMessageContaining("unexpected data type for control START for m");
    }

    @Test
    void sayStartAgainWhenALiveSequenceIsStarted() {
        fixture.controls = List.of(control(Kind.START), control(Kind.END));
        SequenceBatcher batcher = fixture.open();
        fixture.submit(batcher, "1 S");
        fixture.submit(batcher, "1");
        fixture.submit(batcher, "1 S");
        fixture.runAll();
        assertThat(fixture.puppet.seen)
                .containsExactly(List.of("START=1 END=0"), List.of("START=0 END=0"), List.of("START=1 END=0"));
        fixture.end(batcher);
    }
}
