// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

import static io.nereid.scheduling.execution.SequenceStage.state;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.scheduling.execution.SequenceStage;
import io.nereid.scheduling.sequence.SequenceBatcher;
import io.nereid.spi.config.InitialStateConfig;
import io.nereid.spi.config.SequenceStateConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Implicit states of the sequence batcher. */
class SequenceStateTest {
    private final SequenceStage stage = new SequenceStage();

    @Test
    void areCarriedFromOneRequestToTheNextAndNotGivenToTheClient() {
        stage.states = List.of(state("S", 1));
        SequenceBatcher batcher = stage.open();
        stage.submit(batcher, "7 S");
        stage.submit(batcher, "7");
        Turn last = stage.submit(batcher, "7 E");
        stage.runAll();
        assertThat(stage.puppet.seen).containsExactly(List.of("SIN=0"), List.of("SIN=1"), List.of("SIN=3"));
        assertThat(last.answers).containsExactly("OUT=6");
        stage.end(batcher);
    }

    @Test
    void belongToTheirSequenceAlone() {
        for (boolean oldest : new boolean[] {false, true}) {
            SequenceStage own = new SequenceStage();
            own.maxBatch = 4;
            own.states = List.of(state("S", 1));
            if (oldest) {
                own.strategy = SequenceStage.oldest(4, 0);
            }
            SequenceBatcher batcher = own.open();
            own.submit(batcher, "1 S");
            own.submit(batcher, "2 S");
            own.submit(batcher, "1");
            own.submit(batcher, "2 E");
            own.submit(batcher, "3 S");
            own.runAll();
            own.submit(batcher, "1 E");
            own.submit(batcher, "3 E");
            own.runAll();
            assertThat(own.turns.stream().map(t -> t.answers.get(0)))
                    .containsExactly("OUT=1", "OUT=2", "OUT=4", "OUT=6", "OUT=5", "OUT=10", "OUT=12");
            own.end(batcher);
        }
    }

    @Test
    void areGivenToTheClientWhenTheyAreOutputsToo() {
        stage.states = List.of(state("S", 1));
        stage.outputs = List.of(
                new TensorSpec("OUT", DataType.INT32, Shape.of(1)),
                new TensorSpec("SOUT", DataType.INT32, Shape.of(1)));
        SequenceBatcher batcher = stage.open();
        Turn all = stage.submit(batcher, "7 S");
        Turn one = stage.submit(batcher, stage.turn("7").wants("SOUT"));
        Turn other = stage.submit(batcher, stage.turn("7 E").wants("OUT"));
        stage.runAll();
        assertThat(all.answers).containsExactly("OUT=1", "SOUT=1");
        assertThat(one.answers).containsExactly("SOUT=3");
        assertThat(other.answers).containsExactly("OUT=6");
        stage.end(batcher);
    }

    @Test
    void areAskedOfTheModelBesideTheOutputsTheClientWants() {
        stage.states = List.of(state("S", 1), state("T", 1));
        SequenceBatcher batcher = stage.open();
        List<String> asked = new ArrayList<>();
        stage.puppet.instead = job -> {
            job.request().outputs().forEach(o -> asked.add(o.name()));
            job.complete(stage.puppet.sums(job), Map.of());
        };
        stage.submit(batcher, "7 S");
        stage.runAll();
        assertThat(asked).containsExactly("OUT", "SOUT", "TOUT");
        stage.end(batcher);
    }

    @Test
    void beginAgainWithEverySequence() {
        stage.states = List.of(state("S", 1));
        SequenceBatcher batcher = stage.open();
        stage.submit(batcher, "7 S");
        stage.submit(batcher, "7 E");
        stage.submit(batcher, "7 S");
        stage.submit(batcher, "7 S");
        stage.runAll();
        assertThat(stage.puppet.seen)
                .containsExactly(List.of("SIN=0"), List.of("SIN=1"), List.of("SIN=0"), List.of("SIN=0"));
        stage.end(batcher);
    }

    @Test
    void stayAsTheyWereWhenTheModelFailsOrDoesNotGiveThem() {
        stage.states = List.of(state("S", 1));
        SequenceBatcher batcher = stage.open();
        stage.submit(batcher, "7 S");
        stage.runAll();
        stage.puppet.failure = ServingException.of(ErrorCode.INTERNAL, "no");
        stage.submit(batcher, "7");
        stage.runAll();
        stage.puppet.failure = null;
        stage.puppet.instead = job -> job.complete(List.of(), Map.of());
        stage.submit(batcher, "7");
        stage.runAll();
        stage.puppet.instead = null;
        stage.submit(batcher, "7");
        stage.runAll();
        assertThat(stage.puppet.seen.subList(1, 4)).containsOnly(List.of("SIN=1"));
        stage.end(batcher);
    }

    @Test
    void areTakenFromTheResponsesOfADecoupledModelToo() {
        stage.states = List.of(state("S", 1));
        SequenceBatcher batcher = stage.open();
        stage.puppet.instead = job -> {
            job.respond(stage.puppet.sums(job), Map.of());
            job.complete(List.of(), Map.of());
        };
        Turn first = stage.submit(batcher, "7 S");
        stage.submit(batcher, "7 E");
        stage.runAll();
        assertThat(stage.puppet.seen.get(1)).containsExactly("SIN=1");
        assertThat(first.answers).containsExactly("OUT=1");
        stage.end(batcher);
    }

    @Test
    void areHandedOnWithoutACopy() {
        stage.states = List.of(state("S", 1));
        SequenceBatcher batcher = stage.open();
        List<Long> written = new ArrayList<>();
        List<Long> read = new ArrayList<>();
        stage.puppet.instead = job -> {
            read.add(job.request().inputs().get(1).address());
            List<Tensor> sums = stage.puppet.sums(job);
            written.add(sums.get(1).address());
            job.complete(sums, Map.of());
        };
        stage.submit(batcher, "7 S");
        stage.submit(batcher, "7");
        stage.submit(batcher, "7 E");
        stage.runAll();
        assertThat(read.subList(1, 3)).isEqualTo(written.subList(0, 2));
        stage.end(batcher);
    }

    @Test
    void mayShareOneBufferForReadingAndWriting() {
        stage.states = List.of(new SequenceStateConfig("SIN", "SOUT", DataType.INT32, Shape.of(1), null, true));
        SequenceBatcher batcher = stage.open();
        stage.puppet.instead = job -> {
            Tensor in = job.request().inputs().get(1);
            job.complete(List.of(in.retainAs("SOUT", in.shape())), Map.of());
        };
        stage.submit(batcher, "7 S");
        stage.submit(batcher, "7");
        stage.submit(batcher, "7 E");
        stage.runAll();
        assertThat(stage.puppet.seen).hasSize(3).containsOnly(List.of("SIN=0"));
        stage.end(batcher);
    }

    @Test
    void haveABatchDimensionAndNoDimensionOfUnknownSizeAtFirst() {
        stage.maxBatch = 2;
        stage.states = List.of(
                state("S", -1, 3),
                new SequenceStateConfig("TIN", "TOUT", DataType.BYTES, Shape.of(2, -1), null, false));
        SequenceBatcher batcher = stage.open();
        List<String> shapes = new ArrayList<>();
        stage.puppet.instead = job -> {
            job.request().inputs().forEach(t -> shapes.add(t.shape() + ":" + t.byteLength()));
            job.complete(List.of(), Map.of());
        };
        stage.submit(batcher, "7 S");
        stage.runAll();
        assertThat(shapes.subList(1, 3)).containsExactly("[1,1,3]:12", "[1,2,1]:8");
        assertThat(stage.puppet.seen.get(0)).containsExactly("SIN=0 TIN=");
        stage.end(batcher);
    }

    @Test
    void mayGrowAndKeepRowsOfOtherSizesApart() {
        stage.maxBatch = 2;
        stage.states = List.of(state("S", -1));
        SequenceBatcher batcher = stage.open();
        stage.puppet.instead = job -> {
            Tensor in = job.request().inputs().get(1);
            int size = (int) in.shape().dim(1) + 1;
            job.complete(List.of(stage.ledger.ints("SOUT", Shape.of(1, size), new int[size])), Map.of());
        };
        stage.submit(batcher, "7 S");
        stage.runAll();
        stage.submit(batcher, "7");
        stage.submit(batcher, "8 S");
        stage.submit(batcher, "8 E");
        stage.runAll();
        assertThat(stage.ran()).containsExactly(List.of("r1"), List.of("r2"), List.of("-", "r3"), List.of("-", "r4"));
        stage.end(batcher);
    }

    @Test
    void haveTheFirstShapeAgainWhenALiveSequenceIsStarted() {
        stage.maxBatch = 2;
        stage.states = List.of(state("S", -1));
        SequenceBatcher batcher = stage.open();
        stage.puppet.instead =
                job -> job.complete(List.of(stage.ledger.ints("SOUT", Shape.of(1, 3), 1, 2, 3)), Map.of());
        stage.submit(batcher, "7 S");
        stage.runAll();
        stage.submit(batcher, "7 S");
        stage.submit(batcher, "8 S");
        stage.runAll();
        assertThat(stage.ran()).containsExactly(List.of("r1"), List.of("r2", "r3"));
        stage.end(batcher);
    }

    @Test
    void giveARowWithoutARequestSomethingOfTheRightShape() {
        stage.maxBatch = 2;
        stage.controls = SequenceStage.allControls();
        stage.states = List.of(state("S", -1));
        SequenceBatcher batcher = stage.open();
        List<String> shapes = new ArrayList<>();
        stage.submit(batcher, "7 S");
        stage.submit(batcher, "8 S");
        stage.runAll();
        stage.submit(batcher, "8");
        stage.puppet.instead = job -> {
            job.request().inputs().forEach(t -> shapes.add(t.name() + t.shape()));
            job.complete(List.of(), Map.of());
        };
        stage.runAll();
        assertThat(stage.ran().get(1)).containsExactly("-", "r3");
        assertThat(shapes)
                .containsExactly("IN[1,1]", "START[1,1]", "READY[1,1]", "END[1,1]", "CORRID[1,1]", "SIN[1,1]");
        assertThat(stage.puppet.seen.get(1).get(0)).startsWith("START=0 READY=0 END=0 CORRID=0 SIN=");
        stage.end(batcher);
    }

    @Test
    void areDroppedWhenTheirSequenceBecomesIdleOrIsCancelled() {
        stage.maxBatch = 2;
        stage.states = List.of(state("S", 1));
        SequenceBatcher batcher = stage.open();
        stage.submit(batcher, "7 S");
        stage.submit(batcher, "8 S");
        stage.runAll();
        assertThat(stage.ledger.open()).isEqualTo(2);
        stage.submit(batcher, "8").cancel();
        assertThat(stage.ledger.open()).isEqualTo(1);
        stage.time.advance(SequenceStage.IDLE);
        assertThat(stage.ledger.open()).isZero();
        stage.end(batcher);
    }

    @Test
    void beginWithZerosOrWithAFile() {
        stage.states = List.of(
                new SequenceStateConfig(
                        "AIN",
                        "AOUT",
                        DataType.INT32,
                        Shape.of(-1),
                        new InitialStateConfig("a", Shape.of(2), ""),
                        false),
                new SequenceStateConfig(
                        "BIN",
                        "BOUT",
                        DataType.INT32,
                        Shape.of(1),
                        new InitialStateConfig("b", Shape.of(1), "b.bin"),
                        false),
                new SequenceStateConfig(
                        "CIN",
                        "COUT",
                        DataType.BYTES,
                        Shape.of(1),
                        new InitialStateConfig("c", Shape.of(1), "c"),
                        false));
        stage.files = file -> file.equals("b.bin") ? new byte[] {42, 0, 0, 0, 9} : new byte[] {2, 0, 0, 0, 'h', 'i'};
        SequenceBatcher batcher = stage.open();
        stage.puppet.instead = job -> job.complete(List.of(), Map.of());
        stage.submit(batcher, "7 S");
        stage.submit(batcher, "8 S");
        stage.submit(batcher, "7 E");
        stage.runAll();
        assertThat(stage.puppet.seen).hasSize(3).containsOnly(List.of("AIN=0 BIN=42 CIN=hi"));
        stage.end(batcher);
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
        '' | 2   | 2  | Field 'name' must be set when using initial_state for state input 'SIN'.
        a  | 2,2 | 2  | Number of dimensions in 'initial_state' doesn't match the size of 'state' dimensions for state input 'SIN'. 2 != 1
        a  | -1  | 2  | 'initial_state' field for state input name 'SIN' contains variable dimensions.
        a  | 3   | 2  | 'initial_state' dim for input name 'SIN' doesn't match 'state' dim description. 3 != 2
        """, quoteCharacter = '"')
    void rejectABeginningThatDoesNotMatch(String name, String initial, String dims, String text) {
        String given = name.equals("''") ? "" : name;
        stage.states = List.of(new SequenceStateConfig(
                "SIN", "SOUT", DataType.INT32, shape(dims), new InitialStateConfig(given, shape(initial), ""), false));
        assertThatThrownBy(stage::open).isInstanceOfSatisfying(ServingException.class, e -> {
            assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
            assertThat(e).hasMessage(text);
        });
    }

    private static Shape shape(String dims) {
        return Shape.of(java.util.Arrays.stream(dims.split(","))
                .mapToLong(Long::parseLong)
                .toArray());
    }

    @Test
    void rejectAFileThatIsTooShort() {
        stage.states = List.of(new SequenceStateConfig(
                "SIN", "SOUT", DataType.INT32, Shape.of(2), new InitialStateConfig("s", Shape.of(2), "f"), false));
        stage.files = file -> new byte[7];
        assertThatThrownBy(stage::open)
                .hasMessage("initial_state setting expects 8 bytes, but the data provided from f only has 7 bytes.");
        stage.states = List.of(new SequenceStateConfig(
                "SIN", "SOUT", DataType.BYTES, Shape.of(1), new InitialStateConfig("s", Shape.of(1), "f"), false));
        assertThatThrownBy(stage::open).hasMessageContaining("only has 7 bytes.");
        stage.files = InitialStateFiles.NONE;
        assertThatThrownBy(stage::open)
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.NOT_FOUND));
    }

    @Test
    void failARequestWhoseResponseHoldsAnUnknownState() {
        stage.states = List.of(state("S", 1));
        SequenceBatcher batcher = stage.open();
        stage.puppet.instead = job -> job.complete(List.of(stage.ledger.ints("XOUT", Shape.of(1), 1)), Map.of());
        Turn turn = stage.submit(batcher, "7 S");
        stage.runAll();
        assertThat(turn.code).isEqualTo(ErrorCode.INTERNAL);
        assertThat(turn.error).hasMessage("unable to add state 'XOUT'. State configuration is missing for model 'm'.");
        stage.end(batcher);
    }

    @Test
    void failADecoupledRequestWhoseResponseHoldsAnUnknownStateAndTakeNothingAfterTheEnd() {
        stage.states = List.of(state("S", 1));
        SequenceBatcher batcher = stage.open();
        stage.puppet.instead = job -> {
            job.respond(List.of(stage.ledger.ints("XOUT", Shape.of(1), 1)), Map.of());
            job.respond(List.of(stage.ledger.ints("SOUT", Shape.of(1), 5)), Map.of());
            job.complete(List.of(stage.ledger.ints("SOUT", Shape.of(1), 6)), Map.of());
        };
        Turn turn = stage.submit(batcher, "7 S");
        stage.submit(batcher, "7");
        stage.runAll();
        assertThat(turn.code).isEqualTo(ErrorCode.INTERNAL);
        assertThat(stage.puppet.seen.get(1)).containsExactly("SIN=0");
        stage.end(batcher);
    }

    @Test
    void failARequestWhoseResponseHoldsAStateOfAnotherTypeOrShape() {
        stage.states = List.of(state("S", 1));
        SequenceBatcher batcher = stage.open();
        stage.puppet.instead = job -> job.complete(List.of(stage.ledger.ints("SOUT", Shape.of(2), 1, 2)), Map.of());
        Turn shape = stage.submit(batcher, "7 S");
        stage.runAll();
        stage.puppet.instead = job -> job.complete(
                List.of(Tensor.over("SOUT", DataType.FP32, Shape.of(1), MemoryRegion.allocate(4), 0, 4)), Map.of());
        Turn type = stage.submit(batcher, "7");
        stage.runAll();
        assertThat(shape.error)
                .hasMessage("model 'm' returned state 'SOUT' as INT32 of shape [2] (expected: INT32 of shape [1])");
        assertThat(type.error).hasMessageContaining("as FP32 of shape [1]");
        stage.end(batcher);
    }

    @Test
    void countOnceWhenTheyAreConfiguredTwice() {
        stage.states = List.of(state("S", 1), state("S", 2), state("T", 1));
        SequenceBatcher batcher = stage.open();
        stage.submit(batcher, "7 S");
        stage.runAll();
        assertThat(stage.puppet.seen.get(0)).containsExactly("SIN=0 TIN=0");
        stage.end(batcher);
    }
}
