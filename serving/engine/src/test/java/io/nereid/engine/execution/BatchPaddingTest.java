// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.execution;

import static io.nereid.engine.CountedTensors.ints;
import static io.nereid.engine.CountedTensors.texts;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.backend.ModelTraits;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.engine.CountedTensors;
import io.nereid.engine.FakeJob;
import io.nereid.engine.FakeModel;
import io.nereid.engine.request.RequestValidator;
import io.nereid.engine.statistics.ModelStatistics;
import io.nereid.scheduling.BatchCloseReason;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.BatchInput;
import io.nereid.spi.config.BatchInput.Kind;
import io.nereid.spi.config.BatchOutput;
import io.nereid.spi.config.BatchSizePolicy;
import io.nereid.spi.config.DynamicBatching;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.function.BiFunction;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Padding of batches to an allowed size, and of requests with different shapes. */
class BatchPaddingTest {
    private static final ServableId ID = new ServableId("m", 1);
    private static final BatchSizePolicy PADDED = new BatchSizePolicy(List.of(), true, 0, 0);

    private final CountedTensors tensors = new CountedTensors();
    private final ModelStatistics statistics = new ModelStatistics(ID);
    /** The model's inputs, as text. */
    private final List<String> fed = new ArrayList<>();

    @AfterEach
    void nothingLeaks() {
        tensors.assertAllFreed();
    }

    private static BatchSizePolicy allowed(Integer... sizes) {
        return new BatchSizePolicy(List.of(sizes), false, 0, 0);
    }

    private static ModelConfig config(BatchSizePolicy fit, List<TensorSpec> inputs, List<TensorSpec> outputs) {
        return ModelConfig.builder("m")
                .maxBatchSize(8)
                .inputs(inputs)
                .outputs(outputs)
                .batching(DynamicBatching.EAGER.withBatchSizePolicy(fit))
                .instances(1)
                .build();
    }

    private static ModelConfig model(BatchSizePolicy fit, long... dims) {
        return config(fit, List.of(spec("in", Shape.of(dims))), List.of(spec("out", Shape.of(dims))));
    }

    private static TensorSpec spec(String name, Shape shape) {
        return new TensorSpec(name, DataType.INT32, shape);
    }

    private BatchExecution execution(ModelConfig config) {
        return execution(config, (in, out) -> {
            note(in);
            return FakeModel.identity(in, out);
        });
    }

    private BatchExecution execution(
            ModelConfig config, BiFunction<List<Tensor>, List<String>, List<Tensor>> function) {
        return new BatchExecution(new FakeModel(config, ModelTraits.DEFAULT, function), ID, statistics, Clock.system());
    }

    private void note(List<Tensor> in) {
        for (Tensor t : in) {
            fed.add(t.shape() + " "
                    + (t.dataType() == DataType.BYTES ? texts(t).toString() : Arrays.toString(ints(t))));
        }
    }

    private FakeJob job(Shape shape, int... values) {
        return new FakeJob((int) shape.dim(0), List.of(tensors.ints("in", shape, values)));
    }

    private static void run(BatchExecution execution, InferenceJob... jobs) {
        execution.run(0, List.of(jobs), BatchCloseReason.NO_MORE);
    }

    private static void expect(FakeJob job, Shape shape, int... values) {
        job.answered(out -> {
            assertThat(out.get(0).shape()).isEqualTo(shape);
            assertThat(ints(out.get(0))).containsExactly(values);
        });
    }

    // allowed sizes

    @Test
    void allowedBatchSizesNoPaddingNeeded() {
        BatchExecution execution = execution(model(allowed(2, 4), 1));
        FakeJob a = job(Shape.of(1, 1), 1);
        FakeJob b = job(Shape.of(1, 1), 2);
        run(execution, a, b);
        assertThat(fed).containsExactly("[2,1] [1, 2]");
        expect(a, Shape.of(1, 1), 1);
        expect(b, Shape.of(1, 1), 2);
        assertThat(statistics.batches.padding.sum()).isZero();
    }

    @Test
    void allowedBatchSizesRequirePadding() {
        BatchExecution execution = execution(model(allowed(2, 6, 8), 2));
        FakeJob a = job(Shape.of(1, 2), 1, 2);
        FakeJob b = job(Shape.of(2, 2), 3, 4, 5, 6);
        run(execution, a, b);
        assertThat(fed)
                .as("copies of the first row of the last request")
                .containsExactly("[6,2] [1, 2, 3, 4, 5, 6, 3, 4, 3, 4, 3, 4]");
        expect(a, Shape.of(1, 2), 1, 2);
        expect(b, Shape.of(2, 2), 3, 4, 5, 6);
        assertThat(statistics.batches.padding.sum()).isEqualTo(3);
        List<String> sizes = new ArrayList<>();
        statistics.batches.forEach((size, rows) -> sizes.add(rows + ": " + size.runs.sum()));
        assertThat(sizes).as("the size that ran counts").containsExactly("6: 1");
    }

    @Test
    void aSingletonOfAnAllowedSizePassesItsTensorsThemselves() {
        List<Tensor> seen = new ArrayList<>();
        BatchExecution execution = execution(model(new BatchSizePolicy(List.of(1, 8), true, 0, 0), 1), (in, out) -> {
            seen.addAll(in);
            return FakeModel.identity(in, out);
        });
        FakeJob a = job(Shape.of(1, 1), 7);
        Tensor given = a.request().inputs().get(0);
        run(execution, a);
        assertThat(seen).hasSize(1).first().isSameAs(given);
        expect(a, Shape.of(1, 1), 7);
    }

    @Test
    void aSingletonOfAnotherSizeIsFilledUp() {
        BatchExecution execution = execution(model(allowed(4), 1));
        FakeJob a = job(Shape.of(3, 1), 7, 8, 9);
        run(execution, a);
        assertThat(fed).containsExactly("[4,1] [7, 8, 9, 7]");
        expect(a, Shape.of(3, 1), 7, 8, 9);
    }

    @Test
    void whatIsLargerThanAllAllowedSizesRunsAsItIs() {
        BatchExecution execution = execution(model(allowed(2), 1));
        FakeJob a = job(Shape.of(3, 1), 7, 8, 9);
        run(execution, a);
        assertThat(fed).containsExactly("[3,1] [7, 8, 9]");
        expect(a, Shape.of(3, 1), 7, 8, 9);
    }

    @Test
    void noRowsAtAllAreNotFilledUpAndALastRequestWithoutRowsIsPassedOver() {
        BatchExecution execution = execution(model(allowed(4), 1));
        FakeJob none = job(Shape.of(0, 1));
        run(execution, none);
        FakeJob some = job(Shape.of(2, 1), 5, 6);
        FakeJob last = job(Shape.of(0, 1));
        run(execution, some, last);
        assertThat(fed).containsExactly("[0,1] []", "[4,1] [5, 6, 5, 5]");
        expect(none, Shape.of(0, 1));
        expect(some, Shape.of(2, 1), 5, 6);
        expect(last, Shape.of(0, 1));
    }

    @Test
    void textsAreFilledUpWithARowToo() {
        ModelConfig config = config(
                allowed(4),
                List.of(new TensorSpec("in", DataType.BYTES, Shape.of(2))),
                List.of(new TensorSpec("out", DataType.BYTES, Shape.of(2))));
        BatchExecution execution = execution(config);
        FakeJob a = new FakeJob(1, List.of(tensors.texts("in", Shape.of(1, 2), "a", "bb")));
        FakeJob b = new FakeJob(1, List.of(tensors.texts("in", Shape.of(1, 2), "", "dddd")));
        run(execution, a, b);
        assertThat(fed).containsExactly("[4,2] [a, bb, , dddd, , dddd, , dddd]");
        a.answered(out -> assertThat(texts(out.get(0))).containsExactly("a", "bb"));
        b.answered(out -> assertThat(texts(out.get(0))).containsExactly("", "dddd"));
    }

    @Test
    void subsetOutputTensorsOfAFilledBatch() {
        ModelConfig config = config(
                allowed(4),
                List.of(spec("a", Shape.of(1)), spec("b", Shape.of(1))),
                List.of(spec("x", Shape.of(1)), spec("y", Shape.of(1))));
        BatchExecution execution = execution(config);
        FakeJob one = new FakeJob(
                1, List.of(tensors.ints("a", Shape.of(1, 1), 1), tensors.ints("b", Shape.of(1, 1), 2)), "y");
        FakeJob two = new FakeJob(
                1, List.of(tensors.ints("a", Shape.of(1, 1), 3), tensors.ints("b", Shape.of(1, 1), 4)), "y", "x");
        run(execution, one, two);
        one.answered(out -> {
            assertThat(out).extracting(Tensor::name).containsExactly("y");
            assertThat(ints(out.get(0))).containsExactly(2);
        });
        two.answered(out -> {
            assertThat(out).extracting(Tensor::name).containsExactly("y", "x");
            assertThat(ints(out.get(1))).containsExactly(3);
        });
    }

    @Test
    void outputsMustHaveTheRowsOfTheFilledBatch() {
        BatchExecution execution =
                execution(model(allowed(4), 1), (in, out) -> List.of(tensors.ints("out", Shape.of(2, 1), 1, 2)));
        FakeJob a = job(Shape.of(1, 1), 7);
        FakeJob b = job(Shape.of(1, 1), 8);
        run(execution, a, b);
        assertThat(a.failed().code()).isEqualTo(ErrorCode.INTERNAL);
        assertThat(b.failed()).hasMessageContaining("for a batch of 4 rows (expected first dimension 4)");
        assertThat(statistics.batches.padding.sum()).isZero();
    }

    @Test
    void batchHandlesSplitErrorOfTextsThatEndTooEarly() {
        ModelConfig config = config(
                allowed(4),
                List.of(new TensorSpec("in", DataType.BYTES, Shape.of(1))),
                List.of(new TensorSpec("out", DataType.BYTES, Shape.of(1))));
        BatchExecution execution =
                execution(config, (in, out) -> List.of(tensors.texts("out", Shape.of(4, 1), "a", "b", "c")));
        FakeJob a = new FakeJob(2, List.of(tensors.texts("in", Shape.of(2, 1), "a", "b")));
        FakeJob b = new FakeJob(1, List.of(tensors.texts("in", Shape.of(1, 1), "c")));
        run(execution, a, b);
        assertThat(a.failed().code()).isEqualTo(ErrorCode.INTERNAL);
        assertThat(b.failed().code()).isEqualTo(ErrorCode.INTERNAL);
    }

    @Test
    void raggedInputsBatchInputsAndScatteredOutputsAreFilledUpAsByOneMoreRequest() {
        ModelConfig config = config(
                        allowed(4),
                        List.of(new TensorSpec("in", DataType.INT32, Shape.of(-1), false, true, null)),
                        List.of(spec("out", Shape.of(-1))))
                .toBuilder()
                .batchInputs(List.of(
                        new BatchInput(Kind.ELEMENT_COUNT, List.of("counts"), DataType.INT32, "in"),
                        new BatchInput(Kind.ITEM_SHAPE, List.of("shapes"), DataType.INT32, "in")))
                .batchOutputs(List.of(new BatchOutput(List.of("out"), "in")))
                .build();
        BatchExecution execution = execution(config, (in, out) -> {
            note(in);
            return List.of(in.get(0).retainAs("out", in.get(0).shape()));
        });
        FakeJob a = job(Shape.of(1, 1), 1);
        FakeJob b = job(Shape.of(1, 3), 2, 3, 4);
        run(execution, a, b);
        assertThat(fed).containsExactly("[10] [1, 2, 3, 4, 2, 3, 4, 2, 3, 4]", "[3] [1, 3, 6]", "[4,1] [1, 3, 3, 3]");
        expect(a, Shape.of(1, 1), 1);
        expect(b, Shape.of(1, 3), 2, 3, 4);
    }

    // variable length

    @Test
    void batchingWithPadding() {
        BatchExecution execution = execution(model(PADDED, -1, -1));
        FakeJob a = job(Shape.of(1, 2, 1), 1, 2);
        FakeJob b = job(Shape.of(2, 1, 3), 3, 4, 5, 6, 7, 8);
        assertThat(execution.joinable(a, b)).isTrue();
        run(execution, a, b);
        assertThat(fed)
                .as("each padded with its own first element")
                .containsExactly("[3,2,3] [1, 1, 1, 2, 1, 1, 3, 4, 5, 3, 3, 3, 6, 7, 8, 3, 3, 3]");
        expect(a, Shape.of(1, 2, 3), 1, 1, 1, 2, 1, 1);
        expect(b, Shape.of(2, 2, 3), 3, 4, 5, 3, 3, 3, 6, 7, 8, 3, 3, 3);
    }

    @Test
    void batchingWithPaddingAndAllowedSizes() {
        BatchExecution execution = execution(model(new BatchSizePolicy(List.of(4), true, 0, 0), -1));
        FakeJob a = job(Shape.of(1, 3), 1, 2, 3);
        FakeJob b = job(Shape.of(2, 2), 4, 5, 6, 7);
        run(execution, a, b);
        assertThat(fed).containsExactly("[4,3] [1, 2, 3, 4, 5, 4, 6, 7, 4, 4, 5, 4]");
        expect(a, Shape.of(1, 3), 1, 2, 3);
        expect(b, Shape.of(2, 3), 4, 5, 4, 6, 7, 4);
    }

    @Test
    void tensorsOfOneToSixDimensionsArePaddedAndOthersMustAgree() {
        for (int rank = 1; rank <= 7; rank++) {
            long[] dims = new long[rank - 1];
            Arrays.fill(dims, -1);
            BatchExecution execution = execution(model(PADDED, dims));
            long[] small = new long[rank];
            Arrays.fill(small, 1);
            long[] large = small.clone();
            large[rank - 1] = 2;
            FakeJob a = job(Shape.of(small), 5);
            FakeJob b = job(Shape.of(large), 6, 7);
            assertThat(execution.joinable(a, b)).as("rank %s", rank).isEqualTo(rank <= 6);
            if (rank > 6) {
                a.request().release();
                b.request().release();
                continue;
            }
            run(execution, a, b);
            expect(a, rank == 1 ? Shape.of(1) : Shape.of(large), rank == 1 ? new int[] {5} : new int[] {5, 5});
            expect(b, Shape.of(large), 6, 7);
        }
    }

    @Test
    void tensorsOfDifferentRanksDoNotShareABatch() {
        ModelConfig config = config(
                PADDED,
                List.of(new TensorSpec("in", DataType.INT32, Shape.SCALAR, false, false, null, true)),
                List.of(new TensorSpec("out", DataType.INT32, Shape.SCALAR, false, false, null, true)));
        BatchExecution execution = execution(config);
        FakeJob a = job(Shape.of(1, 1), 5);
        FakeJob b = job(Shape.of(1, 1, 1), 5);
        FakeJob c = job(Shape.of(1, 2), 6, 7);
        assertThat(execution.joinable(a, b)).isFalse();
        assertThat(execution.joinable(a, c)).as("the shape is unknown").isTrue();
        run(execution, a, c);
        run(execution, b);
        expect(a, Shape.of(1, 2), 5, 5);
        expect(b, Shape.of(1, 1, 1), 5);
        expect(c, Shape.of(1, 2), 6, 7);
    }

    @Test
    void unequalTensorShapesWithPaddingTurnedOffDoNotShareABatch() {
        BatchExecution execution = execution(model(allowed(8), -1));
        FakeJob a = job(Shape.of(1, 1), 1);
        FakeJob b = job(Shape.of(1, 2), 1, 2);
        assertThat(execution.joinable(a, b)).isFalse();
        a.request().release();
        b.request().release();
    }

    @Test
    void emptyTensorsArePaddedWithZeros() {
        BatchExecution execution = execution(model(PADDED, -1));
        FakeJob a = job(Shape.of(2, 0));
        FakeJob b = job(Shape.of(1, 2), 3, 4);
        run(execution, a, b);
        assertThat(fed).containsExactly("[3,2] [0, 0, 0, 0, 3, 4]");
        expect(a, Shape.of(2, 2), 0, 0, 0, 0);
        expect(b, Shape.of(1, 2), 3, 4);
    }

    @Test
    void textsArePaddedWithTheirFirstOrWithEmptyOnes() {
        ModelConfig config = config(
                new BatchSizePolicy(List.of(8), true, 0, 0),
                List.of(new TensorSpec("in", DataType.BYTES, Shape.of(-1))),
                List.of(new TensorSpec("out", DataType.BYTES, Shape.of(-1))));
        BatchExecution execution = execution(config);
        FakeJob none = new FakeJob(1, List.of(tensors.texts("in", Shape.of(1, 0))));
        FakeJob wide = new FakeJob(1, List.of(tensors.texts("in", Shape.of(1, 3), "x", "", "zz")));
        FakeJob two = new FakeJob(2, List.of(tensors.texts("in", Shape.of(2, 2), "long", "b", "", "d")));
        run(execution, none, wide, two);
        assertThat(fed)
                .containsExactly("[8,3] [, , , x, , zz, long, b, long, , d, long, long, b, long, long, b, long, long,"
                        + " b, long, long, b, long]");
        none.answered(out -> assertThat(texts(out.get(0))).containsExactly("", "", ""));
        wide.answered(out -> assertThat(texts(out.get(0))).containsExactly("x", "", "zz"));
        two.answered(out -> assertThat(texts(out.get(0))).containsExactly("long", "b", "long", "", "d", "long"));
    }

    @Test
    void theModelSeesPaddedTensorsInItsOwnShape() {
        ModelConfig config = config(
                PADDED,
                List.of(new TensorSpec("in", DataType.INT32, Shape.of(-1), false, false, Shape.of(-1, 1))),
                List.of(new TensorSpec("out", DataType.INT32, Shape.of(-1), false, false, Shape.of(-1, 1))));
        BatchExecution execution = execution(config);
        FakeJob a = job(Shape.of(1, 1), 1);
        FakeJob b = job(Shape.of(1, 2), 2, 3);
        run(execution, a, b);
        assertThat(fed).containsExactly("[2,2,1] [1, 1, 2, 3]");
        expect(a, Shape.of(1, 2), 1, 1);
        expect(b, Shape.of(1, 2), 2, 3);
    }

    @Test
    void requestsThatWouldBeTooLargeTogetherRunAlone() {
        int side = 46_342;
        BatchExecution execution = execution(model(PADDED, -1, -1), (in, out) -> {
            fed.add(in.get(0).shape().toString());
            return FakeModel.identity(in, out);
        });
        FakeJob a = job(Shape.of(1, 1, side), new int[side]);
        FakeJob b = job(Shape.of(1, side, 1), new int[side]);
        run(execution, a, b);
        assertThat(fed).containsExactly("[1,1,46342]", "[1,46342,1]");
        a.answered(out -> assertThat(out.get(0).shape()).isEqualTo(Shape.of(1, 1, side)));
        b.answered(out -> assertThat(out.get(0).shape()).isEqualTo(Shape.of(1, side, 1)));
    }

    @Test
    void oneRequestsBadInputDoesNotSpoilTheOthersOfAPaddedBatch() {
        BatchExecution execution = execution(model(new BatchSizePolicy(List.of(2, 4), true, 0, 0), -1), (in, out) -> {
            for (int v : ints(in.get(0))) {
                if (v < 0) {
                    throw ServingException.invalidArgument("negative");
                }
            }
            return FakeModel.identity(in, out);
        });
        FakeJob good = job(Shape.of(1, 1), 1);
        FakeJob bad = job(Shape.of(1, 2), 1, -2);
        run(execution, good, bad);
        expect(good, Shape.of(1, 1), 1);
        assertThat(bad.failed().code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
    }

    @Test
    void aModelThatTakesRequestsGetsThemAsTheyAre() {
        List<String> seen = new ArrayList<>();
        ModelConfig config = model(new BatchSizePolicy(List.of(8), true, 0, 0), -1);
        FakeModel model = new FakeModel(
                config,
                requests -> requests.forEach(r -> {
                    Tensor in = r.request().inputs().get(0);
                    seen.add(in.shape().toString());
                    r.complete(List.of(in.retainAs("out", in.shape())), Map.of());
                }));
        BatchExecution execution = new BatchExecution(model, ID, statistics, Clock.system());
        FakeJob a = job(Shape.of(1, 1), 1);
        FakeJob b = job(Shape.of(1, 2), 2, 3);
        assertThat(execution.joinable(a, b)).isFalse();
        run(execution, a);
        run(execution, b);
        assertThat(seen).containsExactly("[1,1]", "[1,2]");
        expect(a, Shape.of(1, 1), 1);
        expect(b, Shape.of(1, 2), 2, 3);
    }

    // validation before the queue

    private static RequestValidator checks(BatchSizePolicy fit) {
        return new RequestValidator(
                new ModelMetadata(
                        ID,
                        "p",
                        List.of(spec("in", Shape.of(-1, 1)), spec("other", Shape.of(-1, 1))),
                        List.of(spec("out", Shape.of(-1, 1))),
                        4,
                        Map.of()),
                fit);
    }

    private int rows(BatchSizePolicy fit, int rows, int others) {
        List<Tensor> inputs = List.of(
                tensors.ints("in", Shape.of(rows, 1), new int[rows]),
                tensors.ints("other", Shape.of(others, 1), new int[others]));
        try {
            return checks(fit).batchSize(inputs);
        } finally {
            Tensor.closeAll(inputs);
        }
    }

    @Test
    void requestsMayHaveAsManyRowsAsTheyMayBeCutInto() {
        assertThat(rows(new BatchSizePolicy(List.of(), false, 10, 0), 10, 10)).isEqualTo(10);
        assertThatThrownBy(() -> rows(new BatchSizePolicy(List.of(), false, 10, 0), 11, 11))
                .hasMessageStartingWith("Task size 11 is larger than maximum input batch size 10");
        assertThatThrownBy(() -> rows(allowed(4), 5, 5))
                .hasMessageStartingWith("Task size 5 is larger than maximum input batch size 4");
        assertThatThrownBy(() -> rows(BatchSizePolicy.NONE, 5, 5)).hasMessageContaining("batch-size must be <= 4");
    }

    @Test
    void requestWithIncompatibleInputTensorSizes() {
        assertThatThrownBy(() -> rows(allowed(4), 2, 3)).hasMessageContaining("batch size does not match");
    }
}
