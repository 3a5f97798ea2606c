// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnx;

import static io.nereid.backends.onnx.Fixtures.floats;
import static io.nereid.backends.onnx.Fixtures.longs;
import static io.nereid.backends.onnx.Fixtures.raw;
import static io.nereid.backends.onnx.Fixtures.run;
import static io.nereid.backends.onnx.Fixtures.strings;
import static io.nereid.backends.onnx.Fixtures.utf8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelInstance;
import io.nereid.backends.onnx.Fixtures.Answer;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

class OnnxRunTest {
    @TempDir
    Path root;

    private Fixtures fixtures() {
        return new Fixtures(root);
    }

    @ParameterizedTest
    @EnumSource(value = DataType.class, mode = EnumSource.Mode.EXCLUDE, names = "BYTES")
    void everyFixedSizeTypeComesBackByteForByte(DataType type) {
        byte[] bytes = new byte[6 * type.size()];
        new Random(type.ordinal()).nextBytes(bytes);
        if (type == DataType.BOOL) {
            for (int i = 0; i < bytes.length; i++) {
                bytes[i] &= 1;
            }
        }
        try (BackendModel model = fixtures().load("identity_" + type.name().toLowerCase(java.util.Locale.ROOT))) {
            List<Answer> answers = run(model, List.of(raw("INPUT0", type, Shape.of(2, 3), bytes)));
            assertThat(answers).singleElement().satisfies(a -> {
                assertThat(a.dataType()).isEqualTo(type);
                assertThat(a.shape()).isEqualTo(Shape.of(2, 3));
                assertThat(a.bytes()).isEqualTo(bytes);
            });
            assertThat(run(model, List.of(raw("INPUT0", type, Shape.of(0, 3), new byte[0])))
                            .get(0)
                            .shape())
                    .isEqualTo(Shape.of(0, 3));
        }
    }

    @Test
    void stringsComeBackByteForByte() {
        try (BackendModel model = fixtures().load("identity_string")) {
            Tensor input = strings("INPUT0", Shape.of(2, 2), utf8("plain"), utf8(""), utf8("Grüße"), utf8("日本"));
            byte[] sent = new byte[input.byteLength()];
            input.buffer().get(sent);
            List<Answer> answers = run(model, List.of(input));
            assertThat(answers.get(0).bytes()).isEqualTo(sent);
            assertThat(answers.get(0).shape()).isEqualTo(Shape.of(2, 2));
            assertThat(run(model, List.of(strings("INPUT0", Shape.of(0, 2))))
                            .get(0)
                            .shape())
                    .isEqualTo(Shape.of(0, 2));
        }
    }

    @Test
    void stringsThatTheEngineWouldChangeAreRefused() {
        try (BackendModel model = fixtures().load("identity_string")) {
            assertRefused(model, strings("INPUT0", Shape.of(1, 1), utf8("a😀")), "beyond U+FFFF");
            assertRefused(model, strings("INPUT0", Shape.of(1, 1), utf8("a\0b")), "NUL");
            assertRefused(model, strings("INPUT0", Shape.of(1, 1), new byte[] {(byte) 0xff, 0x41}), "not UTF-8");
            assertRefused(
                    model,
                    raw("INPUT0", DataType.BYTES, Shape.of(1, 1), new byte[] {9, 0, 0, 0, 65}),
                    "length-prefixed");
            assertRefused(
                    model,
                    raw("INPUT0", DataType.BYTES, Shape.of(1, 2), new byte[] {1, 0, 0, 0, 65}),
                    "length-prefixed");
        }
    }

    private static void assertRefused(BackendModel model, Tensor input, String text) {
        assertThatThrownBy(() -> run(model, List.of(input))).isInstanceOfSatisfying(ServingException.class, e -> {
            assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
            assertThat(e.getMessage()).contains(text);
        });
    }

    @Test
    void emojiInAModelsOwnStringsAreNotHandedOverDamaged() {
        try (BackendModel model = fixtures().load("string_constant")) {
            assertThatThrownBy(() -> run(model, List.of())).isInstanceOfSatisfying(ServingException.class, e -> {
                assertThat(e.code()).isEqualTo(ErrorCode.UNIMPLEMENTED);
                assertThat(e.getMessage()).contains("element 1", "emoji");
            });
        }
    }

    @Test
    void onlyWantedOutputsAreGivenInTheWantedOrder() {
        try (BackendModel model = fixtures().load("graph_order");
                ModelInstance invocation = model.newInstance()) {
            assertThat(model.config().inputs()).extracting("name").containsExactly("Z", "A");
            assertThat(model.config().outputs()).extracting("name").containsExactly("SECOND", "FIRST");
            List<Tensor> inputs = List.of(floats("Z", Shape.of(1, 2), 1, 2), floats("A", Shape.of(1, 3), 3, 4, 5));
            List<Answer> both = run(invocation, inputs, List.of("FIRST", "SECOND"));
            assertThat(both).extracting(Answer::name).containsExactly("FIRST", "SECOND");
            assertThat(both.get(0).floats()).containsExactly(-3f, -4f, -5f);
            List<Tensor> again = List.of(floats("A", Shape.of(1, 3), 3, 4, 5), floats("Z", Shape.of(1, 2), 1, 2));
            assertThat(run(invocation, again, List.of("SECOND")).get(0).floats())
                    .containsExactly(1f, 2f);
        }
    }

    @Test
    void inputsAtOddAddressesAreReadWhereTheyAre() {
        try (BackendModel model = fixtures().load("relu")) {
            MemoryRegion slab = MemoryRegion.allocate(64).zero();
            Tensor values = floats("X", Shape.of(1, 4), -1, 2, -3, 4);
            byte[] bytes = new byte[16];
            values.buffer().get(bytes);
            values.close();
            slab.setBytes(3, bytes, 0, 16);
            Tensor odd = Tensor.over("X", DataType.FP32, Shape.of(1, 4), slab, 3, 16);
            assertThat(run(model, List.of(odd)).get(0).floats()).containsExactly(0f, 2f, 0f, 4f);
        }
    }

    @Test
    void singleValuesAreVectorsOfOneToClients() {
        try (BackendModel model = fixtures().load("scalar")) {
            List<Answer> answers = run(model, List.of(floats("X", Shape.SCALAR, 21)));
            assertThat(model.config().inputs().get(0).shape()).isEqualTo(Shape.of(1));
            assertThat(answers.get(0).shape()).isEqualTo(Shape.of(1));
            assertThat(answers.get(0).floats()).containsExactly(42f);
        }
    }

    @Test
    void resultsWhoseShapeDependsOnValuesAreRightEveryTime() {
        try (BackendModel model = fixtures().load("nonzero")) {
            for (int round = 0; round < 4; round++) {
                assertThat(run(model, List.of(floats("X", Shape.of(3), 1, 0, 5)))
                                .get(0)
                                .longs())
                        .containsExactly(0L, 2L);
            }
            // The same input shape gave the same output shape before; now it does not.
            assertThat(run(model, List.of(floats("X", Shape.of(3), 0, 7, 0)))
                            .get(0)
                            .longs())
                    .containsExactly(1L);
            assertThat(run(model, List.of(floats("X", Shape.of(3), 0, 0, 0)))
                            .get(0)
                            .shape())
                    .isEqualTo(Shape.of(1, 0));
            assertThat(run(model, List.of(floats("X", Shape.of(3), 1, 1, 1)))
                            .get(0)
                            .longs())
                    .containsExactly(0L, 1L, 2L);
        }
    }

    @Test
    void resultsAreTheSameWithAndWithoutPinning() {
        try (BackendModel model = fixtures().load("add_sub_fp32")) {
            float[] a = new float[32];
            float[] b = new float[32];
            for (int i = 0; i < 32; i++) {
                a[i] = i;
                b[i] = 100 - 3 * i;
            }
            List<Answer> pinned =
                    run(model, List.of(floats("INPUT0", Shape.of(2, 16), a), floats("INPUT1", Shape.of(2, 16), b)));
            ((OnnxModel) model).stopPinning();
            List<Answer> free =
                    run(model, List.of(floats("INPUT0", Shape.of(2, 16), a), floats("INPUT1", Shape.of(2, 16), b)));
            assertThat(free).usingRecursiveComparison().isEqualTo(pinned);
            assertThat(pinned.get(0).floats()).startsWith(100f, 98f);
            assertThat(pinned.get(1).floats()).startsWith(-100f, -96f);
        }
    }

    @Test
    void shapesThatTheGraphGetsWrongAreAnsweredAllTheSame() {
        try (BackendModel model = fixtures().load("unknown_rank")) {
            List<Tensor> inputs =
                    List.of(floats("X", Shape.of(1, 4), 1, 2, 3, 4), longs("SHAPE", Shape.of(3), 2, 1, 2));
            List<Answer> answers = run(model, inputs);
            assertThat(answers.get(0).shape()).isEqualTo(Shape.of(2, 1, 2));
            assertThat(answers.get(0).floats()).containsExactly(1f, 2f, 3f, 4f);
        }
    }

    @Test
    void aResultOutlivesItsModel() {
        List<Tensor> outputs;
        BackendModel model = fixtures().load("no_inputs");
        ((OnnxModel) model).stopPinning();
        try (ModelInstance invocation = model.newInstance()) {
            outputs = invocation.run(List.of(), List.of("Y"));
        }
        model.close();
        Tensor y = outputs.get(0);
        assertThat(y.buffer().getFloat(0)).isEqualTo(1f);
        assertThat(y.buffer().getFloat(8)).isEqualTo(3f);
        y.close();
    }

    @ParameterizedTest
    @CsvSource({"zipmap_int64,'0,1,2'", "zipmap_string,'red,green,blue'"})
    void mapsFromClassToScoreBecomeRowsOfScores(String fixture, String labels) {
        try (BackendModel model = fixtures().load(fixture)) {
            List<Answer> answers = run(model, List.of(floats("X", Shape.of(2, 4), 1, 0, 0, 0, 0, 1, 0, 0)));
            assertThat(answers.get(1).shape()).isEqualTo(Shape.of(2, 3));
            assertThat(model.config().labels().get("probabilities")).containsExactly(labels.split(","));
            List<Float> scores = answers.get(1).floats();
            // The label is the class with the highest score, in every row.
            for (int row = 0; row < 2; row++) {
                List<Float> one = scores.subList(3 * row, 3 * row + 3);
                String best = labels.split(",")[one.indexOf(java.util.Collections.max(one))];
                String label = fixture.equals("zipmap_string")
                        ? answers.get(0).strings().get(row)
                        : Long.toString(answers.get(0).longs().get(row));
                assertThat(best).isEqualTo(label);
            }
        }
    }

    @Test
    void whatTheGraphRefusesIsTheClientsFault() {
        try (BackendModel model = fixtures().load("gather")) {
            assertThat(run(model, List.of(longs("INDEX", Shape.of(1, 2), 3, -4)))
                            .get(0)
                            .floats())
                    .containsExactly(40f, 10f);
            assertRefused(model, longs("INDEX", Shape.of(1, 1), 4), "Gather");
            assertRefused(model, longs("INDEX", Shape.of(1), 1), "expected: [-1,-1]");
            assertRefused(model, floats("INDEX", Shape.of(1, 1), 1), "expected: INT64");
            assertRefused(model, longs("INDX", Shape.of(1, 1), 1), "unexpected input 'INDX'");
        }
        try (BackendModel model = fixtures().load("pair")) {
            assertThatThrownBy(() -> run(model, List.of(floats("A", Shape.of(1, 1), 1))))
                    .isInstanceOfSatisfying(
                            ServingException.class,
                            e -> assertThat(e.getMessage()).contains("'B'", "is missing"));
        }
    }

    @Test
    void aResultTooLargeForTheMachineIsRefusedAndTheModelLivesOn() {
        try (BackendModel model = fixtures().load("fill")) {
            assertThatThrownBy(() -> run(model, List.of(longs("SHAPE", Shape.of(2), 1L << 22, 1L << 22))))
                    .isInstanceOfSatisfying(
                            ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.RESOURCE_EXHAUSTED));
            assertThat(run(model, List.of(longs("SHAPE", Shape.of(2), 1, 2)))
                            .get(0)
                            .floats())
                    .containsExactly(0f, 0f);
        }
    }

    @Test
    void aLongRunIsCancelledWithinASecondAndTheNextOneWorks() throws Exception {
        ExecutorService pool = Threads.single("cancel");
        try (BackendModel model = fixtures().load("loop");
                ModelInstance invocation = model.newInstance()) {
            invocation.cancel(); // no run in progress: nothing happens
            Future<List<Answer>> run = pool.submit(
                    () -> run(invocation, List.of(longs("ITERATIONS", Shape.of(1), 1L << 40)), List.of("COUNT")));
            Clock clock = Clock.system();
            long start = clock.nanos();
            assertThatThrownBy(() -> run.get(200, TimeUnit.MILLISECONDS))
                    .isInstanceOf(java.util.concurrent.TimeoutException.class);
            long cancelled = clock.nanos();
            assertThat(cancelled).isGreaterThan(start);
            invocation.cancel();
            assertThatThrownBy(() -> run.get(10, TimeUnit.SECONDS))
                    .cause()
                    .isInstanceOfSatisfying(
                            ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.CANCELLED));
            assertThat(clock.nanos() - cancelled).isLessThan(1_000_000_000L);
            assertThat(run(invocation, List.of(longs("ITERATIONS", Shape.of(1), 3)), List.of("COUNT"))
                            .get(0)
                            .longs())
                    .containsExactly(3L);
        } finally {
            pool.shutdown();
        }
    }

    @Test
    void manyThreadsGetTheirOwnAnswers() throws Exception {
        ExecutorService pool = Threads.pool("many", 8);
        try (BackendModel model = fixtures().load("add_sub_int32")) {
            List<Future<Integer>> wrong = new ArrayList<>();
            for (int t = 0; t < 8; t++) {
                int thread = t;
                wrong.add(pool.submit(() -> wrongAnswers(model, thread)));
            }
            for (Future<Integer> w : wrong) {
                assertThat(w.get(60, TimeUnit.SECONDS)).isZero();
            }
        } finally {
            pool.shutdown();
        }
    }

    private static int wrongAnswers(BackendModel model, int thread) {
        int wrong = 0;
        try (ModelInstance invocation = model.newInstance()) {
            for (int i = 0; i < 500; i++) {
                int rows = 1 + i % 3;
                try (Tensor a = Tensor.allocate("INPUT0", DataType.INT32, Shape.of(rows, 16));
                        Tensor b = Tensor.allocate("INPUT1", DataType.INT32, Shape.of(rows, 16))) {
                    for (int e = 0; e < rows * 16; e++) {
                        a.region().setInt(4 * e, thread * 1_000_000 + i * 100 + e);
                        b.region().setInt(4 * e, e);
                    }
                    List<Tensor> out = invocation.run(List.of(a, b), List.of("OUTPUT0", "OUTPUT1"));
                    for (int e = 0; e < rows * 16; e++) {
                        int base = thread * 1_000_000 + i * 100;
                        if (out.get(0).buffer().getInt(4 * e) != base + 2 * e
                                || out.get(1).buffer().getInt(4 * e) != base) {
                            wrong++;
                        }
                    }
                    Tensor.closeAll(out);
                }
            }
        }
        return wrong;
    }

    @Test
    void unloadingGivesTheMemoryBack() throws Exception {
        Fixtures fixtures = fixtures();
        long after10 = 0;
        for (int i = 0; i < 60; i++) {
            try (BackendModel model = fixtures.load("mlp")) {
                assertThat(run(model, List.of(floats("X", Shape.of(8, 512), new float[8 * 512])))
                                .get(0)
                                .shape())
                        .isEqualTo(Shape.of(8, 16));
            }
            if (i == 9) {
                after10 = residentKib();
            }
        }
        // The weights alone are 25 MB: fifty leaked copies would be over a gigabyte.
        assertThat(residentKib() - after10).isLessThan(256 * 1024);
    }

    private static long residentKib() throws Exception {
        return Files.readAllLines(Path.of("/proc/self/status")).stream()
                .filter(line -> line.startsWith("VmRSS"))
                .mapToLong(line -> Long.parseLong(line.replaceAll("\\D", "")))
                .findFirst()
                .orElseThrow();
    }
}
