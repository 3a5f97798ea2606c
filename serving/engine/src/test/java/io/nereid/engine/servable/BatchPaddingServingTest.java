// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.servable;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.backend.ModelTraits;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.engine.CountedTensors;
import io.nereid.engine.FakeModel;
import io.nereid.engine.statistics.ModelStatistics;
import io.nereid.scheduling.InitialStateFiles;
import io.nereid.scheduling.InlinePolicy;
import io.nereid.scheduling.SchedulerOptions;
import io.nereid.scheduling.execution.DeviceExecutor;
import io.nereid.spi.InferenceResponse;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.BatchSizePolicy;
import io.nereid.spi.config.DynamicBatching;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.Test;

/** Requests of all sizes and shapes through the queue and the batches of one model; every response is recomputed. */
class BatchPaddingServingTest {
    private static final ServableId ID = new ServableId("m", 1);

    private final DeviceExecutor pool = new DeviceExecutor("test", 2);
    private final ConcurrentLinkedQueue<String> wrong = new ConcurrentLinkedQueue<>();
    private final ConcurrentLinkedQueue<Integer> runs = new ConcurrentLinkedQueue<>();

    @AfterEach
    void close() {
        pool.close();
        assertThat(wrong).isEmpty();
    }

    private ModelServable servable(int maxBatch, int instances, DynamicBatching batching, ModelStatistics statistics) {
        List<TensorSpec> inputs = List.of(
                new TensorSpec("a", DataType.INT32, Shape.of(-1, -1)),
                new TensorSpec("b", DataType.BYTES, Shape.of(-1)));
        List<TensorSpec> outputs = List.of(
                new TensorSpec("a2", DataType.INT32, Shape.of(-1, -1)),
                new TensorSpec("b2", DataType.BYTES, Shape.of(-1)));
        ModelConfig config = ModelConfig.builder("m")
                .maxBatchSize(maxBatch)
                .inputs(inputs)
                .outputs(outputs)
                .batching(batching)
                .instances(instances)
                .build();
        BatchSizePolicy fit = batching.batchSizePolicy();
        FakeModel model = new FakeModel(config, ModelTraits.DEFAULT, (in, out) -> {
            int rows = (int) in.get(0).shape().dim(0);
            runs.add(rows);
            if (rows > maxBatch
                    || (!fit.allowedSizes().isEmpty() && !fit.allowedSizes().contains(rows))) {
                wrong.add("a run of " + rows + " rows");
            }
            List<Tensor> answer = new ArrayList<>();
            for (String name : out) {
                answer.add(
                        name.equals("a2")
                                ? doubled(in.get(0))
                                : in.get(1).retainAs("b2", in.get(1).shape()));
            }
            return answer;
        });
        return ModelServable.of(
                ID,
                model,
                config,
                statistics,
                pool,
                new SchedulerOptions(10_000, InlinePolicy.NEVER),
                InitialStateFiles.NONE,
                Clock.system());
    }

    private static Tensor doubled(Tensor in) {
        Tensor out = Tensor.allocate("a2", DataType.INT32, in.shape());
        ByteBuffer to = out.buffer();
        for (int v : CountedTensors.ints(in)) {
            to.putInt(2 * v);
        }
        return out;
    }

    /** The request: its values identify their positions. */
    private record Sent(int number, int rows, int width, int height, int texts, boolean onlyInts) {
        int value(int row, int x, int y) {
            return number * 100_000 + row * 1_000 + x * 30 + y;
        }

        String text(int row, int i) {
            return "t" + number + "." + row + "." + "x".repeat(i);
        }

        List<Tensor> inputs(CountedTensors tensors) {
            int[] values = new int[rows * width * height];
            String[] all = new String[rows * texts];
            int at = 0;
            for (int row = 0; row < rows; row++) {
                for (int x = 0; x < width; x++) {
                    for (int y = 0; y < height; y++) {
                        values[at++] = value(row, x, y);
                    }
                }
                for (int i = 0; i < texts; i++) {
                    all[row * texts + i] = text(row, i);
                }
            }
            return List.of(
                    tensors.ints("a", Shape.of(rows, width, height), values),
                    tensors.texts("b", Shape.of(rows, texts), all));
        }

        /** The response may be larger than the request, when other requests of its batch were. */
        void check(List<Tensor> outputs, boolean mayBePadded) {
            Shape shape = outputs.get(0).shape();
            assertThat(shape.dim(0)).isEqualTo(rows);
            int w = (int) shape.dim(1);
            int h = (int) shape.dim(2);
            int[] values = CountedTensors.ints(outputs.get(0));
            assertThat(values).hasSize(rows * w * h);
            if (!mayBePadded) {
                assertThat(shape).isEqualTo(Shape.of(rows, width, height));
            }
            int at = 0;
            for (int row = 0; row < rows; row++) {
                for (int x = 0; x < w; x++) {
                    for (int y = 0; y < h; y++) {
                        int own = x < width && y < height ? 2 * value(row, x, y) : 0;
                        if (own != 0 || number == 0) {
                            assertThat(values[at])
                                    .as("%s at %s %s %s", this, row, x, y)
                                    .isEqualTo(own);
                        } else {
                            // padding is the first element of the piece that ran, so of one of the rows
                            assertThat(values[at] / 2 / 100_000).isEqualTo(number);
                            assertThat(values[at] / 2 % 1_000)
                                    .as("%s is padded", this)
                                    .isZero();
                        }
                        at++;
                    }
                }
            }
            if (!onlyInts) {
                List<String> all = CountedTensors.texts(outputs.get(1));
                int n = (int) outputs.get(1).shape().dim(1);
                for (int row = 0; row < rows; row++) {
                    for (int i = 0; i < texts; i++) {
                        assertThat(all.get(row * n + i)).isEqualTo(text(row, i));
                    }
                }
            }
        }
    }

    @RepeatedTest(12)
    void everyAnswerIsWhatItWouldBeAlone(RepetitionInfo info) throws Exception {
        long seed = 4_409L * info.getCurrentRepetition();
        Random random = new Random(seed);
        CountedTensors tensors = new CountedTensors();
        int maxBatch = 1 + random.nextInt(8);
        boolean pads = random.nextBoolean();
        boolean cuts = random.nextBoolean();
        List<Integer> allowed = new ArrayList<>();
        if (random.nextInt(3) > 0) {
            for (int size = 1; size < maxBatch; size++) {
                if (random.nextInt(3) == 0) {
                    allowed.add(size);
                }
            }
            allowed.add(maxBatch);
        }
        BatchSizePolicy fit = new BatchSizePolicy(List.copyOf(allowed), pads, cuts ? maxBatch * 3 : 0, 0);
        DynamicBatching batching = new DynamicBatching(
                        List.of(),
                        random.nextBoolean() ? Duration.ZERO : Duration.ofNanos(100_000),
                        random.nextBoolean())
                .withBatchSizePolicy(fit);
        ModelStatistics statistics = new ModelStatistics(ID);
        ModelServable servable = servable(maxBatch, 1 + random.nextInt(2), batching, statistics);
        Client client = new Client(servable, Clock.system());
        Deque<Sent> sent = new ArrayDeque<>();
        List<Client> clients = new ArrayList<>();
        long rows = 0;
        for (int i = 1; i <= 150; i++) {
            Sent s = new Sent(
                    i,
                    1 + random.nextInt(cuts ? maxBatch * 3 : maxBatch),
                    1 + random.nextInt(3),
                    1 + random.nextInt(3),
                    1 + random.nextInt(3),
                    random.nextInt(3) == 0);
            Client own = new Client(servable, Clock.system());
            sent.add(s);
            clients.add(own);
            rows += s.rows();
            if (s.onlyInts()) {
                own.send(s.inputs(tensors), "a2");
            } else {
                own.send(s.inputs(tensors));
            }
        }
        for (Client own : clients) {
            Sent s = sent.remove();
            Client.Answer answer = own.next();
            InferenceResponse response = answer.response();
            if (response == null) {
                throw new AssertionError("seed " + seed + ": " + s + " failed", answer.failure());
            }
            s.check(response.outputs(), pads && s.rows() <= maxBatch);
            response.close();
            own.assertNothingUnderWay();
        }
        client.assertNothingUnderWay();
        servable.unload();
        tensors.assertAllFreed();
        assertThat(statistics.inferences.sum()).as("rows answered").isEqualTo(rows);
        long ran = runs.stream().mapToLong(Integer::longValue).sum();
        assertThat(statistics.batches.padding.sum()).as("rows added").isEqualTo(ran - rows);
    }

    @Test
    void aRequestOfSeveralBatchesIsAnsweredOnceAndCountsOnce() throws Exception {
        CountedTensors tensors = new CountedTensors();
        ModelStatistics statistics = new ModelStatistics(ID);
        DynamicBatching batching =
                DynamicBatching.EAGER.withBatchSizePolicy(new BatchSizePolicy(List.of(4), false, 11, 10));
        ModelServable servable = servable(4, 1, batching, statistics);
        Client client = new Client(servable, Clock.system());
        Sent s = new Sent(3, 10, 2, 1, 2, false);
        client.send(s.inputs(tensors), "b2", "a2");
        InferenceResponse response = client.next().response();
        if (response == null) {
            throw new AssertionError("no answer");
        }
        assertThat(response.outputs()).extracting(Tensor::name).containsExactly("b2", "a2");
        s.check(List.of(response.outputs().get(1), response.outputs().get(0)), false);
        assertThat(response.id()).isEqualTo("id-7");
        response.close();
        assertThat(runs).containsExactly(4, 4, 4);
        assertThat(statistics.success()).isEqualTo(1);
        assertThat(statistics.inferences.sum()).isEqualTo(10);
        assertThat(statistics.batches.padding.sum()).isEqualTo(2);
        client.assertNothingUnderWay();

        List<Tensor> tooMany = new Sent(4, 12, 1, 1, 1, false).inputs(tensors);
        try {
            client.send(tooMany);
            assertThat(client.nextFailure())
                    .hasMessageContaining("Task size 12 is larger than maximum input batch size 11");
        } catch (ServingException e) {
            assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
            assertThat(e).hasMessageContaining("Task size 12 is larger than maximum input batch size 11");
        }
        servable.unload();
    }

    @Test
    void waitingBatchesBeyondTheLimitAreRejectedAtOnce() throws Exception {
        CountedTensors tensors = new CountedTensors();
        CountDownLatch go = new CountDownLatch(1);
        List<TensorSpec> io = List.of(new TensorSpec("a", DataType.INT32, Shape.of(1)));
        ModelConfig config = ModelConfig.builder("m")
                .maxBatchSize(2)
                .inputs(io)
                .outputs(List.of(new TensorSpec("o", DataType.INT32, Shape.of(1))))
                .batching(DynamicBatching.EAGER.withBatchSizePolicy(new BatchSizePolicy(List.of(), false, 0, 1)))
                .instances(1)
                .build();
        FakeModel model = new FakeModel(config, ModelTraits.DEFAULT, (in, out) -> {
            try {
                go.await();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
            return FakeModel.identity(in, out);
        });
        ModelServable servable = ModelServable.of(
                ID,
                model,
                config,
                new ModelStatistics(ID),
                pool,
                new SchedulerOptions(100, InlinePolicy.NEVER),
                InitialStateFiles.NONE,
                Clock.system());
        Client client = new Client(servable, Clock.system());
        client.send(List.of(tensors.ints("a", Shape.of(2, 1), 1, 2)));
        model.entered.await();
        client.send(List.of(tensors.ints("a", Shape.of(2, 1), 3, 4)));
        Client refused = new Client(servable, Clock.system());
        ServingException failure;
        try {
            refused.send(List.of(tensors.ints("a", Shape.of(1, 1), 5)));
            failure = refused.nextFailure();
        } catch (ServingException e) {
            failure = e;
        }
        assertThat(failure.code()).isEqualTo(ErrorCode.UNAVAILABLE);
        assertThat(failure)
                .hasMessageContaining("The batch scheduling queue to which this task was submitted is full; currently 1"
                        + " batches enqueued and max_enqueued_batches is 1");
        go.countDown();
        assertThat(client.nextText()).isEqualTo("o 1 2.");
        assertThat(client.nextText()).isEqualTo("o 3 4.");
        servable.unload();
    }
}
