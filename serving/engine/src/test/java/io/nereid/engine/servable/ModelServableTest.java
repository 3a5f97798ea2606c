// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.servable;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.backend.ModelTraits;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.engine.FakeModel;
import io.nereid.engine.metrics.EngineMetrics;
import io.nereid.engine.metrics.HostMetrics;
import io.nereid.engine.options.MetricsOptions;
import io.nereid.engine.statistics.ModelStatistics;
import io.nereid.observe.metrics.MetricsFormat;
import io.nereid.observe.metrics.MetricsWriter;
import io.nereid.scheduling.InitialStateFiles;
import io.nereid.scheduling.InlinePolicy;
import io.nereid.scheduling.SchedulerOptions;
import io.nereid.scheduling.execution.DeviceExecutor;
import io.nereid.spi.InferenceCall;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceRequest.RequestedOutput;
import io.nereid.spi.InferenceResponse;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ResponseSink;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class ModelServableTest {
    private static final TensorSpec FLOATS = new TensorSpec("IN0", DataType.FP32, Shape.of(-1));
    private static final TensorSpec FLOATS_OUT = new TensorSpec("OUT0", DataType.FP32, Shape.of(-1));
    private static final TensorSpec TEXT = new TensorSpec("IN0", DataType.BYTES, Shape.of(-1));
    private static final TensorSpec TEXT_OUT = new TensorSpec("OUT0", DataType.BYTES, Shape.of(-1));
    private static final ModelTraits PLAIN =
            ModelTraits.builder().cancellable(true).build();

    private final DeviceExecutor pool = new DeviceExecutor("test", 1);
    private final List<AtomicInteger> handles = new ArrayList<>();

    @AfterEach
    void closePool() {
        pool.close();
        assertThat(handles)
                .allSatisfy(h -> assertThat(h.get()).as("handle closed").isEqualTo(1));
    }

    @Test
    void anIdentityModelGivesBackTheVeryBytes() throws Exception {
        FakeModel model = new FakeModel(
                FakeModel.config(0, Duration.ZERO, List.of(FLOATS), List.of(FLOATS_OUT)), PLAIN, FakeModel::identity);
        ModelServable servable = servable(model);
        Tensor in = floats(Shape.of(3), 1, 2, 3);
        long address = in.address();
        InferenceResponse response = infer(servable, List.of(in), List.of()).get(5, TimeUnit.SECONDS);
        assertThat(response.outputs().get(0).address()).isEqualTo(address);
        assertThat(values(response.outputs().get(0))).containsExactly(1, 2, 3);
        response.close();
        servable.unload();
        assertThat(model.closed).isTrue();
    }

    @Test
    void requestsThatWaitTogetherRunAsOneBatchAndEachGetsItsRows() throws Exception {
        CountDownLatch gate = new CountDownLatch(1);
        FakeModel model = new FakeModel(
                FakeModel.config(8, Duration.ZERO, List.of(FLOATS), List.of(FLOATS_OUT)), PLAIN, (in, out) -> {
                    await(gate);
                    return FakeModel.identity(in, out);
                });
        ModelServable servable = servable(model);
        CompletableFuture<InferenceResponse> first = infer(servable, List.of(floats(Shape.of(1, 2), 0, 0)), List.of());
        await(model.entered);
        List<CompletableFuture<InferenceResponse>> rest = new ArrayList<>();
        for (int i = 1; i <= 3; i++) {
            rest.add(infer(servable, List.of(floats(Shape.of(2, 2), i, i + 10, i + 20, i + 30)), List.of()));
        }
        gate.countDown();
        first.get(5, TimeUnit.SECONDS).close();
        for (int i = 1; i <= 3; i++) {
            InferenceResponse response = rest.get(i - 1).get(5, TimeUnit.SECONDS);
            assertThat(response.outputs().get(0).shape()).isEqualTo(Shape.of(2, 2));
            assertThat(values(response.outputs().get(0))).containsExactly(i, i + 10, i + 20, i + 30);
            response.close();
        }
        assertThat(model.runs).hasValue(2);
        servable.unload();
    }

    @Test
    void textOfDifferentLengthIsSplitAtItsOwnRows() throws Exception {
        CountDownLatch gate = new CountDownLatch(1);
        FakeModel model = new FakeModel(
                FakeModel.config(8, Duration.ZERO, List.of(TEXT), List.of(TEXT_OUT)), PLAIN, (in, out) -> {
                    await(gate);
                    return FakeModel.identity(in, out);
                });
        ModelServable servable = servable(model);
        CompletableFuture<InferenceResponse> first = infer(servable, List.of(text(Shape.of(1, 1), "x")), List.of());
        await(model.entered);
        CompletableFuture<InferenceResponse> second =
                infer(servable, List.of(text(Shape.of(2, 1), "long text", "")), List.of());
        CompletableFuture<InferenceResponse> third = infer(servable, List.of(text(Shape.of(1, 1), "ab")), List.of());
        gate.countDown();
        first.get(5, TimeUnit.SECONDS).close();
        InferenceResponse two = second.get(5, TimeUnit.SECONDS);
        assertThat(texts(two.outputs().get(0))).containsExactly("long text", "");
        two.close();
        InferenceResponse three = third.get(5, TimeUnit.SECONDS);
        assertThat(texts(three.outputs().get(0))).containsExactly("ab");
        three.close();
        servable.unload();
    }

    @Test
    void oneClientsBadInputDoesNotSpoilTheAnswersOfItsBatch() throws Exception {
        CountDownLatch gate = new CountDownLatch(1);
        FakeModel model = new FakeModel(
                FakeModel.config(8, Duration.ZERO, List.of(FLOATS), List.of(FLOATS_OUT)), PLAIN, (in, out) -> {
                    await(gate);
                    for (float f : values(in.get(0))) {
                        if (f < 0) {
                            throw ServingException.invalidArgument("negative value " + f);
                        }
                    }
                    return FakeModel.identity(in, out);
                });
        ModelServable servable = servable(model);
        CompletableFuture<InferenceResponse> first = infer(servable, List.of(floats(Shape.of(1, 1), 0)), List.of());
        await(model.entered);
        CompletableFuture<InferenceResponse> good = infer(servable, List.of(floats(Shape.of(1, 1), 7)), List.of());
        CompletableFuture<InferenceResponse> bad = infer(servable, List.of(floats(Shape.of(1, 1), -7)), List.of());
        gate.countDown();
        first.get(5, TimeUnit.SECONDS).close();
        InferenceResponse response = good.get(5, TimeUnit.SECONDS);
        assertThat(values(response.outputs().get(0))).containsExactly(7);
        response.close();
        assertThat(failure(bad).code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
        servable.unload();
    }

    @Test
    void aRunIsCancelledOnlyWhenItsLastClientHasCancelled() throws Exception {
        CountDownLatch started = new CountDownLatch(2);
        CountDownLatch gate = new CountDownLatch(1);
        FakeModel[] holder = new FakeModel[1];
        FakeModel model = new FakeModel(
                FakeModel.config(8, Duration.ZERO, List.of(FLOATS), List.of(FLOATS_OUT)), PLAIN, (in, out) -> {
                    started.countDown();
                    if (in.get(0).shape().dim(0) == 1) {
                        await(gate);
                        return FakeModel.identity(in, out);
                    }
                    await(holder[0].cancelled);
                    throw ServingException.of(ErrorCode.CANCELLED, "stopped");
                });
        holder[0] = model;
        ModelServable servable = servable(model);
        CompletableFuture<InferenceResponse> first = infer(servable, List.of(floats(Shape.of(1, 1), 0)), List.of());
        await(model.entered);
        CompletableFuture<InferenceResponse> a = new CompletableFuture<>();
        CompletableFuture<InferenceResponse> b = new CompletableFuture<>();
        InferenceCall callA = submit(servable, List.of(floats(Shape.of(1, 1), 1)), List.of(), a);
        InferenceCall callB = submit(servable, List.of(floats(Shape.of(1, 1), 2)), List.of(), b);
        gate.countDown();
        first.get(5, TimeUnit.SECONDS).close();
        assertThat(started.await(5, TimeUnit.SECONDS)).isTrue();
        callA.cancel();
        assertThat(model.cancels).hasValue(0);
        callB.cancel();
        assertThat(failure(a).code()).isEqualTo(ErrorCode.CANCELLED);
        assertThat(failure(b).code()).isEqualTo(ErrorCode.CANCELLED);
        assertThat(model.cancels).hasValue(1);
        servable.unload();
    }

    @Test
    void classesAreTheBestValuesWithTheirIndicesPerRow() throws Exception {
        FakeModel model = new FakeModel(
                FakeModel.config(4, Duration.ZERO, List.of(FLOATS), List.of(FLOATS_OUT)), PLAIN, FakeModel::identity);
        ModelServable servable = servable(model);
        InferenceResponse response = infer(
                        servable,
                        List.of(floats(Shape.of(2, 3), 0.1f, 0.7f, 0.2f, 3, 1, 2)),
                        List.of(new RequestedOutput("OUT0", 2)))
                .get(5, TimeUnit.SECONDS);
        assertThat(response.outputs().get(0).shape()).isEqualTo(Shape.of(2, 2));
        assertThat(texts(response.outputs().get(0)))
                .containsExactly("0.700000:1", "0.200000:2", "3.000000:0", "2.000000:2");
        response.close();
        servable.unload();
    }

    @Test
    void aModelThatForgetsABatchRowIsAnErrorOfTheModelNotAWrongAnswer() throws Exception {
        CountDownLatch gate = new CountDownLatch(1);
        FakeModel model = new FakeModel(
                FakeModel.config(8, Duration.ZERO, List.of(FLOATS), List.of(FLOATS_OUT)), PLAIN, (in, out) -> {
                    await(gate);
                    Tensor answer = Tensor.allocate("OUT0", DataType.FP32, Shape.of(1, 1));
                    answer.region().zero();
                    return List.of(answer);
                });
        ModelServable servable = servable(model);
        CompletableFuture<InferenceResponse> first = infer(servable, List.of(floats(Shape.of(1, 1), 0)), List.of());
        await(model.entered);
        CompletableFuture<InferenceResponse> a = infer(servable, List.of(floats(Shape.of(1, 1), 1)), List.of());
        CompletableFuture<InferenceResponse> b = infer(servable, List.of(floats(Shape.of(1, 1), 2)), List.of());
        gate.countDown();
        first.get(5, TimeUnit.SECONDS).close();
        assertThat(failure(a).getMessage()).contains("returned output 'OUT0' of shape [1,1] for a batch of 2 rows");
        assertThat(failure(b).code()).isEqualTo(ErrorCode.INTERNAL);
        servable.unload();
    }

    @Test
    void statisticsCountRequestsRowsAndRuns() throws Exception {
        FakeModel model = new FakeModel(
                FakeModel.config(8, Duration.ZERO, List.of(FLOATS), List.of(FLOATS_OUT)), PLAIN, FakeModel::identity);
        ModelServable servable = servable(model);
        infer(servable, List.of(floats(Shape.of(3, 1), 1, 2, 3)), List.of())
                .get(5, TimeUnit.SECONDS)
                .close();
        failure(infer(servable, List.of(), List.of()));
        String page = MetricsWriter.page(
                MetricsFormat.TEXT,
                p -> new EngineMetrics(p, List.of(servable), MetricsOptions.DEFAULT)
                        .write(new HostMetrics(), Map.of()));
        assertThat(page)
                .contains("nv_inference_request_success{model=\"m\",version=\"1\"} 1\n")
                .contains("nv_inference_count{model=\"m\",version=\"1\"} 3\n")
                .contains("nv_inference_exec_count{model=\"m\",version=\"1\"} 1\n")
                .contains("nv_inference_request_failure{model=\"m\",reason=\"OTHER\",version=\"1\"} 1\n")
                .contains("nereid_batch_size_bucket{model=\"m\",version=\"1\",le=\"4\"} 1\n")
                .contains("nereid_inference_in_flight{model=\"m\",version=\"1\"} 0\n");
        servable.unload();
    }

    private ModelServable servable(FakeModel model) {
        return ModelServable.of(
                new ServableId("m", 1),
                model,
                model.config(),
                new ModelStatistics(new ServableId("m", 1), model.config(), MetricsOptions.DEFAULT, Clock.system()),
                pool,
                new SchedulerOptions(100, InlinePolicy.MEASURED),
                InitialStateFiles.NONE,
                Clock.system());
    }

    private CompletableFuture<InferenceResponse> infer(
            ModelServable servable, List<Tensor> inputs, List<RequestedOutput> outputs) {
        CompletableFuture<InferenceResponse> done = new CompletableFuture<>();
        submit(servable, inputs, outputs, done);
        return done;
    }

    private InferenceCall submit(
            ModelServable servable,
            List<Tensor> inputs,
            List<RequestedOutput> outputs,
            CompletableFuture<InferenceResponse> done) {
        AtomicInteger closed = new AtomicInteger();
        handles.add(closed);
        InferenceRequest request = new InferenceRequest(
                ModelRef.latest("m"),
                "",
                inputs,
                outputs,
                Map.of(),
                Long.MAX_VALUE,
                Clock.system().nanos());
        return new RequestSubmitter(Clock.system())
                .submit(servable, closed::incrementAndGet, request, new ResponseSink() {
                    @Override
                    public void next(InferenceResponse response, boolean last) {
                        done.complete(response);
                    }

                    @Override
                    public void fail(ServingException e) {
                        done.completeExceptionally(e);
                    }
                });
    }

    private static ServingException failure(CompletableFuture<InferenceResponse> done) throws Exception {
        try {
            done.get(5, TimeUnit.SECONDS).close();
        } catch (ExecutionException e) {
            return (ServingException) e.getCause();
        }
        throw new AssertionError("answered, but a failure was expected");
    }

    private static void await(CountDownLatch latch) {
        try {
            if (!latch.await(5, TimeUnit.SECONDS)) {
                throw new IllegalStateException("the test did not open the gate");
            }
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private static Tensor floats(Shape shape, float... values) {
        Tensor t = Tensor.allocate("IN0", DataType.FP32, shape);
        for (int i = 0; i < values.length; i++) {
            t.buffer().putFloat(4 * i, values[i]);
        }
        return t;
    }

    private static float[] values(Tensor t) {
        float[] values = new float[t.byteLength() / 4];
        t.buffer().asFloatBuffer().get(values);
        return values;
    }

    private static Tensor text(Shape shape, String... values) {
        ByteBuffer bytes = ByteBuffer.allocate(1000).order(ByteOrder.LITTLE_ENDIAN);
        for (String value : values) {
            byte[] utf8 = value.getBytes(StandardCharsets.UTF_8);
            bytes.putInt(utf8.length).put(utf8);
        }
        return Tensor.over(
                "IN0",
                DataType.BYTES,
                shape,
                MemoryRegion.copyOf(bytes.array(), 0, bytes.position()),
                0,
                bytes.position());
    }

    private static List<String> texts(Tensor t) {
        List<String> texts = new ArrayList<>();
        ByteBuffer bytes = t.buffer();
        while (bytes.hasRemaining()) {
            byte[] utf8 = new byte[bytes.getInt()];
            bytes.get(utf8);
            texts.add(new String(utf8, StandardCharsets.UTF_8));
        }
        return texts;
    }
}
