// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.servable;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

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
import io.nereid.spi.config.parameters.PaddingPolicy;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.Test;

/** Requests of all lengths through the queue and the padded batches of one model; every response is recomputed. */
class LengthPaddingServingTest {
    private static final ServableId ID = new ServableId("m", 1);
    /** The padding value of the input {@code ids}. */
    private static final int FILL = -7;

    private final DeviceExecutor pool = new DeviceExecutor("test", 2);
    private final ConcurrentLinkedQueue<String> wrong = new ConcurrentLinkedQueue<>();
    private final ConcurrentLinkedQueue<Shape> runs = new ConcurrentLinkedQueue<>();

    @AfterEach
    void close() {
        pool.close();
        assertThat(wrong).isEmpty();
    }

    private static ModelConfig config(int maxBatch, DynamicBatching batching, Map<String, String> parameters) {
        return ModelConfig.builder("m")
                .maxBatchSize(maxBatch)
                .inputs(List.of(
                        new TensorSpec("ids", DataType.INT32, Shape.of(-1)),
                        new TensorSpec("wide", DataType.FP32, Shape.of(2, -1)),
                        new TensorSpec("other", DataType.INT32, Shape.of(-1))))
                .outputs(List.of(
                        new TensorSpec("tokens", DataType.INT32, Shape.of(-1, 2)),
                        new TensorSpec("pairs", DataType.INT32, Shape.of(-1, 2, -1)),
                        new TensorSpec("behind", DataType.FP32, Shape.of(2, -1)),
                        new TensorSpec("sum", DataType.INT32, Shape.of(1))))
                .batching(batching)
                .instances(1)
                .parameters(parameters)
                .build();
    }

    /** The model verifies what is padded, and computes outputs with the length, with it twice, and without it. */
    private ModelServable servable(ModelConfig config, int additional) {
        FakeModel model = new FakeModel(config, ModelTraits.DEFAULT, (in, out) -> {
            Tensor ids = in.get(0);
            Tensor wide = in.get(1);
            int rows = (int) ids.shape().dim(0);
            int length = (int) ids.shape().dim(1);
            runs.add(ids.shape());
            if (!wide.shape().equals(Shape.of(rows, 2, length))) {
                wrong.add("ids " + ids.shape() + ", wide " + wide.shape());
            }
            int[] values = CountedTensors.ints(ids);
            float[] floats = CountedTensors.floats(wide);
            for (int row = 0; row < rows; row++) {
                for (int i = 0; i < length; i++) {
                    boolean fill = values[row * length + i] == FILL;
                    for (int half = 0; half < 2; half++) {
                        if (fill != (floats[(row * 2 + half) * length + i] == 0.5f)) {
                            wrong.add("row " + row + " at " + i + " is padded in one input only");
                        }
                    }
                }
            }
            List<Tensor> answer = new ArrayList<>();
            for (String name : out) {
                answer.add(output(name, rows, length + additional, length, values, floats));
            }
            return answer;
        });
        return ModelServable.of(
                ID,
                model,
                config,
                new ModelStatistics(ID),
                pool,
                new SchedulerOptions(10_000, InlinePolicy.NEVER),
                InitialStateFiles.NONE,
                Clock.system());
    }

    private static Tensor output(String name, int rows, int size, int length, int[] ids, float[] wide) {
        Shape shape = switch (name) {
            case "tokens" -> Shape.of(rows, size, 2);
            case "pairs" -> Shape.of(rows, length, 2, length);
            case "behind" -> Shape.of(rows, 2, length);
            default -> Shape.of(rows, 1);
        };
        Tensor t = Tensor.allocate(name, name.equals("behind") ? DataType.FP32 : DataType.INT32, shape);
        ByteBuffer to = t.buffer();
        for (int row = 0; row < rows; row++) {
            int first = row * length;
            switch (name) {
                case "tokens" ->
                    IntStream.range(0, 2 * size)
                            .forEach(i -> to.putInt(i / 2 < length ? token(ids[first + i / 2], i % 2) : 0));
                case "pairs" ->
                    IntStream.range(0, 2 * length * length)
                            .forEach(i -> to.putInt(
                                    pair(ids[first + i / (2 * length)], i / length % 2, ids[first + i % length])));
                case "behind" -> IntStream.range(0, 2 * length).forEach(i -> to.putFloat(-wide[2 * first + i]));
                default ->
                    to.putInt(IntStream.range(0, length)
                            .map(i -> ids[first + i] == FILL ? 0 : ids[first + i])
                            .sum());
            }
        }
        return t;
    }

    private static int token(int id, int half) {
        return 10 * id + half;
    }

    private static int pair(int id, int half, int other) {
        return 1_000 * id + 10 * half + other;
    }

    /** A request, whose values identify their positions. */
    private record Sent(int number, int rows, int length, int others) {
        int id(int row, int i) {
            return 1 + (number * 31 + row * 7 + i * 3) % 1_000;
        }

        int[] ids() {
            return IntStream.range(0, rows * length)
                    .map(i -> id(i / Math.max(1, length), i % Math.max(1, length)))
                    .toArray();
        }

        float[] wide() {
            float[] all = new float[rows * 2 * length];
            for (int i = 0; i < all.length; i++) {
                all[i] = 1 + number + i;
            }
            return all;
        }

        List<Tensor> inputs(CountedTensors tensors) {
            return List.of(
                    tensors.ints("ids", Shape.of(rows, length), ids()),
                    tensors.floats("wide", Shape.of(rows, 2, length), wide()),
                    tensors.ints("other", Shape.of(rows, others), new int[rows * others]));
        }

        void check(List<Tensor> outputs) {
            for (Tensor t : outputs) {
                try (Tensor alone = output(t.name(), rows, length, length, ids(), wide())) {
                    assertThat(t.shape()).as("%s of %s", t.name(), this).isEqualTo(alone.shape());
                    assertThat(CountedTensors.ints(t))
                            .as("%s of %s", t.name(), this)
                            .isEqualTo(CountedTensors.ints(alone));
                }
            }
        }
    }

    private static final String INPUTS = "ids=" + FILL + ", wide=0.5";

    @RepeatedTest(10)
    void everyAnswerIsWhatItWouldBeAlone(RepetitionInfo info) throws Exception {
        Random random = new Random(977L * info.getCurrentRepetition());
        int maxBatch = 2 + random.nextInt(7);
        boolean splits = random.nextInt(3) == 0;
        String buckets = List.of("none", "powers", "4, 9").get(random.nextInt(3));
        DynamicBatching batching = new DynamicBatching(
                        List.of(),
                        random.nextBoolean() ? Duration.ZERO : Duration.ofNanos(100_000),
                        random.nextBoolean())
                .withBatchSizePolicy(new BatchSizePolicy(
                        random.nextBoolean() ? List.of() : List.of(maxBatch),
                        random.nextBoolean(),
                        splits ? 2 * maxBatch : 0,
                        0));
        ModelConfig config = config(
                maxBatch,
                batching,
                Map.of(
                        PaddingPolicy.INPUTS,
                        INPUTS,
                        PaddingPolicy.BUCKETS,
                        buckets,
                        PaddingPolicy.ORDER,
                        random.nextInt(3) == 0 ? "arrival" : "length"));
        ModelServable servable = servable(config, 0);
        CountedTensors tensors = new CountedTensors();
        List<Sent> sent = new ArrayList<>();
        List<Client> clients = new ArrayList<>();
        for (int i = 1; i <= 120; i++) {
            Sent s = new Sent(
                    i, 1 + random.nextInt(splits ? 2 * maxBatch : maxBatch), random.nextInt(14), 1 + random.nextInt(2));
            Client own = new Client(servable, Clock.system());
            own.send(s.inputs(tensors), random.nextInt(3) == 0 ? new String[] {"sum", "tokens"} : new String[0]);
            sent.add(s);
            clients.add(own);
        }
        for (int i = 0; i < sent.size(); i++) {
            InferenceResponse response = clients.get(i).next().response();
            assertThat(response).as("%s", sent.get(i)).isNotNull();
            sent.get(i).check(response.outputs());
            response.close();
            clients.get(i).assertNothingUnderWay();
        }
        servable.unload();
        tensors.assertAllFreed();
        TreeSet<Long> lengths = new TreeSet<>();
        runs.forEach(shape -> lengths.add(shape.dim(1)));
        if (buckets.equals("powers")) {
            assertThat(lengths).isSubsetOf(0L, 1L, 2L, 4L, 8L, 16L);
        } else if (buckets.equals("4, 9")) {
            assertThat(lengths).isSubsetOf(4L, 9L, 10L, 11L, 12L, 13L);
        }
    }

    /** Returns what was answered to requests that wait together for the first run of a model with this parameter. */
    private List<InferenceResponse> together(ModelServable servable, List<Sent> all) throws Exception {
        List<Client> clients = new ArrayList<>();
        for (Sent s : all) {
            Client own = new Client(servable, Clock.system());
            own.send(s.inputs(new CountedTensors()));
            clients.add(own);
        }
        List<InferenceResponse> responses = new ArrayList<>();
        for (Client own : clients) {
            responses.add(own.next().response());
        }
        return responses;
    }

    /** Closes batches of four rows, and no others for a long time. */
    private static ModelConfig four(Map<String, String> parameters) {
        return config(4, new DynamicBatching(List.of(), Duration.ofSeconds(60), false), parameters);
    }

    @Test
    void anOutputOfAnotherSizeIsNotCutAndPaddingEnds() throws Exception {
        ModelServable servable =
                servable(four(Map.of(PaddingPolicy.INPUTS, INPUTS, PaddingPolicy.ORDER, "arrival")), 1);
        List<Sent> all =
                IntStream.range(1, 5).mapToObj(i -> new Sent(i, 1, i, 1)).toList();
        List<InferenceResponse> responses = together(servable, all);
        for (int i = 0; i < 4; i++) {
            // As the model returns it for the request alone: a position more.
            assertThat(responses.get(i).outputs().get(0).shape()).isEqualTo(Shape.of(1, i + 2, 2));
            all.get(i).check(responses.get(i).outputs().subList(1, 4));
            responses.get(i).close();
        }
        assertThat(runs)
                .containsExactly(Shape.of(4, 4), Shape.of(1, 1), Shape.of(1, 2), Shape.of(1, 3), Shape.of(1, 4));
        servable.unload();
    }

    @Test
    void outputsThatAreNotNamedAreNotCut() throws Exception {
        ModelServable servable = servable(
                four(Map.of(
                        PaddingPolicy.INPUTS,
                        INPUTS,
                        PaddingPolicy.ORDER,
                        "arrival",
                        PaddingPolicy.OUTPUTS,
                        "pairs, behind")),
                1);
        List<Sent> all =
                IntStream.range(1, 5).mapToObj(i -> new Sent(i, 1, i, 1)).toList();
        List<InferenceResponse> responses = together(servable, all);
        for (int i = 0; i < 4; i++) {
            assertThat(responses.get(i).outputs().get(0).shape()).isEqualTo(Shape.of(1, 5, 2));
            all.get(i).check(responses.get(i).outputs().subList(1, 4));
            responses.get(i).close();
        }
        assertThat(runs).containsExactly(Shape.of(4, 4));
        servable.unload();
    }

    @Test
    void inputsOfDifferentLengthsInOneRequestAreNotPadded() throws Exception {
        ModelServable servable = servable(
                config(4, DynamicBatching.EAGER, Map.of(PaddingPolicy.INPUTS, INPUTS, PaddingPolicy.BUCKETS, "8")), 0);
        CountedTensors tensors = new CountedTensors();
        Client client = new Client(servable, Clock.system());
        client.send(List.of(
                tensors.ints("ids", Shape.of(1, 2), 1, 2),
                tensors.floats("wide", Shape.of(1, 2, 1), 1, 2),
                tensors.ints("other", Shape.of(1, 1), 0)));
        InferenceResponse response = client.next().response();
        if (response != null) {
            response.close();
        }
        // The model sees the request as it came; this one records that the lengths differ.
        assertThat(wrong).first().isEqualTo("ids [1,2], wide [1,2,1]");
        wrong.clear();
        servable.unload();
        tensors.assertAllFreed();
    }

    @Test
    void aModelThatGetsRequestsCannotPad() {
        ModelConfig config = config(4, DynamicBatching.EAGER, Map.of(PaddingPolicy.INPUTS, INPUTS));
        FakeModel model =
                new FakeModel(config, ModelTraits.builder().takesRequests(true).build(), (in, out) -> List.of());
        assertThatThrownBy(() -> ModelServable.of(
                        ID,
                        model,
                        config,
                        new ModelStatistics(ID),
                        pool,
                        new SchedulerOptions(10, InlinePolicy.NEVER),
                        InitialStateFiles.NONE,
                        Clock.system()))
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT))
                .hasMessageContaining("parameter batching_padding of model 'm'");
    }
}
