// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.servable;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.backend.ModelRequest;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.engine.CountedTensors;
import io.nereid.engine.FakeJob;
import io.nereid.engine.FakeModel;
import io.nereid.engine.execution.BatchExecution;
import io.nereid.engine.statistics.ModelStatistics;
import io.nereid.observe.ModelStatisticsSnapshot;
import io.nereid.scheduling.BatchCloseReason;
import io.nereid.scheduling.InitialStateFiles;
import io.nereid.scheduling.SchedulerOptions;
import io.nereid.scheduling.execution.DeviceExecutor;
import io.nereid.spi.InferenceCall;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class ModelRequestTest {
    private static final ServableId ID = new ServableId("m", 1);

    private final CountedTensors tensors = new CountedTensors();
    private final DeviceExecutor pool = new DeviceExecutor("test", 1);

    @AfterEach
    void nothingIsLeft() {
        pool.close();
        tensors.assertAllFreed();
    }

    @Test
    void aDecoupledModelAnswersAsOftenAsItLikesAlsoAfterItHasReturned() throws Exception {
        BlockingQueue<ModelRequest> kept = new LinkedBlockingQueue<>();
        ModelServable servable = servable(config(0, true), r -> kept.addAll(r));
        Client client = new Client(servable, Clock.system());
        client.send(List.of(tensors.ints("in", Shape.of(1), 4)));
        ModelRequest request = kept.poll(5, TimeUnit.SECONDS);
        assertThat(CountedTensors.ints(request.request().inputs().get(0)))
                .as("the inputs are not closed")
                .containsExactly(4);
        assertThat(request.outputs()).containsExactly("out");
        request.respond(List.of(tensors.ints("out", Shape.of(1), 1)), Map.of());
        request.respond(List.of(tensors.ints("out", Shape.of(1), 2)), Map.of("param1", 42L));
        assertThat(client.nextText()).isEqualTo("out 1");
        Client.Answer second = client.next();
        assertThat(second.response().parameters()).containsEntry("param1", 42L);
        second.response().close();
        assertThat(client.underWay()).as("its handle keeps the model loaded").isEqualTo(1);
        request.finish();
        assertThat(client.nextText()).isEqualTo(".");
        request.respond(List.of(tensors.ints("out", Shape.of(1), 3)), Map.of());
        request.complete(List.of(tensors.ints("out", Shape.of(1), 3)), Map.of());
        request.fail(ServingException.invalidArgument("late"));
        client.assertNothingUnderWay();
        ModelStatisticsSnapshot report = servable.report();
        assertThat(report.inferences()).isEqualTo(1);
        assertThat(report.executions()).isEqualTo(1);
        assertThat(report.success().count()).isEqualTo(1);
        assertThat(report.responses()).containsOnlyKeys("0", "1", "2");
        assertThat(report.responses().get("1").success().count()).isEqualTo(1);
        assertThat(report.responses().get("2").empty().count()).isEqualTo(1);
        servable.unload();
    }

    @Test
    void aDecoupledModelMayAnswerNothingFailLateOrBeLeftByItsClient() throws Exception {
        BlockingQueue<ModelRequest> kept = new LinkedBlockingQueue<>();
        ModelServable servable = servable(config(0, true), r -> kept.addAll(r));
        Client client = new Client(servable, Clock.system());
        client.send(List.of(tensors.ints("in", Shape.of(1), 1)));
        kept.poll(5, TimeUnit.SECONDS).finish();
        assertThat(client.nextText()).isEqualTo(".");
        client.send(List.of(tensors.ints("in", Shape.of(1), 2)));
        ModelRequest failing = kept.poll(5, TimeUnit.SECONDS);
        failing.respond(List.of(tensors.ints("out", Shape.of(1), 1)), Map.of());
        failing.fail(ServingException.invalidArgument("no more"));
        assertThat(client.nextText()).isEqualTo("out 1");
        assertThat(client.nextFailure().getMessage()).isEqualTo("[request id: id-7] no more");
        InferenceCall call = client.send(List.of(tensors.ints("in", Shape.of(1), 3)));
        ModelRequest left = kept.poll(5, TimeUnit.SECONDS);
        assertThat(left.cancelled()).isFalse();
        call.cancel();
        assertThat(left.cancelled()).isTrue();
        left.fail(ServingException.of(ErrorCode.CANCELLED, "stopped"));
        assertThat(client.nextFailure().code()).isEqualTo(ErrorCode.CANCELLED);
        client.assertNothingUnderWay();
        ModelStatisticsSnapshot report = servable.report();
        assertThat(report.failure().count()).isEqualTo(2);
        assertThat(report.responses().get("0").cancel().count()).isEqualTo(1);
        assertThat(report.responses().get("0").empty().count()).isEqualTo(1);
        assertThat(report.responses().get("1").failure().count()).isEqualTo(1);
        servable.unload();
    }

    @Test
    void aResponseThatDiffersFromTheConfigurationFailsTheRequest() throws Exception {
        ModelServable servable = servable(
                config(0, true), r -> r.get(0).respond(List.of(tensors.floats("out", Shape.of(1), 1)), Map.of()));
        Client client = new Client(servable, Clock.system());
        client.send(List.of(tensors.ints("in", Shape.of(1), 1)));
        assertThat(client.nextFailure().getMessage()).contains("model 'm' returned output 'out' of type FP32");
        client.assertNothingUnderWay();
        servable.unload();
    }

    @Test
    void aModelThatIsNotDecoupledGivesExactlyOneAnswer() throws Exception {
        BlockingQueue<Throwable> thrown = new LinkedBlockingQueue<>();
        ModelServable servable = servable(config(4, false), requests -> {
            for (ModelRequest r : requests) {
                switch (CountedTensors.ints(r.request().inputs().get(0))[0]) {
                    case 0 -> r.complete(List.of(tensors.ints("out", Shape.of(1, 1), 9)), Map.of("note", "x"));
                    case 1 -> {
                        try {
                            r.respond(List.of(tensors.ints("out", Shape.of(1, 1), 9)), Map.of());
                        } catch (ServingException e) {
                            thrown.add(e);
                        }
                    }
                    case 2 -> r.finish();
                    default -> {
                        // never ended
                    }
                }
            }
        });
        Client client = new Client(servable, Clock.system());
        client.send(List.of(tensors.ints("in", Shape.of(1, 1), 0)));
        Client.Answer answer = client.next();
        assertThat(answer.response().parameters()).containsEntry("note", "x");
        assertThat(answer.last()).isTrue();
        answer.response().close();
        String[] texts = {
            "expected a single response, got 2 or more from model 'm'",
            "expected a single response, got 0 from model 'm'",
            "expected a single response, got 0 from model 'm'"
        };
        for (int i = 1; i <= 3; i++) {
            client.send(List.of(tensors.ints("in", Shape.of(1, 1), i)));
            ServingException failure = client.nextFailure();
            assertThat(failure.getMessage()).isEqualTo(texts[i - 1]);
            assertThat(failure.code()).isEqualTo(ErrorCode.INTERNAL);
        }
        assertThat(thrown).hasSize(1);
        client.assertNothingUnderWay();
        servable.unload();
    }

    @Test
    void whatAModelThrowsFailsOnlyTheRequestsItHasNotAnswered() {
        FakeModel model = new FakeModel(config(4, false), requests -> {
            requests.get(0).complete(List.of(tensors.ints("out", Shape.of(1, 1), 9)), Map.of());
            throw new IllegalStateException("broken");
        });
        BatchExecution execution = new BatchExecution(model, ID, new ModelStatistics(ID), Clock.system());
        FakeJob answered = new FakeJob(1, List.of(tensors.ints("in", Shape.of(1, 1), 1)));
        FakeJob failed = new FakeJob(1, List.of(tensors.ints("in", Shape.of(1, 1), 1)));
        execution.run(0, List.of(answered, failed), BatchCloseReason.NO_MORE);
        answered.answered(out -> assertThat(CountedTensors.ints(out.get(0))).containsExactly(9));
        assertThat(failed.failed()).hasMessage("model 'm' failed: IllegalStateException");
        execution.close();
    }

    @Test
    void theBatchIdIsAddedToTheModelsParameters() {
        ModelConfig config = config(4, false).toBuilder()
                .parameters(Map.of(BatchExecution.BATCH_IDS, "true"))
                .build();
        FakeModel model = new FakeModel(config, requests -> {
            for (ModelRequest r : requests) {
                boolean first = r == requests.get(0);
                r.complete(List.of(tensors.ints("out", Shape.of(1, 1), 9)), first ? Map.of() : Map.of("note", "x"));
            }
        });
        BatchExecution execution = new BatchExecution(model, ID, new ModelStatistics(ID), Clock.system());
        FakeJob silent = new FakeJob(1, List.of(tensors.ints("in", Shape.of(1, 1), 1)));
        FakeJob noted = new FakeJob(1, List.of(tensors.ints("in", Shape.of(1, 1), 1)));
        execution.run(0, List.of(silent, noted), BatchCloseReason.NO_MORE);
        for (FakeJob job : List.of(silent, noted)) {
            job.answered(out -> assertThat(out).hasSize(1));
        }
        assertThat(silent.parameters.get(0)).containsOnlyKeys("batch_id");
        assertThat(noted.parameters.get(0))
                .containsOnlyKeys("batch_id", "note")
                .containsEntry("note", "x")
                .containsAllEntriesOf(silent.parameters.get(0));
        execution.close();
    }

    @Test
    void aRequestMayAskToComeAgain() {
        FakeModel model = new FakeModel(config(4, false), requests -> {
            requests.get(0).reschedule();
            requests.get(0).complete(List.of(), Map.of());
        });
        BatchExecution execution = new BatchExecution(model, ID, new ModelStatistics(ID), Clock.system());
        FakeJob job = new FakeJob(1, List.of(tensors.ints("in", Shape.of(1, 1), 1)));
        execution.run(0, List.of(job), BatchCloseReason.SEQUENCE);
        assertThat(job.rescheduled).isEqualTo(1);
        assertThat(job.outputs).isNull();
        execution.close();
    }

    @Test
    void onlySequencesComeAgain() throws Exception {
        ModelServable servable = servable(config(4, false), r -> r.get(0).reschedule());
        Client client = new Client(servable, Clock.system());
        client.send(List.of(tensors.ints("in", Shape.of(1, 1), 0)));
        assertThat(client.nextFailure().getMessage()).startsWith("model 'm' rescheduled a request");
        client.assertNothingUnderWay();
        servable.unload();
    }

    @Test
    void aModelSeesItsOwnShapesAndOnlyRequestedOutputsReachTheClient() throws Exception {
        ModelConfig config = FakeModel.config(
                4,
                Duration.ZERO,
                List.of(new TensorSpec("in", DataType.INT32, Shape.of(4), false, false, Shape.of(2, 2))),
                List.of(
                        new TensorSpec("out", DataType.INT32, Shape.of(4), false, false, Shape.of(2, 2)),
                        new TensorSpec("more", DataType.INT32, Shape.of(1))));
        List<String> seen = new ArrayList<>();
        ModelServable servable = servable(config, requests -> {
            Tensor in = requests.get(0).request().inputs().get(0);
            seen.add(in.shape().toString());
            requests.get(0)
                    .complete(
                            List.of(tensors.ints("more", Shape.of(1, 1), 5), in.retainAs("out", in.shape())), Map.of());
        });
        Client client = new Client(servable, Clock.system());
        client.send(List.of(tensors.ints("in", Shape.of(1, 4), 1, 2, 3, 4)), "out");
        Client.Answer answer = client.next();
        assertThat(answer.response().outputs()).hasSize(1);
        assertThat(answer.response().outputs().get(0).shape()).isEqualTo(Shape.of(1, 4));
        answer.response().close();
        client.send(List.of(tensors.ints("in", Shape.of(1, 4), 1, 2, 3, 4)));
        assertThat(client.nextText()).isEqualTo("out 1 2 3 4more 5.");
        assertThat(seen).containsExactly("[1,2,2]", "[1,2,2]");
        client.assertNothingUnderWay();
        servable.unload();
    }

    @Test
    void respondOfAModelThatIsNotDecoupledThrows() throws Exception {
        List<ErrorCode> thrown = new CopyOnWriteArrayList<>();
        ModelServable servable = servable(config(4, false), requests -> {
            try {
                requests.get(0).respond(List.of(tensors.ints("out", Shape.of(1, 1), 1)), Map.of());
            } catch (ServingException e) {
                thrown.add(e.code());
            }
        });
        Client client = new Client(servable, Clock.system());
        client.send(List.of(tensors.ints("in", Shape.of(1, 1), 1)));
        assertThat(client.nextFailure())
                .hasMessageContaining("expected a single response, got 2 or more from model 'm'")
                .extracting(ServingException::code)
                .isEqualTo(ErrorCode.INTERNAL);
        servable.unload();
        assertThat(thrown).containsExactly(ErrorCode.FAILED_PRECONDITION);
        client.assertNothingUnderWay();
    }

    private ModelServable servable(ModelConfig config, Consumer<List<ModelRequest>> requests) {
        FakeModel model = new FakeModel(config, requests);
        return ModelServable.of(
                ID,
                model,
                config,
                new ModelStatistics(ID),
                pool,
                SchedulerOptions.DEFAULT,
                InitialStateFiles.NONE,
                Clock.system());
    }

    private static ModelConfig config(int maxBatch, boolean decoupled) {
        return FakeModel.config(
                        maxBatch,
                        Duration.ZERO,
                        List.of(new TensorSpec("in", DataType.INT32, Shape.of(1))),
                        List.of(new TensorSpec("out", DataType.INT32, Shape.of(1))))
                .toBuilder()
                .decoupled(decoupled)
                .build();
    }
}
