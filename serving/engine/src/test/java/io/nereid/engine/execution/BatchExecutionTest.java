// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.execution;

import static io.nereid.engine.CountedTensors.floats;
import static io.nereid.engine.CountedTensors.ints;
import static io.nereid.engine.CountedTensors.texts;
import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.backend.ModelTraits;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.engine.CountedTensors;
import io.nereid.engine.FakeJob;
import io.nereid.engine.FakeModel;
import io.nereid.engine.statistics.ModelStatistics;
import io.nereid.scheduling.BatchCloseReason;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.BatchInput;
import io.nereid.spi.config.BatchInput.Kind;
import io.nereid.spi.config.BatchOutput;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.SequenceBatching;
import io.nereid.spi.config.SequenceBatching.Direct;
import io.nereid.spi.config.SequenceControl;
import io.nereid.spi.config.SequenceStateConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.BiFunction;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class BatchExecutionTest {
    private static final ServableId ID = new ServableId("m", 1);
    private static final ModelTraits PLAIN = ModelTraits.DEFAULT;

    private final CountedTensors tensors = new CountedTensors();
    private final List<String> fed = new ArrayList<>();

    @AfterEach
    void nothingLeaks() {
        tensors.assertAllFreed();
    }

    @Test
    void theModelSeesItsOwnShapeAndTheClientItsOwn() {
        ModelConfig config = batched(
                List.of(spec("in", Shape.of(-1, 4), Shape.of(2, -1, 2))),
                List.of(spec("out", Shape.of(4, -1), Shape.of(-1, 2, 2))));
        BatchExecution execution = execution(config, (in, out) -> {
            note(in);
            long n = in.get(0).shape().dim(2);
            return List.of(in.get(0).retainAs("out", Shape.of(in.get(0).shape().dim(0), n, 2, 2)));
        });
        FakeJob alone = new FakeJob(1, List.of(ints12("in", Shape.of(1, 3, 4))));
        FakeJob a = new FakeJob(1, List.of(ints12("in", Shape.of(1, 3, 4))));
        FakeJob b = new FakeJob(1, List.of(ints12("in", Shape.of(1, 3, 4))));
        run(execution, alone);
        run(execution, a, b);
        assertThat(fed).containsExactly("in INT32[1,2,3,2]", "in INT32[2,2,3,2]");
        for (FakeJob job : List.of(alone, a, b)) {
            job.answered(out -> {
                assertThat(out.get(0).shape()).isEqualTo(Shape.of(1, 4, 3));
                assertThat(ints(out.get(0))).containsExactly(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11);
            });
        }
        execution.close();
    }

    @Test
    void anEmptyReshapeMakesEachRowAScalar() {
        ModelConfig config = batched(
                List.of(spec("in", Shape.of(1), Shape.SCALAR)), List.of(spec("out", Shape.of(1), Shape.SCALAR)));
        BatchExecution execution = execution(config, this::identity);
        FakeJob alone = new FakeJob(2, List.of(tensors.ints("in", Shape.of(2, 1), 1, 2)));
        FakeJob other = new FakeJob(1, List.of(tensors.ints("in", Shape.of(1, 1), 3)));
        FakeJob last = new FakeJob(1, List.of(tensors.ints("in", Shape.of(1, 1), 4)));
        run(execution, alone);
        run(execution, other, last);
        assertThat(fed).containsExactly("in INT32[2]", "in INT32[2]");
        alone.answered(out -> assertThat(out.get(0).shape()).isEqualTo(Shape.of(2, 1)));
        other.answered(out -> assertThat(out.get(0).shape()).isEqualTo(Shape.of(1, 1)));
        last.answered(out -> assertThat(ints(out.get(0))).containsExactly(4));
        execution.close();
    }

    @Test
    void anOutputOfUnknownTypeHasTheTypeThatTheModelGivesIt() {
        TensorSpec unknown = new TensorSpec("out", DataType.FP32, Shape.SCALAR, false, false, null, true);
        TensorSpec known = new TensorSpec("out", DataType.FP32, Shape.of(-1));
        ModelTraits own = ModelTraits.builder().ownOutputs(true).build();
        for (TensorSpec output : List.of(unknown, known)) {
            for (ModelTraits traits : List.of(own, PLAIN)) {
                BatchExecution execution = new BatchExecution(
                        new FakeModel(
                                batched(List.of(new TensorSpec("in", DataType.INT32, Shape.of(-1))), List.of(output)),
                                traits,
                                FakeModel::identity),
                        ID,
                        new ModelStatistics(ID),
                        Clock.system());
                FakeJob alone = new FakeJob(1, List.of(tensors.ints("in", Shape.of(1, 1), 1)));
                FakeJob a = new FakeJob(1, List.of(tensors.ints("in", Shape.of(1, 1), 2)));
                FakeJob b = new FakeJob(1, List.of(tensors.ints("in", Shape.of(1, 1), 3)));
                run(execution, alone);
                run(execution, a, b);
                for (FakeJob job : List.of(alone, a, b)) {
                    if (output == unknown && traits == own) {
                        job.answered(out -> assertThat(out.get(0).dataType()).isEqualTo(DataType.INT32));
                    } else {
                        assertThat(job.failed()).hasMessageContaining("of type INT32 (expected: FP32");
                    }
                }
                execution.close();
            }
        }
    }

    @Test
    void aRaggedInputIsFedFlatWithItsBatchInputs() {
        List<BatchInput> batchInputs = new ArrayList<>();
        for (Kind kind : Kind.values()) {
            DataType type = kind == Kind.ACCUMULATED_ELEMENT_COUNT ? DataType.FP32 : DataType.INT32;
            batchInputs.add(new BatchInput(kind, List.of(kind.name()), type, "in"));
        }
        ModelConfig config = batched(
                        List.of(new TensorSpec("in", DataType.INT32, Shape.of(-1), false, true, null)),
                        List.of(new TensorSpec("out", DataType.INT32, Shape.of(1))))
                .toBuilder()
                .batchInputs(batchInputs)
                .build();
        Map<String, String> seen = new TreeMap<>();
        BatchExecution execution = execution(config, (in, out) -> {
            note(in);
            for (Tensor t : in) {
                seen.put(t.name(), t.shape() + " " + text(t));
            }
            return List.of(tensors.ints("out", Shape.of(2, 1), 7, 8));
        });
        FakeJob a = new FakeJob(1, List.of(tensors.ints("in", Shape.of(1, 2), 1, 2)));
        FakeJob b = new FakeJob(1, List.of(tensors.ints("in", Shape.of(1, 3), 3, 4, 5)));
        assertThat(execution.joinable(a, b)).as("ragged inputs share a batch").isTrue();
        run(execution, a, b);
        assertThat(seen)
                .containsEntry("in", "[5] 1 2 3 4 5")
                .containsEntry("ELEMENT_COUNT", "[2] 2 3")
                .containsEntry("ACCUMULATED_ELEMENT_COUNT", "[2] 2.0 5.0")
                .containsEntry("ACCUMULATED_ELEMENT_COUNT_WITH_ZERO", "[3] 0 2 5")
                .containsEntry("MAX_ELEMENT_COUNT_AS_SHAPE", "[3] 0 0 0")
                .containsEntry("ITEM_SHAPE", "[2,1] 2 3")
                .containsEntry("ITEM_SHAPE_FLATTEN", "[2] 2 3");
        a.answered(out -> assertThat(ints(out.get(0))).containsExactly(7));
        b.answered(out -> assertThat(ints(out.get(0))).containsExactly(8));
        execution.close();
    }

    @Test
    void aRaggedRequestAloneIsFlatToo() {
        ModelConfig config = batched(
                List.of(new TensorSpec("in", DataType.INT32, Shape.of(-1), false, true, null)),
                List.of(new TensorSpec("out", DataType.INT32, Shape.of(1))));
        BatchExecution execution = execution(config, (in, out) -> {
            note(in);
            return List.of(tensors.ints("out", Shape.of(1, 1), 7));
        });
        FakeJob a = new FakeJob(1, List.of(tensors.ints("in", Shape.of(1, 2), 1, 2)));
        run(execution, a);
        assertThat(fed).containsExactly("in INT32[2]");
        a.answered(out -> assertThat(ints(out.get(0))).containsExactly(7));
        execution.close();
    }

    @Test
    void aScatteredOutputIsCutByTheShapeOfItsSource() {
        ModelConfig config = batched(
                        List.of(new TensorSpec("in", DataType.INT32, Shape.of(-1), false, true, null)),
                        List.of(new TensorSpec("out", DataType.INT32, Shape.of(-1))))
                .toBuilder()
                .batchOutputs(List.of(new BatchOutput(List.of("out"), "in")))
                .build();
        BatchExecution execution = execution(
                config, (in, out) -> List.of(in.get(0).retainAs("out", in.get(0).shape())));
        FakeJob alone = new FakeJob(1, List.of(tensors.ints("in", Shape.of(1, 2), 8, 9)));
        FakeJob a = new FakeJob(1, List.of(tensors.ints("in", Shape.of(1, 1), 1)));
        FakeJob b = new FakeJob(1, List.of(tensors.ints("in", Shape.of(1, 3), 2, 3, 4)));
        run(execution, alone);
        run(execution, a, b);
        alone.answered(out -> assertThat(out.get(0).shape() + text(out.get(0))).isEqualTo("[1,2]8 9"));
        a.answered(out -> assertThat(out.get(0).shape() + text(out.get(0))).isEqualTo("[1,1]1"));
        b.answered(out -> assertThat(out.get(0).shape() + text(out.get(0))).isEqualTo("[1,3]2 3 4"));
        execution.close();
    }

    @Test
    void aScatteredOutputOfTheWrongLengthIsTheModelsFault() {
        ModelConfig config = batched(
                        List.of(new TensorSpec("in", DataType.INT32, Shape.of(-1), false, true, null)),
                        List.of(new TensorSpec("out", DataType.INT32, Shape.of(-1))))
                .toBuilder()
                .batchOutputs(List.of(new BatchOutput(List.of("out"), "in")))
                .build();
        BatchExecution execution =
                execution(config, (in, out) -> List.of(tensors.ints("out", Shape.of(5), 1, 2, 3, 4, 5)));
        FakeJob a = new FakeJob(1, List.of(tensors.ints("in", Shape.of(1, 1), 1)));
        FakeJob b = new FakeJob(1, List.of(tensors.ints("in", Shape.of(1, 3), 2, 3, 4)));
        run(execution, a, b);
        assertThat(a.failed())
                .hasMessageStartingWith("model 'm' returned output 'out' of shape [5] (expected: exactly as many");
        assertThat(b.failed().code()).isEqualTo(ErrorCode.INTERNAL);
        execution.close();
    }

    @Test
    void onlyInputsOfOpenSizeAreComparedAndOptionalOnesMustBeTheSame() {
        ModelConfig config = batched(
                List.of(
                        new TensorSpec("fixed", DataType.INT32, Shape.of(2)),
                        new TensorSpec("open", DataType.INT32, Shape.of(-1)),
                        new TensorSpec("ragged", DataType.INT32, Shape.of(-1), false, true, null),
                        new TensorSpec("extra", DataType.INT32, Shape.of(1), true),
                        new TensorSpec("other", DataType.INT32, Shape.of(1), true)),
                List.of(new TensorSpec("out", DataType.INT32, Shape.of(1))));
        BatchExecution execution = execution(config, this::identity);
        List<FakeJob> jobs = new ArrayList<>();
        FakeJob base = job(jobs, 1, "open", 2, "ragged", 2);
        assertThat(execution.joinable(base, job(jobs, 3, "open", 2, "ragged", 3)))
                .isTrue();
        assertThat(execution.joinable(base, job(jobs, 1, "open", 3, "ragged", 2)))
                .isFalse();
        FakeJob withExtra = job(jobs, 1, "open", 2, "ragged", 2, "extra", 1);
        assertThat(execution.joinable(base, withExtra)).isFalse();
        assertThat(execution.joinable(withExtra, job(jobs, 1, "open", 2, "ragged", 9, "extra", 1)))
                .isTrue();
        assertThat(execution.joinable(withExtra, job(jobs, 1, "open", 2, "ragged", 2, "other", 1)))
                .isFalse();
        jobs.forEach(j -> j.request().release());
    }

    @Test
    void whatTheServerAddsToARequestPassesThroughAndStatesAreGivenOnlyWhenAskedFor() {
        ModelConfig config = batched(
                        List.of(spec("in", Shape.of(2), Shape.of(2, 1))),
                        List.of(new TensorSpec("out", DataType.INT32, Shape.of(2))))
                .toBuilder()
                .sequence(new SequenceBatching(
                        new Direct(Duration.ZERO, 0),
                        Duration.ofSeconds(1),
                        List.of(new SequenceControl("START", SequenceControl.Kind.START, DataType.INT32, 0, 1)),
                        List.of(new SequenceStateConfig("s_in", "s_out", DataType.INT32, Shape.of(-1), null, false)),
                        false))
                .build();
        BatchExecution execution = execution(config, (in, out) -> {
            note(in);
            long rows = in.get(0).shape().dim(0);
            List<Tensor> answer = new ArrayList<>();
            for (String name : out) {
                answer.add(
                        name.equals("out")
                                ? in.get(0).retainAs(name, Shape.of(rows, 2))
                                : in.get(2).retainAs(name, in.get(2).shape()));
            }
            return answer;
        });
        FakeJob a = sequenced(1, "out", "s_out");
        FakeJob b = sequenced(1, "out", "s_out");
        FakeJob longer = sequenced(2, "out", "s_out");
        assertThat(execution.joinable(a, b)).isTrue();
        assertThat(execution.joinable(a, longer)).as("states of other sizes").isFalse();
        longer.request().release();
        run(execution, a, b);
        FakeJob without = sequenced(1);
        run(execution, without);
        assertThat(fed)
                .containsExactly(
                        "in INT32[2,2,1], START INT32[2,1], s_in INT32[2,1]",
                        "in INT32[1,2,1], START INT32[1,1], s_in INT32[1,1]");
        a.answered(out -> assertThat(out).extracting(Tensor::name).containsExactly("out", "s_out"));
        b.answered(out -> assertThat(out.get(1).shape() + text(out.get(1))).isEqualTo("[1,1]0"));
        without.answered(out -> assertThat(out).extracting(Tensor::name).containsExactly("out"));
        execution.close();
    }

    @Test
    void outputsThatDifferFromTheConfigurationAreInternalErrors() {
        ModelConfig config = batched(
                List.of(new TensorSpec("in", DataType.INT32, Shape.of(1))),
                List.of(new TensorSpec("out", DataType.INT32, Shape.of(2))));
        assertThat(answering(config, () -> List.of(tensors.floats("out", Shape.of(1, 2), 1, 2))))
                .isEqualTo("model 'm' returned output 'out' of type FP32 (expected: INT32, as configured)");
        assertThat(answering(config, () -> List.of(tensors.ints("out", Shape.of(1, 3), 1, 2, 3))))
                .isEqualTo("model 'm' returned output 'out' of shape [1,3] (expected: [-1,2], as configured)");
        assertThat(answering(config, () -> List.of(tensors.ints("out", Shape.of(2, 2), 1, 2, 3, 4))))
                .isEqualTo("model 'm' returned output 'out' of shape [2,2] for a batch of 1 rows"
                        + " (expected first dimension 1)");
        assertThat(answering(config, () -> List.of(tensors.ints("other", Shape.of(1, 2), 1, 2))))
                .isEqualTo("model 'm' returned output 'other' (expected: 'out')");
        assertThat(answering(config, List::of)).isEqualTo("model 'm' returned 0 outputs (expected: 1: [out])");
    }

    @Test
    void textsAreCutBetweenElements() {
        ModelConfig config = batched(
                List.of(new TensorSpec("in", DataType.BYTES, Shape.of(-1))),
                List.of(new TensorSpec("out", DataType.BYTES, Shape.of(-1))));
        BatchExecution execution = execution(config, this::identity);
        FakeJob a = new FakeJob(1, List.of(tensors.texts("in", Shape.of(1, 2), "a", "")));
        FakeJob b = new FakeJob(1, List.of(tensors.texts("in", Shape.of(1, 2), "ccc", "dd")));
        run(execution, a, b);
        a.answered(out -> assertThat(texts(out.get(0))).containsExactly("a", ""));
        b.answered(out -> assertThat(texts(out.get(0))).containsExactly("ccc", "dd"));
        execution.close();
    }

    @Test
    void eachJobGetsTheOutputsItAskedForInItsOrder() {
        ModelConfig config = batched(
                List.of(
                        new TensorSpec("a", DataType.INT32, Shape.of(1)),
                        new TensorSpec("b", DataType.INT32, Shape.of(1))),
                List.of(
                        new TensorSpec("x", DataType.INT32, Shape.of(1)),
                        new TensorSpec("y", DataType.INT32, Shape.of(1))));
        List<List<String>> asked = new ArrayList<>();
        BatchExecution execution = execution(config, (in, out) -> {
            asked.add(out);
            List<Tensor> answer = new ArrayList<>();
            out.forEach(name -> answer.add(
                    in.get(name.equals("x") ? 0 : 1).retainAs(name, in.get(0).shape())));
            return answer;
        });
        FakeJob one = new FakeJob(1, pair(1, 2), "y");
        FakeJob two = new FakeJob(1, pair(3, 4), "y", "x");
        run(execution, one, two);
        assertThat(asked).containsExactly(List.of("x", "y"));
        one.answered(out -> assertThat(out).extracting(BatchExecutionTest::text).containsExactly("2"));
        two.answered(out -> assertThat(out).extracting(BatchExecutionTest::text).containsExactly("4", "3"));
        execution.close();
    }

    @Test
    void aRetiredInstanceIsClosedAndMadeAnewWhenItRunsAgain() {
        ModelConfig config = batched(
                List.of(new TensorSpec("in", DataType.INT32, Shape.of(1))),
                List.of(new TensorSpec("out", DataType.INT32, Shape.of(1))));
        FakeModel model = new FakeModel(config, PLAIN, this::identity);
        BatchExecution execution = new BatchExecution(model, ID, new ModelStatistics(ID), Clock.system());
        for (int instance : new int[] {0, 3, 3}) {
            FakeJob job = new FakeJob(1, List.of(tensors.ints("in", Shape.of(1, 1), 5)));
            execution.run(instance, List.of(job), BatchCloseReason.SINGLE);
            job.answered(out -> assertThat(text(out.get(0))).isEqualTo("5"));
        }
        assertThat(model.invocations).hasValue(2);
        execution.retired(3);
        execution.retired(7);
        assertThat(model.closedInvocations).hasValue(1);
        execution.close();
        assertThat(model.closedInvocations).hasValue(2);
    }

    @Test
    void requestsOfOneRunHaveOneBatchIdAndThoseOfAnotherAnother() {
        BatchExecution execution = execution(telling("true"), this::identity);
        List<FakeJob> jobs = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            jobs.add(new FakeJob(1, List.of(tensors.ints("in", Shape.of(1, 1), i))));
        }
        run(execution, jobs.get(0), jobs.get(1));
        run(execution, jobs.get(2));
        run(execution, jobs.get(3));
        List<Object> ids = new ArrayList<>();
        for (FakeJob job : jobs) {
            job.answered(out -> assertThat(out).hasSize(1));
            ids.add(job.parameters.get(0).get("batch_id"));
        }
        assertThat(ids.get(0)).isEqualTo(ids.get(1)).asString().hasSize(36);
        assertThat(new HashSet<>(ids)).as("%s", ids).hasSize(3).doesNotContainNull();
        execution.close();
    }

    @Test
    void requestsThatAreRunAgainAloneHaveEachTheirOwnBatchId() {
        BatchExecution execution = execution(telling("true"), (in, out) -> {
            if (in.get(0).shape().dim(0) > 1) {
                throw ServingException.invalidArgument("one of them is bad");
            }
            return identity(in, out);
        });
        FakeJob a = new FakeJob(1, List.of(tensors.ints("in", Shape.of(1, 1), 1)));
        FakeJob b = new FakeJob(1, List.of(tensors.ints("in", Shape.of(1, 1), 2)));
        run(execution, a, b);
        a.answered(out -> assertThat(ints(out.get(0))).containsExactly(1));
        b.answered(out -> assertThat(ints(out.get(0))).containsExactly(2));
        assertThat(a.parameters.get(0).get("batch_id"))
                .isNotNull()
                .isNotEqualTo(b.parameters.get(0).get("batch_id"));
        execution.close();
    }

    @Test
    void theBatchIdIsReportedOnlyIfTheModelEnablesIt() {
        for (ModelConfig config : List.of(telling("false"), telling(null))) {
            BatchExecution execution = execution(config, this::identity);
            FakeJob alone = new FakeJob(1, List.of(tensors.ints("in", Shape.of(1, 1), 1)));
            FakeJob a = new FakeJob(1, List.of(tensors.ints("in", Shape.of(1, 1), 2)));
            FakeJob b = new FakeJob(1, List.of(tensors.ints("in", Shape.of(1, 1), 3)));
            run(execution, alone);
            run(execution, a, b);
            for (FakeJob job : List.of(alone, a, b)) {
                job.answered(out -> assertThat(out).hasSize(1));
                assertThat(job.parameters.get(0)).isEmpty();
            }
            execution.close();
        }
    }

    private static ModelConfig telling(@Nullable String batchIds) {
        ModelConfig config = batched(
                List.of(new TensorSpec("in", DataType.INT32, Shape.of(1))),
                List.of(new TensorSpec("out", DataType.INT32, Shape.of(1))));
        return batchIds == null
                ? config
                : config.toBuilder()
                        .parameters(Map.of(BatchExecution.BATCH_IDS, batchIds))
                        .build();
    }

    private String answering(ModelConfig config, java.util.function.Supplier<List<Tensor>> answer) {
        BatchExecution execution = execution(config, (in, out) -> answer.get());
        FakeJob job = new FakeJob(1, List.of(tensors.ints("in", Shape.of(1, 1), 1)));
        run(execution, job);
        execution.close();
        assertThat(job.failed().code()).isEqualTo(ErrorCode.INTERNAL);
        return job.failed().getMessage();
    }

    private List<Tensor> pair(int a, int b) {
        return List.of(tensors.ints("a", Shape.of(1, 1), a), tensors.ints("b", Shape.of(1, 1), b));
    }

    private FakeJob sequenced(int stateSize, String... outputs) {
        return new FakeJob(
                1,
                List.of(
                        tensors.ints("in", Shape.of(1, 2), 1, 2),
                        tensors.ints("START", Shape.of(1, 1), 1),
                        tensors.ints("s_in", Shape.of(1, stateSize), new int[stateSize])),
                outputs);
    }

    /** A job with the given rows, inputs and columns, and {@code fixed}. */
    private FakeJob job(List<FakeJob> made, int rows, Object... namesAndSizes) {
        List<Tensor> inputs = new ArrayList<>();
        inputs.add(tensors.ints("fixed", Shape.of(rows, 2), new int[rows * 2]));
        for (int i = 0; i < namesAndSizes.length; i += 2) {
            int size = (int) namesAndSizes[i + 1];
            inputs.add(tensors.ints((String) namesAndSizes[i], Shape.of(rows, size), new int[rows * size]));
        }
        FakeJob job = new FakeJob(rows, inputs);
        made.add(job);
        return job;
    }

    private Tensor ints12(String name, Shape shape) {
        return tensors.ints(name, shape, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11);
    }

    private List<Tensor> identity(List<Tensor> in, List<String> out) {
        note(in);
        return FakeModel.identity(in, out);
    }

    private void note(List<Tensor> in) {
        fed.add(String.join(
                ", ",
                in.stream().map(t -> t.name() + " " + t.dataType() + t.shape()).toList()));
    }

    private static String text(Tensor t) {
        StringBuilder text = new StringBuilder();
        if (t.dataType() == DataType.FP32) {
            for (float v : floats(t)) {
                text.append(v).append(' ');
            }
        } else {
            for (int v : ints(t)) {
                text.append(v).append(' ');
            }
        }
        return text.toString().trim();
    }

    private static TensorSpec spec(String name, Shape dims, Shape reshape) {
        return new TensorSpec(name, DataType.INT32, dims, false, false, reshape);
    }

    private static ModelConfig batched(List<TensorSpec> inputs, List<TensorSpec> outputs) {
        return FakeModel.config(8, Duration.ZERO, inputs, outputs);
    }

    private static BatchExecution execution(
            ModelConfig config, BiFunction<List<Tensor>, List<String>, List<Tensor>> function) {
        return new BatchExecution(new FakeModel(config, PLAIN, function), ID, new ModelStatistics(ID), Clock.system());
    }

    private static void run(BatchExecution execution, InferenceJob... jobs) {
        execution.run(0, List.of(jobs), BatchCloseReason.NO_MORE);
    }
}
