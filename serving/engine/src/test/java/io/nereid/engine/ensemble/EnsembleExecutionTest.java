// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.ensemble;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.engine.ensemble.RecordingJob.Got;
import io.nereid.engine.ensemble.StubComposingModels.Ledger;
import io.nereid.engine.ensemble.StubComposingModels.Started;
import io.nereid.engine.statistics.ModelStatistics;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceRequest.Options;
import io.nereid.spi.InferenceRequest.RequestedOutput;
import io.nereid.spi.InferenceRequest.SequenceFlags;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.EnsembleScheduling;
import io.nereid.spi.config.EnsembleStep;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class EnsembleExecutionTest {
    private final Ledger ledger = new Ledger();
    private final StubComposingModels members = new StubComposingModels();
    private final List<EnsembleStep> steps = new ArrayList<>();
    private static final Map<String, Object> NO_SEQUENCE =
            Map.of("sequence_id", 0L, "sequence_start", false, "sequence_end", false);

    private List<TensorSpec> inputs = List.of(int32("X"));
    private List<TensorSpec> outputs = List.of(int32("Y"));
    private int maxBatch;
    private int maxInflight;

    @AfterEach
    void everyTensorHasBeenFreed() {
        assertThat(ledger.open).hasValue(0);
    }

    @Test
    void stepsFollowTheirTensorsAndNotTheirPlaceInTheConfiguration() {
        step("b", Map.of("in", "mid"), Map.of("out", "Y"));
        step("a", Map.of("in", "X"), Map.of("out", "mid"));
        RecordingJob job = start(x(1));
        Started a = only("a");
        assertThat(a.input("in").buffer().getInt()).isEqualTo(1);
        a.complete(out(2));
        Started b = only("b");
        assertThat(b.input("in").buffer().getInt()).isEqualTo(2);
        b.complete(out(3));
        assertThat(job.answers).containsExactly(new Got(Map.of("Y", 3), Map.of("Y", "[1]"), NO_SEQUENCE, true));
        assertThat(job.took).containsExactly(2, 20, 200);
    }

    @Test
    void independentStepsRunAtOnceAndShareTheMemoryOfTheirInput() {
        outputs = List.of(int32("Y"));
        step("a", Map.of("in", "X"), Map.of("out", "p"));
        step("b", Map.of("in", "X"), Map.of("out", "q"));
        step("c", Map.of("l", "p", "r", "q"), Map.of("out", "Y"));
        RecordingJob job = start(x(1));
        Started a = members.take("a");
        Started b = members.take("b");
        assertThat(a.input("in").region()).isSameAs(b.input("in").region());
        b.complete(out(5));
        assertThat(members.started).as("c waits for both").isEmpty();
        a.complete(out(4));
        Started c = only("c");
        assertThat(c.input("l").buffer().getInt()).isEqualTo(4);
        assertThat(c.input("r").buffer().getInt()).isEqualTo(5);
        c.complete(out(9));
        assertThat(value(job)).isEqualTo(9);
    }

    @Test
    void aTensorIsFreedAsSoonAsItsLastTakerIsDoneWithIt() {
        step("a", Map.of("in", "X"), Map.of("out", "mid"));
        step("b", Map.of("in", "mid"), Map.of("out", "Y"));
        RecordingJob job = start(x(1));
        only("a").complete(out(2));
        Started b = only("b");
        assertThat(ledger.open)
                .as("the request's input, which its job holds, and what b reads")
                .hasValue(2);
        b.request.release();
        assertThat(ledger.open).hasValue(1);
        b.sink.fail(ServingException.of(ErrorCode.INTERNAL, "enough"));
        assertThat(job.ended).isTrue();
    }

    @Test
    void stepsThatNoRequestedOutputNeedsDoNotRun() {
        outputs = List.of(int32("Y"), int32("Z"));
        step("a", Map.of("in", "X"), Map.of("out", "Y"));
        step("b", Map.of("in", "X"), Map.of("out", "Z"));
        RecordingJob job = start(request("", List.of(new RequestedOutput("Z", 0)), Options.NONE, x(1)));
        only("b").complete(out(7));
        assertThat(job.answers.get(0).values()).isEqualTo(Map.of("Z", 7));
    }

    @Test
    void aRequestDoesNotBeginWhileAModelThatItWillRunIsOverloaded() {
        outputs = List.of(int32("Y"), int32("Z"));
        step("a", Map.of("in", "X"), Map.of("out", "Y"));
        step("b", Map.of("in", "X"), Map.of("out", "Z"));
        ServableId id = new ServableId("e", 1);
        EnsembleServable servable = new EnsembleServable(
                id, ModelConfig.unspecified("e"), new ModelStatistics(id), graph(), members, Clock.system());
        members.overloaded.add("b");
        RecordingJob all = new RecordingJob(request("", List.of(), Options.NONE, x(1)));
        assertThatThrownBy(() -> servable.submit(all)).hasMessage("b is overloaded");
        assertThat(members.started).isEmpty();
        all.request().release();
        RecordingJob other = new RecordingJob(request("", List.of(new RequestedOutput("Y", 0)), Options.NONE, x(1)));
        servable.submit(other);
        only("a").complete(out(5));
        assertThat(other.answers.get(0).values()).isEqualTo(Map.of("Y", 5));
    }

    @Test
    void aMemberIsAskedOnlyForTheOutputsThatAreUsed() {
        step("a", Map.of("in", "X"), Map.of("out", "Y"));
        member("a", false, List.of(int32("in")), List.of(int32("spare"), int32("out")));
        RecordingJob job = start(x(1));
        Started a = only("a");
        assertThat(a.request.outputs()).containsExactly(new RequestedOutput("out", 0));
        a.complete(ledger.int32("spare", Shape.of(1), 9), out(7));
        assertThat(value(job)).isEqualTo(7);
    }

    @Test
    void theBatchDimensionIsTakenAwayForAMemberThatTakesNoBatchesAndPutBack() {
        maxBatch = 4;
        member("a", false, List.of(new TensorSpec("in", DataType.INT32, Shape.of(1))), List.of(int32("out")));
        step("a", Map.of("in", "X"), Map.of("out", "Y"));
        RecordingJob job = start(ledger.int32("X", Shape.of(1, 1), 5));
        Started a = only("a");
        assertThat(a.input("in").shape()).isEqualTo(Shape.of(1));
        a.complete(out(6));
        assertThat(job.answers.get(0).shapes()).isEqualTo(Map.of("Y", "[1,1]"));

        RecordingJob two = start(ledger.int32("X", Shape.of(2, 1), 5, 6));
        assertThat(failure(two))
                .isEqualTo(
                        "in ensemble 'e', ensemble tensor 'X' has shape [2,1], but 'a' takes no batches (expected first"
                                + " dimension 1)");
    }

    @Test
    void theBatchDimensionIsPutBeforeAMemberThatTakesBatchesAndTakenBack() {
        member(
                "a",
                true,
                List.of(new TensorSpec("in", DataType.INT32, Shape.of(1))),
                List.of(new TensorSpec("out", DataType.INT32, Shape.of(1))));
        step("a", Map.of("in", "X"), Map.of("out", "Y"));
        RecordingJob job = start(x(5));
        Started a = only("a");
        assertThat(a.input("in").shape()).isEqualTo(Shape.of(1, 1));
        a.complete(ledger.int32("out", Shape.of(1, 1), 6));
        assertThat(job.answers.get(0).shapes()).isEqualTo(Map.of("Y", "[1]"));
    }

    @Test
    void anOptionalInputThatIsMissingIsLeftOutOfTheStep() {
        inputs = List.of(int32("X"), new TensorSpec("O", DataType.INT32, Shape.of(-1), true));
        member("a", false, List.of(int32("in"), optional("opt")), List.of(int32("out")));
        step("a", Map.of("in", "X", "opt", "O"), Map.of("out", "Y"));
        RecordingJob job = start(x(1));
        Started a = only("a");
        assertThat(a.request.inputs()).extracting(Tensor::name).containsExactly("in");
        a.complete(out(1));
        assertThat(value(job)).isEqualTo(1);
    }

    @Test
    void aStepWhoseNeededTensorNeverComesEndsTheRequest() {
        step("a", Map.of("in", "X"), Map.of("out", "mid"));
        step("b", Map.of("in", "mid"), Map.of("out", "Y"));
        RecordingJob job = start(request("r7", List.of(), Options.NONE, x(1)));
        only("a").complete();
        assertThat(failure(job))
                .isEqualTo("in ensemble 'e', [request id: r7] unexpected deadlock, at least one output is not set while"
                        + " no more ensemble steps can be made");
        assertThat(members.started).isEmpty();
    }

    @Test
    void anOutputThatAMemberLeavesOutIsLeftOutOfTheAnswerAndOfOptionalInputs() {
        outputs = List.of(int32("Y"), int32("Z"));
        member("a", false, List.of(int32("in")), List.of(int32("out"), int32("more")));
        member("b", false, List.of(optional("l"), int32("r")), List.of(int32("out")));
        step("a", Map.of("in", "X"), Map.of("out", "mid", "more", "Z"));
        step("b", Map.of("l", "Z", "r", "mid"), Map.of("out", "Y"));
        RecordingJob job = start(x(1));
        only("a").complete(out(2));
        Started b = only("b");
        assertThat(b.request.inputs()).extracting(Tensor::name).containsExactly("r");
        b.complete(out(7));
        assertThat(job.answers).containsExactly(new Got(Map.of("Y", 7), Map.of("Y", "[1]"), NO_SEQUENCE, true));

        RecordingJob none = start(request("", List.of(new RequestedOutput("Z", 0)), Options.NONE, x(1)));
        only("a").complete();
        assertThat(none.answers).containsExactly(new Got(Map.of(), Map.of(), Map.of(), true));
    }

    @Test
    void theSequenceOfAStepIsThatOfTheTensorsThatItReads() {
        outputs = List.of(int32("Y"), int32("Z"));
        step("a", Map.of("in", "X"), Map.of("out", "p"));
        step("b", Map.of("in", "X"), Map.of("out", "q"));
        step("c", Map.of("in", "p"), Map.of("out", "Y"));
        step("d", Map.of("in", "q"), Map.of("out", "Z"));
        SequenceFlags own = new SequenceFlags("s", true, false);
        RecordingJob job = start(request("", List.of(), new Options(0, 0, own, null), x(1)));
        members.take("b").complete(Map.of("sequence_id", "t"), out(1));
        members.take("a").complete(out(2));
        Started c = members.take("c");
        Started d = members.take("d");
        assertThat(c.request.options().sequence()).isEqualTo(own);
        assertThat(d.request.options().sequence()).isEqualTo(new SequenceFlags("t", false, false));
        d.complete(out(3));
        c.complete(Map.of("other", 5L), out(4));
        assertThat(job.answers.get(0).parameters())
                .isEqualTo(Map.of("other", 5L, "sequence_id", "t", "sequence_start", false, "sequence_end", false));

        RecordingJob wrong = start(x(1));
        members.take("a").complete(Map.of("sequence_start", 1L), out(1));
        assertThat(failure(wrong))
                .isEqualTo(
                        "in ensemble 'e', expect parameter 'sequence_start' to be TRITONSERVER_PARAMETER_BOOL, got 1");
        members.take("b").complete(out(1));
    }

    @Test
    void theFirstErrorWinsNamesTheEnsembleAndStopsTheOtherSteps() {
        step("a", Map.of("in", "X"), Map.of("out", "p"));
        step("b", Map.of("in", "X"), Map.of("out", "q"));
        step("c", Map.of("l", "p", "r", "q"), Map.of("out", "Y"));
        RecordingJob job = start(x(1));
        Started a = members.take("a");
        Started b = members.take("b");
        a.fail(ErrorCode.INVALID_ARGUMENT, "bad input");
        assertThat(failure(job)).isEqualTo("in ensemble 'e', bad input");
        assertThat(Objects.requireNonNull(job.failure).code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
        assertThat(b.cancelled).isTrue();
        b.complete(out(1));
        assertThat(job.answers).isEmpty();
    }

    @Test
    void aCancelledRequestEndsAtOnceAndCancelsItsSteps() {
        step("a", Map.of("in", "X"), Map.of("out", "Y"));
        RecordingJob job = start(x(1));
        Started a = only("a");
        job.cancel();
        assertThat(Objects.requireNonNull(job.failure).code()).isEqualTo(ErrorCode.CANCELLED);
        assertThat(a.cancelled).isTrue();
        a.fail(ErrorCode.CANCELLED, "stopped");
    }

    @Test
    void aStepThatIsCancelledWhileItIsBeingStartedIsCancelledAfterwards() {
        step("a", Map.of("in", "X"), Map.of("out", "Y"));
        RecordingJob job = new RecordingJob(request("", List.of(), Options.NONE, x(1)));
        members.onStart = step -> {
            members.started.add(step);
            job.cancel();
        };
        run(job);
        Started a = only("a");
        assertThat(a.cancelled).isTrue();
        a.fail(ErrorCode.CANCELLED, "stopped");
        assertThat(Objects.requireNonNull(job.failure).code()).isEqualTo(ErrorCode.CANCELLED);
    }

    @Test
    void manyStepsThatAnswerOnTheSpotDoNotPileUpOnTheStack() {
        int n = 3_000;
        for (int i = 0; i < n; i++) {
            step("m", Map.of("in", i == 0 ? "X" : "t" + i), Map.of("out", i == n - 1 ? "Y" : "t" + (i + 1)));
        }
        members.onStart = s -> s.complete(out(s.input("in").buffer().getInt() + 1));
        assertThat(value(start(x(0)))).isEqualTo(n);
    }

    @Test
    void stepsInheritTheRequestsOptionsAndAResponseMayChangeTheSequence() {
        step("a", Map.of("in", "X"), Map.of("out", "mid"));
        step("b", Map.of("in", "mid"), Map.of("out", "Y"));
        Options options = new Options(3, 5_000, new SequenceFlags(7L, true, false), null);
        RecordingJob job = start(request("id", List.of(), options, x(1)));
        Started a = only("a");
        assertThat(a.request.options()).isEqualTo(options);
        assertThat(a.request.id()).isEqualTo("id");
        assertThat(a.request.parameters()).isEqualTo(Map.of("p", 1L));
        assertThat(a.request.deadlineNanos()).isEqualTo(99);
        a.complete(Map.of("sequence_id", 8L, "sequence_end", true), out(2));
        Started b = only("b");
        assertThat(b.request.options()).isEqualTo(new Options(3, 5_000, new SequenceFlags(8L, false, true), null));
        b.complete(out(1));
        assertThat(value(job)).isEqualTo(1);
        assertThat(job.answers.get(0).parameters())
                .isEqualTo(Map.of("sequence_id", 8L, "sequence_start", false, "sequence_end", true));
    }

    @Test
    void aStepRunsOnlyWhenItsConditionHolds() {
        inputs = List.of(int32("X"), new TensorSpec("C", DataType.BOOL, Shape.of(-1)));
        outputs = List.of(int32("Y"));
        member("j", false, List.of(optional("l"), optional("r")), List.of(int32("out")));
        when("a", Map.of("in", "X"), Map.of("out", "p"), "C");
        step("a2", Map.of("in", "p"), Map.of("out", "p2"));
        step("b", Map.of("in", "X"), Map.of("out", "q"));
        step("j", Map.of("l", "p2", "r", "q"), Map.of("out", "Y"));

        RecordingJob no = start(x(1), ledger.tensor("C", DataType.BOOL, Shape.of(2), (byte) 1, (byte) 0));
        only("b").complete(out(4));
        Started j = only("j");
        assertThat(j.request.inputs()).extracting(Tensor::name).containsExactly("r");
        j.complete(out(10));
        assertThat(value(no)).isEqualTo(10);

        RecordingJob yes = start(x(1), ledger.tensor("C", DataType.BOOL, Shape.of(2), (byte) 1, (byte) 1));
        members.take("a").complete(out(2));
        members.take("a2").complete(out(3));
        only("b").complete(out(4));
        j = only("j");
        assertThat(j.request.inputs()).extracting(Tensor::name).containsExactly("l", "r");
        j.complete(out(11));
        assertThat(value(yes)).isEqualTo(11);
    }

    @Test
    void anOutputOfAStepThatWasLeftOutIsNotInTheAnswer() {
        inputs = List.of(int32("X"), new TensorSpec("C", DataType.BOOL, Shape.of(-1), true));
        outputs = List.of(int32("Y"), int32("Z"));
        step("a", Map.of("in", "X"), Map.of("out", "Y"));
        when("b", Map.of("in", "X"), Map.of("out", "Z"), "C");
        RecordingJob job = start(x(1));
        only("a").complete(out(2));
        assertThat(job.answers).containsExactly(new Got(Map.of("Y", 2), Map.of("Y", "[1]"), NO_SEQUENCE, true));
    }

    @Test
    void eachAnswerOfADecoupledStepRunsTheStepsAfterItAndAnswersKeepTheirOrder() {
        decoupled("r");
        outputs = List.of(int32("Y"), int32("S"));
        step("r", Map.of("in", "X"), Map.of("out", "t"));
        step("s", Map.of("in", "X"), Map.of("out", "S"));
        step("b", Map.of("in", "t", "once", "S"), Map.of("out", "Y"));
        RecordingJob job = start(x(1));
        Started r = members.take("r");
        Started s = members.take("s");
        r.respond(Map.of("n", 1L), out(10));
        assertThat(members.started).as("s has not responded").isEmpty();
        s.complete(out(100));
        r.respond(Map.of(), out(20));
        r.respond(Map.of(), out(30));
        Started first = members.take("b");
        Started second = members.take("b");
        Started third = members.take("b");
        assertThat(second.input("in").buffer().getInt()).isEqualTo(20);
        assertThat(second.input("once").buffer().getInt()).isEqualTo(100);
        second.complete(out(21));
        assertThat(job.answers).as("the first is still awaited").isEmpty();
        first.complete(out(11));
        assertThat(job.answers).extracting(g -> g.values().get("Y")).containsExactly(11, 21);
        r.complete();
        assertThat(job.ended).isFalse();
        third.complete(out(31));
        assertThat(job.answers).extracting(g -> g.values().get("Y")).containsExactly(11, 21, 31);
        assertThat(job.answers).extracting(g -> g.values().get("S")).containsOnly(100);
        assertThat(job.answers).extracting(Got::last).containsExactly(false, false, true);
        assertThat(job.answers.get(0).parameters())
                .isEqualTo(Map.of("n", 1L, "sequence_id", 0L, "sequence_start", false, "sequence_end", false));
    }

    @Test
    void aDecoupledStepWithoutAnswersEndsTheRequestWithAnEmptyOne() {
        decoupled("r");
        step("r", Map.of("in", "X"), Map.of("out", "Y"));
        RecordingJob none = start(x(1));
        only("r").complete();
        assertThat(none.answers).containsExactly(new Got(Map.of(), Map.of(), Map.of(), true));

        RecordingJob late = start(x(1));
        Started r = only("r");
        r.respond(Map.of(), out(1));
        assertThat(late.answers).extracting(Got::last).containsExactly(false);
        r.complete();
        assertThat(late.answers).extracting(Got::last).containsExactly(false, true);
    }

    @Test
    void decoupledStepsMayFollowEachOther() {
        decoupled("r");
        decoupled("s");
        step("r", Map.of("in", "X"), Map.of("out", "t"));
        step("s", Map.of("in", "t"), Map.of("out", "Y"));
        members.onStart = step -> {
            int v = step.input("in").buffer().getInt();
            for (int i = 0; i < 3; i++) {
                step.respond(Map.of(), out(10 * v + i));
            }
            step.complete();
        };
        RecordingJob job = start(x(1));
        assertThat(job.answers.stream()
                        .filter(g -> !g.values().isEmpty())
                        .map(g -> g.values().get("Y")))
                .containsExactly(100, 101, 102, 110, 111, 112, 120, 121, 122);
        assertThat(job.ended).isTrue();
    }

    @Test
    void noMoreRequestsOfAStepThanAllowedAreUnderWayAtOnce() {
        decoupled("r");
        maxInflight = 2;
        step("r", Map.of("in", "X"), Map.of("out", "t"));
        step("b", Map.of("in", "t"), Map.of("out", "Y"));
        RecordingJob job = start(x(1));
        Started r = only("r");
        for (int i = 0; i < 5; i++) {
            r.respond(Map.of(), out(i));
        }
        r.complete();
        List<Integer> seen = new ArrayList<>();
        while (!job.ended) {
            assertThat(members.started).hasSizeLessThanOrEqualTo(2);
            Started b = members.take("b");
            seen.add(b.input("in").buffer().getInt());
            b.complete(out(b.input("in") == null ? 0 : seen.get(seen.size() - 1)));
        }
        assertThat(seen).containsExactly(0, 1, 2, 3, 4);
        assertThat(job.answers).hasSize(5);
    }

    @Test
    void aProducerThatRunsFarAheadFailsTheRequest() {
        decoupled("r");
        maxInflight = 1;
        step("r", Map.of("in", "X"), Map.of("out", "t"));
        step("b", Map.of("in", "t"), Map.of("out", "Y"));
        RecordingJob job = start(x(1));
        Started r = only("r");
        for (int i = 0; i <= EnsembleExecution.MAX_WAITING + 1; i++) {
            r.respond(Map.of(), out(i));
        }
        assertThat(failure(job))
                .startsWith("in ensemble 'e', more than 10000 requests of its steps wait for model 'b'");
        assertThat(r.cancelled).isTrue();
        r.fail(ErrorCode.CANCELLED, "stopped");
        only("b").fail(ErrorCode.CANCELLED, "stopped");
    }

    // helpers

    private static TensorSpec int32(String name) {
        return new TensorSpec(name, DataType.INT32, Shape.of(-1));
    }

    private static TensorSpec optional(String name) {
        return new TensorSpec(name, DataType.INT32, Shape.of(-1), true);
    }

    private void member(String model, boolean batched, List<TensorSpec> in, List<TensorSpec> out) {
        members.configs.put(
                model,
                ModelConfig.builder(model)
                        .maxBatchSize(batched ? 8 : 0)
                        .inputs(in)
                        .outputs(out)
                        .build());
    }

    private void decoupled(String model) {
        members.configs.put(
                model,
                ModelConfig.builder(model)
                        .maxBatchSize(0)
                        .inputs(List.of(int32("in")))
                        .outputs(List.of(int32("out")))
                        .decoupled(true)
                        .build());
    }

    private void step(String model, Map<String, String> in, Map<String, String> out) {
        when(model, in, out, "");
    }

    private void when(String model, Map<String, String> in, Map<String, String> out, String when) {
        if (!members.configs.containsKey(model)) {
            member(
                    model,
                    false,
                    in.keySet().stream()
                            .sorted()
                            .map(EnsembleExecutionTest::int32)
                            .toList(),
                    out.keySet().stream()
                            .sorted()
                            .map(EnsembleExecutionTest::int32)
                            .toList());
        }
        steps.add(new EnsembleStep(model, -1, in, out, when));
    }

    private EnsembleGraph graph() {
        ModelConfig config = ModelConfig.builder("e")
                .maxBatchSize(maxBatch)
                .inputs(inputs)
                .outputs(outputs)
                .ensemble(new EnsembleScheduling(steps, maxInflight))
                .build();
        return EnsembleGraph.compile(config, s -> members.config(new ModelRef(s.model(), s.version(), null)));
    }

    private static InferenceRequest request(
            String id, List<RequestedOutput> wanted, Options options, Tensor... tensors) {
        return new InferenceRequest(
                ModelRef.latest("e"), id, Arrays.asList(tensors), wanted, Map.of("p", 1L), 99, 0, options);
    }

    private RecordingJob start(Tensor... tensors) {
        return start(request("", List.of(), Options.NONE, tensors));
    }

    private RecordingJob start(InferenceRequest request) {
        RecordingJob job = new RecordingJob(request);
        run(job);
        return job;
    }

    private void run(RecordingJob job) {
        new EnsembleExecution(graph(), members, job, (rows, in, infer, out) -> {}, Clock.system()).start();
    }

    private Tensor x(int value) {
        return ledger.int32("X", Shape.of(1), value);
    }

    private Tensor out(int value) {
        return ledger.int32("out", Shape.of(1), value);
    }

    private Started only(String model) {
        assertThat(members.started).extracting(Started::model).containsExactly(model);
        return members.take(model);
    }

    private static int value(RecordingJob job) {
        assertThat(job.failure).isNull();
        assertThat(job.answers).hasSize(1);
        return Objects.requireNonNull(job.answers.get(0).values().get("Y"));
    }

    private static String failure(RecordingJob job) {
        return Objects.requireNonNull(job.failure).getMessage();
    }
}
