// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.sequence;

import static io.nereid.scheduling.sequence.SequenceFixture.state;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.scheduling.InitialStateFiles;
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
    private final SequenceFixture fixture = new SequenceFixture();

    @Test
    void areCarriedFromOneRequestToTheNextAndNotGivenToTheClient() {
        fixture.states = List.of(state("S", 1));
        SequenceBatcher batcher = fixture.open();
        fixture.submit(batcher, "7 S");
        fixture.submit(batcher, "7");
        FakeSequenceJob last = fixture.submit(batcher, "7 E");
        fixture.runAll();
        assertThat(fixture.puppet.seen).containsExactly(List.of("SIN=0"), List.of("SIN=1"), List.of("SIN=3"));
        assertThat(last.answers).containsExactly("OUT=6");
        fixture.end(batcher);
    }

    @Test
    void belongToTheirSequenceAlone() {
        for (boolean oldest : new boolean[] {false, true}) {
            SequenceFixture own = new SequenceFixture();
            own.maxBatch = 4;
            own.states = List.of(state("S", 1));
            if (oldest) {
                own.strategy = SequenceFixture.oldest(4, 0);
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
            assertThat(own.requests.stream().map(t -> t.answers.get(0)))
                    .containsExactly("OUT=1", "OUT=2", "OUT=4", "OUT=6", "OUT=5", "OUT=10", "OUT=12");
            own.end(batcher);
        }
    }

    @Test
    void areGivenToTheClientWhenTheyAreOutputsToo() {
        fixture.states = List.of(state("S", 1));
        fixture.outputs = List.of(
                new TensorSpec("OUT", DataType.INT32, Shape.of(1)),
                new TensorSpec("SOUT", DataType.INT32, Shape.of(1)));
        SequenceBatcher batcher = fixture.open();
        FakeSequenceJob all = fixture.submit(batcher, "7 S");
        FakeSequenceJob one = fixture.submit(batcher, fixture.request("7").wants("SOUT"));
        FakeSequenceJob other = fixture.submit(batcher, fixture.request("7 E").wants("OUT"));
        fixture.runAll();
        assertThat(all.answers).containsExactly("OUT=1", "SOUT=1");
        assertThat(one.answers).containsExactly("SOUT=3");
        assertThat(other.answers).containsExactly("OUT=6");
        fixture.end(batcher);
    }

    @Test
    void areAskedOfTheModelBesideTheOutputsTheClientWants() {
        fixture.states = List.of(state("S", 1), state("T", 1));
        SequenceBatcher batcher = fixture.open();
        List<String> asked = new ArrayList<>();
        fixture.puppet.instead = job -> {
            job.request().outputs().forEach(o -> asked.add(o.name()));
            job.complete(fixture.puppet.sums(job), Map.of());
        };
        fixture.submit(batcher, "7 S");
        fixture.runAll();
        assertThat(asked).containsExactly("OUT", "SOUT", "TOUT");
        fixture.end(batcher);
    }

    @Test
    void beginAgainWithEverySequence() {
        fixture.states = List.of(state("S", 1));
        SequenceBatcher batcher = fixture.open();
        fixture.submit(batcher, "7 S");
        fixture.submit(batcher, "7 E");
        fixture.submit(batcher, "7 S");
        fixture.submit(batcher, "7 S");
        fixture.runAll();
        assertThat(fixture.puppet.seen)
                .containsExactly(List.of("SIN=0"), List.of("SIN=1"), List.of("SIN=0"), List.of("SIN=0"));
        fixture.end(batcher);
    }

    @Test
    void stayAsTheyWereWhenTheModelFailsOrDoesNotGiveThem() {
        fixture.states = List.of(state("S", 1));
        SequenceBatcher batcher = fixture.open();
        fixture.submit(batcher, "7 S");
        fixture.runAll();
        fixture.puppet.failure = ServingException.of(ErrorCode.INTERNAL, "no");
        fixture.submit(batcher, "7");
        fixture.runAll();
        fixture.puppet.failure = null;
        fixture.puppet.instead = job -> job.complete(List.of(), Map.of());
        fixture.submit(batcher, "7");
        fixture.runAll();
        fixture.puppet.instead = null;
        fixture.submit(batcher, "7");
        fixture.runAll();
        assertThat(fixture.puppet.seen.subList(1, 4)).containsOnly(List.of("SIN=1"));
        fixture.end(batcher);
    }

    @Test
    void areTakenFromTheResponsesOfADecoupledModelToo() {
        fixture.states = List.of(state("S", 1));
        SequenceBatcher batcher = fixture.open();
        fixture.puppet.instead = job -> {
            job.respond(fixture.puppet.sums(job), Map.of());
            job.complete(List.of(), Map.of());
        };
        FakeSequenceJob first = fixture.submit(batcher, "7 S");
        fixture.submit(batcher, "7 E");
        fixture.runAll();
        assertThat(fixture.puppet.seen.get(1)).containsExactly("SIN=1");
        assertThat(first.answers).containsExactly("OUT=1");
        fixture.end(batcher);
    }

    @Test
    void areHandedOnWithoutACopy() {
        fixture.states = List.of(state("S", 1));
        SequenceBatcher batcher = fixture.open();
        List<Long> written = new ArrayList<>();
        List<Long> read = new ArrayList<>();
        fixture.puppet.instead = job -> {
            read.add(job.request().inputs().get(1).address());
            List<Tensor> sums = fixture.puppet.sums(job);
            written.add(sums.get(1).address());
            job.complete(sums, Map.of());
        };
        fixture.submit(batcher, "7 S");
        fixture.submit(batcher, "7");
        fixture.submit(batcher, "7 E");
        fixture.runAll();
        assertThat(read.subList(1, 3)).isEqualTo(written.subList(0, 2));
        fixture.end(batcher);
    }

    @Test
    void mayShareOneBufferForReadingAndWriting() {
        fixture.states = List.of(new SequenceStateConfig("SIN", "SOUT", DataType.INT32, Shape.of(1), null, true));
        SequenceBatcher batcher = fixture.open();
        fixture.puppet.instead = job -> {
            Tensor in = job.request().inputs().get(1);
            job.complete(List.of(in.retainAs("SOUT", in.shape())), Map.of());
        };
        fixture.submit(batcher, "7 S");
        fixture.submit(batcher, "7");
        fixture.submit(batcher, "7 E");
        fixture.runAll();
        assertThat(fixture.puppet.seen).hasSize(3).containsOnly(List.of("SIN=0"));
        fixture.end(batcher);
    }

    @Test
    void haveABatchDimensionAndNoDimensionOfUnknownSizeAtFirst() {
        fixture.maxBatch = 2;
        fixture.states = List.of(
                state("S", -1, 3),
                new SequenceStateConfig("TIN", "TOUT", DataType.BYTES, Shape.of(2, -1), null, false));
        SequenceBatcher batcher = fixture.open();
        List<String> shapes = new ArrayList<>();
        fixture.puppet.instead = job -> {
            job.request().inputs().forEach(t -> shapes.add(t.shape() + ":" + t.byteLength()));
            job.complete(List.of(), Map.of());
        };
        fixture.submit(batcher, "7 S");
        fixture.runAll();
        assertThat(shapes.subList(1, 3)).containsExactly("[1,1,3]:12", "[1,2,1]:8");
        assertThat(fixture.puppet.seen.get(0)).containsExactly("SIN=0 TIN=");
        fixture.end(batcher);
    }

    @Test
    void mayGrowAndKeepRowsOfOtherSizesApart() {
        fixture.maxBatch = 2;
        fixture.states = List.of(state("S", -1));
        SequenceBatcher batcher = fixture.open();
        fixture.puppet.instead = job -> {
            Tensor in = job.request().inputs().get(1);
            int size = (int) in.shape().dim(1) + 1;
            job.complete(List.of(fixture.tensors.ints("SOUT", Shape.of(1, size), new int[size])), Map.of());
        };
        fixture.submit(batcher, "7 S");
        fixture.runAll();
        fixture.submit(batcher, "7");
        fixture.submit(batcher, "8 S");
        fixture.submit(batcher, "8 E");
        fixture.runAll();
        assertThat(fixture.ran()).containsExactly(List.of("r1"), List.of("r2"), List.of("-", "r3"), List.of("-", "r4"));
        fixture.end(batcher);
    }

    @Test
    void haveTheFirstShapeAgainWhenALiveSequenceIsStarted() {
        fixture.maxBatch = 2;
        fixture.states = List.of(state("S", -1));
        SequenceBatcher batcher = fixture.open();
        fixture.puppet.instead =
                job -> job.complete(List.of(fixture.tensors.ints("SOUT", Shape.of(1, 3), 1, 2, 3)), Map.of());
        fixture.submit(batcher, "7 S");
        fixture.runAll();
        fixture.submit(batcher, "7 S");
        fixture.submit(batcher, "8 S");
        fixture.runAll();
        assertThat(fixture.ran()).containsExactly(List.of("r1"), List.of("r2", "r3"));
        fixture.end(batcher);
    }

    @Test
    void giveARowWithoutARequestSomethingOfTheRightShape() {
        fixture.maxBatch = 2;
        fixture.controls = SequenceFixture.allControls();
        fixture.states = List.of(state("S", -1));
        SequenceBatcher batcher = fixture.open();
        List<String> shapes = new ArrayList<>();
        fixture.submit(batcher, "7 S");
        fixture.submit(batcher, "8 S");
        fixture.runAll();
        fixture.submit(batcher, "8");
        fixture.puppet.instead = job -> {
            job.request().inputs().forEach(t -> shapes.add(t.name() + t.shape()));
            job.complete(List.of(), Map.of());
        };
        fixture.runAll();
        assertThat(fixture.ran().get(1)).containsExactly("-", "r3");
        assertThat(shapes)
                .containsExactly("IN[1,1]", "START[1,1]", "READY[1,1]", "END[1,1]", "CORRID[1,1]", "SIN[1,1]");
        assertThat(fixture.puppet.seen.get(1).get(0)).startsWith("START=0 READY=0 END=0 CORRID=0 SIN=");
        fixture.end(batcher);
    }

    @Test
    void areDroppedWhenTheirSequenceBecomesIdleOrIsCancelled() {
        fixture.maxBatch = 2;
        fixture.states = List.of(state("S", 1));
        SequenceBatcher batcher = fixture.open();
        fixture.submit(batcher, "7 S");
        fixture.submit(batcher, "8 S");
        fixture.runAll();
        assertThat(fixture.tensors.open()).isEqualTo(2);
        fixture.submit(batcher, "8").cancel();
        assertThat(fixture.tensors.open()).isEqualTo(1);
        fixture.time.advance(SequenceFixture.IDLE);
        assertThat(fixture.tensors.open()).isZero();
        fixture.end(batcher);
    }

    @Test
    void beginWithZerosOrWithAFile() {
        fixture.states = List.of(
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
        fixture.files = file -> file.equals("b.bin") ? new byte[] {42, 0, 0, 0, 9} : new byte[] {2, 0, 0, 0, 'h', 'i'};
        SequenceBatcher batcher = fixture.open();
        fixture.puppet.instead = job -> job.complete(List.of(), Map.of());
        fixture.submit(batcher, "7 S");
        fixture.submit(batcher, "8 S");
        fixture.submit(batcher, "7 E");
        fixture.runAll();
        assertThat(fixture.puppet.seen).hasSize(3).containsOnly(List.of("AIN=0 BIN=42 CIN=hi"));
        fixture.end(batcher);
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
        fixture.states = List.of(new SequenceStateConfig(
                "SIN", "SOUT", DataType.INT32, shape(dims), new InitialStateConfig(given, shape(initial), ""), false));
        assertThatThrownBy(fixture::open).isInstanceOfSatisfying(ServingException.class, e -> {
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
        fixture.states = List.of(new SequenceStateConfig(
                "SIN", "SOUT", DataType.INT32, Shape.of(2), new InitialStateConfig("s", Shape.of(2), "f"), false));
        fixture.files = file -> new byte[7];
        assertThatThrownBy(fixture::open)
                .hasMessage("initial_state setting expects 8 bytes, but the data provided from f only has 7 bytes.");
        fixture.states = List.of(new SequenceStateConfig(
                "SIN", "SOUT", DataType.BYTES, Shape.of(1), new InitialStateConfig("s", Shape.of(1), "f"), false));
        assertThatThrownBy(fixture::open).hasMessageContaining("only has 7 bytes.");
        fixture.files = InitialStateFiles.NONE;
        assertThatThrownBy(fixture::open)
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.NOT_FOUND));
    }

    @Test
    void failARequestWhoseResponseHoldsAnUnknownState() {
        fixture.states = List.of(state("S", 1));
        SequenceBatcher batcher = fixture.open();
        fixture.puppet.instead = job -> job.complete(List.of(fixture.tensors.ints("XOUT", Shape.of(1), 1)), Map.of());
        FakeSequenceJob request = fixture.submit(batcher, "7 S");
        fixture.runAll();
        assertThat(request.code).isEqualTo(ErrorCode.INTERNAL);
        assertThat(request.error)
                .hasMessage("unable to add state 'XOUT'. State configuration is missing for model 'm'.");
        fixture.end(batcher);
    }

    @Test
    void failADecoupledRequestWhoseResponseHoldsAnUnknownStateAndTakeNothingAfterTheEnd() {
        fixture.states = List.of(state("S", 1));
        SequenceBatcher batcher = fixture.open();
        fixture.puppet.instead = job -> {
            job.respond(List.of(fixture.tensors.ints("XOUT", Shape.of(1), 1)), Map.of());
            job.respond(List.of(fixture.tensors.ints("SOUT", Shape.of(1), 5)), Map.of());
            job.complete(List.of(fixture.tensors.ints("SOUT", Shape.of(1), 6)), Map.of());
        };
        FakeSequenceJob request = fixture.submit(batcher, "7 S");
        fixture.submit(batcher, "7");
        fixture.runAll();
        assertThat(request.code).isEqualTo(ErrorCode.INTERNAL);
        assertThat(fixture.puppet.seen.get(1)).containsExactly("SIN=0");
        fixture.end(batcher);
    }

    @Test
    void failARequestWhoseResponseHoldsAStateOfAnotherTypeOrShape() {
        fixture.states = List.of(state("S", 1));
        SequenceBatcher batcher = fixture.open();
        fixture.puppet.instead =
                job -> job.complete(List.of(fixture.tensors.ints("SOUT", Shape.of(2), 1, 2)), Map.of());
        FakeSequenceJob shape = fixture.submit(batcher, "7 S");
        fixture.runAll();
        fixture.puppet.instead = job -> job.complete(
                List.of(Tensor.over("SOUT", DataType.FP32, Shape.of(1), MemoryRegion.allocate(4), 0, 4)), Map.of());
        FakeSequenceJob type = fixture.submit(batcher, "7");
        fixture.runAll();
        assertThat(shape.error)
                .hasMessage("model 'm' returned state 'SOUT' as INT32 of shape [2] (expected: INT32 of shape [1])");
        assertThat(type.error).hasMessageContaining("as FP32 of shape [1]");
        fixture.end(batcher);
    }

    @Test
    void countOnceWhenTheyAreConfiguredTwice() {
        fixture.states = List.of(state("S", 1), state("S", 2), state("T", 1));
        SequenceBatcher batcher = fixture.open();
        fixture.submit(batcher, "7 S");
        fixture.runAll();
        assertThat(fixture.puppet.seen.get(0)).containsExactly("SIN=0 TIN=0");
        fixture.end(batcher);
    }
}
