// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine;

import static io.nereid.engine.EngineFixture.failure;
import static io.nereid.engine.EngineFixture.get;
import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.device.Device;
import io.nereid.device.DeviceLimits;
import io.nereid.device.DeviceTransfers.Direction;
import io.nereid.device.Devices;
import io.nereid.device.MemoryPlacement;
import io.nereid.engine.options.CacheOptions;
import io.nereid.engine.options.EngineOptions;
import io.nereid.observe.RequestTrace;
import io.nereid.repository.RepositorySource;
import io.nereid.spi.InferenceCall;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceRequest.Options;
import io.nereid.spi.InferenceResponse;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ResponseSink;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tensors that stay on a GPU between the members of an ensemble. Every test ends with the GPUs' memory as it was. */
class GpuEnsembleTest {
    private static final String STAY = "parameters { key: 'stay' value { string_value: 'yes' } } ";
    private static final String GPU_0 = STAY + "instance_group { gpus: 0 } ";

    private final GpuBackend backend = new GpuBackend();
    private final PuppetBackend processors = new PuppetBackend();
    private final FakeDeviceDriver driver = new FakeDeviceDriver();
    private Devices devices = new Devices(driver, DeviceLimits.DEFAULT);
    private Engine engine;

    @TempDir
    Path root;

    private void model(String name, String config) throws IOException {
        Path directory = Files.createDirectories(root.resolve(name).resolve("1"));
        Files.writeString(directory.resolve("model.gpu"), "weights");
        Files.writeString(root.resolve(name).resolve("config.pbtxt"), "backend: 'gpu' max_batch_size: 4 " + config);
    }

    private void processorModel(String name) throws IOException {
        Path directory = Files.createDirectories(root.resolve(name).resolve("1"));
        Files.writeString(directory.resolve("model.puppet"), "");
    }

    /** An ensemble whose steps are {@code MODEL FROM TO}; its outputs are those whose names start with OUT. */
    private void ensemble(String... steps) throws IOException {
        StringBuilder text = new StringBuilder(
                "platform: 'ensemble' max_batch_size: 4 " + "input { name: 'IN' data_type: TYPE_FP32 dims: -1 } ");
        StringBuilder scheduling = new StringBuilder();
        for (String step : steps) {
            String[] words = step.split(" ");
            scheduling.append("step { model_name: '" + words[0] + "' model_version: -1 input_map { key: 'IN0' value: '"
                    + words[1] + "' } output_map { key: 'OUT0' value: '" + words[2] + "' } } ");
            if (words[2].startsWith("OUT")) {
                text.append("output { name: '" + words[2] + "' data_type: TYPE_FP32 dims: -1 } ");
            }
        }
        Files.createDirectories(root.resolve("e").resolve("1"));
        Files.writeString(
                root.resolve("e").resolve("config.pbtxt"), text + "ensemble_scheduling { " + scheduling + "}");
    }

    private void start() throws Exception {
        engine = new Engine(
                EngineOptions.builder(List.of(root))
                        .repository(RepositorySource.Options.DEFAULT.withSettle(Duration.ZERO))
                        .devices(devices)
                        .cache(new CacheOptions("local", Map.of("size", "100000")))
                        .deviceThreads(2)
                        .build(),
                List.of(backend, processors),
                Clock.system());
        get(engine.start());
        assertThat(engine.ready()).isTrue();
    }

    @AfterEach
    void nothingIsLeftOnTheDevices() throws Exception {
        engine.close();
        for (Device device : devices.all()) {
            // What was released is freed on the thread of the device.
            CompletableFuture<Void> freed = new CompletableFuture<>();
            devices.transfers().thread(device.ordinal()).execute(() -> freed.complete(null));
            get(freed);
            assertThat(devices.used(MemoryPlacement.device(device.ordinal()))).isZero();
        }
        assertThat(driver.allocated()).isZero();
        // No event loop and no thread of the processors waits for a GPU.
        assertThat(driver.copying).allMatch(name -> name.startsWith("gpu-"));
        assertThat(driver.freeing).allMatch(name -> name.startsWith("gpu-") || name.startsWith("device-copy-"));
        devices.close();
    }

    private InferenceCall infer(float value, long deadline, CompletableFuture<List<Float>> done) {
        return infer(value, deadline, Options.NONE, done);
    }

    private InferenceCall infer(float value, long deadline, Options options, CompletableFuture<List<Float>> done) {
        return engine.infer(
                new InferenceRequest(
                        ModelRef.latest("e"),
                        "",
                        List.of(EngineFixture.floats("IN", Shape.of(1, 1), value)),
                        List.of(),
                        Map.of(),
                        deadline,
                        Clock.system().nanos(),
                        options),
                new ResponseSink() {
                    @Override
                    public void next(InferenceResponse response, boolean last) {
                        List<Float> values = new ArrayList<>();
                        for (Tensor output : response.outputs()) {
                            assertThat(output.deviceRegion()).isNull();
                            values.add(output.buffer().getFloat(0));
                        }
                        response.close();
                        done.complete(values);
                    }

                    @Override
                    public void fail(ServingException e) {
                        done.completeExceptionally(e);
                    }
                });
    }

    private CompletableFuture<List<Float>> infer(float value) {
        CompletableFuture<List<Float>> done = new CompletableFuture<>();
        InferenceCall unused = infer(value, Long.MAX_VALUE, done);
        return done;
    }

    private long copies(int device, Direction direction) {
        return devices.transfers().copied(device, direction).copies();
    }

    @Test
    void membersOnOneGpuCopyOnceInAndOnceOut() throws Exception {
        model("a", GPU_0);
        model("b", GPU_0);
        model("c", GPU_0);
        ensemble("a IN x", "b x y", "c y OUT");
        start();
        for (int i = 1; i <= 3; i++) {
            assertThat(get(infer(i))).containsExactly((float) i);
            assertThat(copies(0, Direction.TO_DEVICE)).isEqualTo(i);
            assertThat(copies(0, Direction.FROM_DEVICE)).isEqualTo(i);
        }
        assertThat(backend.inputs.subList(0, 3)).containsExactly("a host [1,1]", "b 0 [1,1]", "c 0 [1,1]");
    }

    @Test
    void readersOnProcessorsAndClientsShareOneCopy() throws Exception {
        model("a", GPU_0);
        model("b", GPU_0);
        processorModel("cpu");
        ensemble("a IN OUT_A", "b OUT_A OUT_B", "cpu OUT_A OUT_C", "a OUT_C OUT_D");
        start();
        assertThat(get(infer(5))).containsExactly(5f, 5f, 6f, 6f);
        // The tensor of a for b, cpu and the client; that of b; that of the second a.
        assertThat(copies(0, Direction.FROM_DEVICE)).isEqualTo(3);
        assertThat(copies(0, Direction.TO_DEVICE)).isEqualTo(2);
        assertThat(backend.inputs).contains("b 0 [1,1]").doesNotContain("a 0 [1,1]");
    }

    @Test
    void nothingStaysForAMemberOnAnotherGpuOrOneThatDoesNotTakeIt() throws Exception {
        model("a", GPU_0);
        model("other", STAY + "instance_group { gpus: 1 }");
        model("plain", "instance_group { gpus: 0 }");
        ensemble("a IN x", "other x y", "plain y z", "a z OUT");
        start();
        assertThat(get(infer(5))).containsExactly(5f);
        assertThat(backend.inputs).containsExactly("a host [1,1]", "other host [1,1]", "a host [1,1]");
        assertThat(List.of(copies(0, Direction.TO_DEVICE), copies(1, Direction.TO_DEVICE)))
                .containsExactly(3L, 1L);
        assertThat(List.of(copies(0, Direction.FROM_DEVICE), copies(1, Direction.FROM_DEVICE)))
                .containsExactly(3L, 1L);
    }

    @Test
    void aResponseCacheReadsThemOnTheHost() throws Exception {
        model("a", GPU_0);
        model("b", GPU_0);
        model("cached", GPU_0 + "response_cache { enable: true }");
        ensemble("a IN x", "cached x y", "b y OUT");
        start();
        for (int i = 0; i < 2; i++) {
            assertThat(get(infer(5))).containsExactly(5f);
        }
        assertThat(backend.inputs)
                .containsExactly("a host [1,1]", "cached host [1,1]", "b host [1,1]", "a host [1,1]", "b host [1,1]");
    }

    /** Reads the tensors of a request and of its steps. */
    private static final class TensorTrace extends RecordingTrace {
        TensorTrace() {
            super(true);
        }

        @Override
        public void tensors(String activity, List<Tensor> some) {
            some.forEach(t -> recorded.add(activity + " " + t.buffer().getFloat(0)));
        }

        @Override
        public RequestTrace child(String model) {
            return this;
        }

        @Override
        public void end() {}
    }

    @Test
    void aTraceOfTensorsReadsThemOnTheHost() throws Exception {
        model("a", GPU_0);
        model("b", GPU_0);
        ensemble("a IN x", "b x OUT");
        start();
        CompletableFuture<List<Float>> done = new CompletableFuture<>();
        InferenceCall unused = infer(6, Long.MAX_VALUE, new Options(0, 0, null, new TensorTrace()), done);
        assertThat(get(done)).containsExactly(6f);
        assertThat(backend.inputs).containsExactly("a host [1,1]", "b host [1,1]");
    }

    @Test
    void anInstanceOnAnotherGpuOfTheSameModelGetsItByTheHost() throws Exception {
        model("a", GPU_0);
        model("b", STAY + "instance_group { gpus: [ 0, 1 ] }");
        ensemble("a IN x", "b x OUT");
        start();
        CountDownLatch gate = new CountDownLatch(1);
        backend.gates.put("b", gate);
        List<CompletableFuture<List<Float>>> all = List.of(infer(5), infer(6));
        for (int i = 0; i < 4; i++) {
            assertThat(backend.computing.poll(10, TimeUnit.SECONDS)).isNotNull();
        }
        // One run on each GPU.
        assertThat(backend.inputs).contains("b 0 [1,1]", "b host [1,1]");
        gate.countDown();
        assertThat(get(all.get(0))).containsExactly(5f);
        assertThat(get(all.get(1))).containsExactly(6f);
        assertThat(copies(1, Direction.TO_DEVICE)).isEqualTo(1);
    }

    @Test
    void aBatchIsGatheredAndSplitOnTheGpu() throws Exception {
        model("a", GPU_0);
        model("b", GPU_0 + "dynamic_batching { preferred_batch_size: 3 max_queue_delay_microseconds: 10000000 }");
        model("c", GPU_0);
        ensemble("a IN x", "b x y", "c y OUT");
        start();
        List<CompletableFuture<List<Float>>> all = List.of(infer(5), infer(6), infer(7));
        for (int i = 0; i < 3; i++) {
            assertThat(get(all.get(i))).containsExactly(5f + i);
        }
        assertThat(backend.inputs).contains("b 0 [3,1]");
        assertThat(backend.inputs.stream().filter("c 0 [1,1]"::equals)).hasSize(3);
        assertThat(copies(0, Direction.TO_DEVICE)).isEqualTo(3);
        assertThat(copies(0, Direction.FROM_DEVICE)).isEqualTo(3);
    }

    @Test
    void aBatchForWhichTheGpuHasNoMemoryIsGatheredOnTheHost() throws Exception {
        // Three outputs of a fit, the slab of b beside them does not.
        devices = new Devices(driver, new DeviceLimits(DeviceLimits.PINNED_BYTES, Map.of(0, 20L), Map.of(), 6, 0));
        model("a", GPU_0);
        model("b", GPU_0 + "dynamic_batching { preferred_batch_size: 3 max_queue_delay_microseconds: 10000000 }");
        ensemble("a IN x", "b x OUT");
        start();
        List<CompletableFuture<List<Float>>> all = List.of(infer(5), infer(6), infer(7));
        for (int i = 0; i < 3; i++) {
            // The run itself has no memory for its output beside the inputs of the three.
            assertThat(failure(all.get(i)).code()).isEqualTo(ErrorCode.RESOURCE_EXHAUSTED);
        }
        assertThat(backend.inputs).contains("b host [3,1]");
    }

    @Test
    void aCancelledRequestLeavesNothing() throws Exception {
        model("a", GPU_0);
        model("b", GPU_0);
        ensemble("a IN x", "b x OUT");
        start();
        backend.gates.put("b", new CountDownLatch(1));
        CompletableFuture<List<Float>> done = new CompletableFuture<>();
        InferenceCall call = infer(5, Long.MAX_VALUE, done);
        for (int i = 0; i < 2; i++) {
            assertThat(backend.computing.poll(10, TimeUnit.SECONDS)).isNotNull();
        }
        // The output of a, and that of b.
        assertThat(devices.used(MemoryPlacement.device(0))).isEqualTo(8);
        call.cancel();
        assertThat(failure(done).code()).isEqualTo(ErrorCode.CANCELLED);
    }

    @Test
    void requestsThatTimeOutInAQueueLeaveNothing() throws Exception {
        model("a", GPU_0);
        model("b", GPU_0);
        ensemble("a IN x", "b x OUT");
        start();
        CountDownLatch gate = new CountDownLatch(1);
        backend.gates.put("b", gate);
        CompletableFuture<List<Float>> running = infer(5);
        for (int i = 0; i < 2; i++) {
            assertThat(backend.computing.poll(10, TimeUnit.SECONDS)).isNotNull();
        }
        List<CompletableFuture<List<Float>>> late = new ArrayList<>();
        for (int i = 0; i < 5; i++) {
            CompletableFuture<List<Float>> done = new CompletableFuture<>();
            InferenceCall unused = infer(6, Clock.system().nanos() + 200_000_000, done);
            late.add(done);
        }
        for (CompletableFuture<List<Float>> one : late) {
            assertThat(failure(one).code()).isEqualTo(ErrorCode.DEADLINE_EXCEEDED);
        }
        gate.countDown();
        assertThat(get(running)).containsExactly(5f);
    }

    @Test
    void aMemberThatFailsLeavesNothing() throws Exception {
        model("a", GPU_0);
        model("b", GPU_0);
        ensemble("a IN x", "b x y", "a y OUT");
        start();
        backend.failing.add("b");
        assertThat(failure(infer(5)).getMessage()).contains("the kernel has failed");
        backend.failing.clear();
        assertThat(get(infer(6))).containsExactly(6f);
    }

    @Test
    void aLostGpuFailsItsRequestsAndLeavesNothingInTheAccount() throws Exception {
        model("a", GPU_0);
        model("b", GPU_0);
        ensemble("a IN OUT_A", "b OUT_A OUT_B");
        start();
        assertThat(get(infer(5))).containsExactly(5f, 5f);
        CountDownLatch gate = new CountDownLatch(1);
        backend.gates.put("a", gate);
        CompletableFuture<List<Float>> lost = infer(6);
        for (int i = 0; i < 3; i++) {
            assertThat(backend.computing.poll(10, TimeUnit.SECONDS)).isNotNull();
        }
        driver.lost.add(0);
        gate.countDown();
        ServingException failure = failure(lost);
        assertThat(failure.code()).isEqualTo(ErrorCode.UNAVAILABLE);
        assertThat(failure.getMessage()).contains("device 0 is lost: fell off the bus");
    }
}
