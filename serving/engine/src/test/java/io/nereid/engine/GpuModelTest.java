// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine;

import static io.nereid.engine.EngineFixture.failure;
import static io.nereid.engine.EngineFixture.get;
import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.backend.InstancePlacement;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.device.Device;
import io.nereid.device.DeviceLimits;
import io.nereid.device.Devices;
import io.nereid.device.MemoryPlacement;
import io.nereid.engine.options.EngineOptions;
import io.nereid.repository.RepositorySource;
import io.nereid.spi.InferenceCall;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceRequest.Options;
import io.nereid.spi.InferenceResponse;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ResponseSink;
import io.nereid.spi.ServableState;
import io.nereid.tensor.Shape;
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

/** Models on GPUs: placement, admission, threads, and the loss of a device. */
class GpuModelTest {
    private final GpuBackend backend = new GpuBackend();
    private final PuppetBackend processors = new PuppetBackend();
    private final FakeDeviceDriver driver = new FakeDeviceDriver();
    private final Devices devices =
            new Devices(driver, new DeviceLimits(DeviceLimits.PINNED_BYTES, Map.of(), Map.of(1, 0.5), 6, 0));
    private Engine engine;

    @TempDir
    Path root;

    private void model(String name, String config) throws IOException {
        Path directory = Files.createDirectories(root.resolve(name).resolve("1"));
        Files.writeString(directory.resolve("model.gpu"), "w".repeat(50));
        Files.writeString(root.resolve(name).resolve("config.pbtxt"), "backend: 'gpu' " + config);
    }

    private void processorModel(String name) throws IOException {
        Path directory = Files.createDirectories(root.resolve(name).resolve("1"));
        Files.writeString(directory.resolve("model.puppet"), "");
    }

    private void start() throws Exception {
        start(Map.of());
    }

    private void start(Map<String, Map<String, String>> hostPolicies) throws Exception {
        engine = new Engine(
                EngineOptions.builder(List.of(root))
                        .repository(RepositorySource.Options.DEFAULT.withSettle(Duration.ZERO))
                        .devices(devices)
                        .deviceThreads(2)
                        .hostPolicies(hostPolicies)
                        .build(),
                List.of(backend, processors),
                Clock.system());
        get(engine.start());
    }

    @AfterEach
    void nothingIsLeftOnTheDevices() {
        engine.close();
        for (Device device : devices.all()) {
            assertThat(devices.used(MemoryPlacement.device(device.ordinal()))).isZero();
        }
        assertThat(devices.used(MemoryPlacement.PINNED)).isZero();
        devices.close();
    }

    private InferenceCall infer(String model, CompletableFuture<Float> done) {
        return infer(model, Long.MAX_VALUE, done);
    }

    private InferenceCall infer(String model, long deadline, CompletableFuture<Float> done) {
        return engine.infer(
                new InferenceRequest(
                        ModelRef.latest(model),
                        "",
                        List.of(EngineFixture.floats("IN0", Shape.of(1), 7)),
                        List.of(),
                        Map.of(),
                        deadline,
                        Clock.system().nanos(),
                        Options.NONE),
                new ResponseSink() {
                    @Override
                    public void next(InferenceResponse response, boolean last) {
                        float value = response.outputs().get(0).buffer().getFloat(0);
                        response.close();
                        done.complete(value);
                    }

                    @Override
                    public void fail(ServingException e) {
                        done.completeExceptionally(e);
                    }
                });
    }

    private CompletableFuture<Float> infer(String model) {
        CompletableFuture<Float> done = new CompletableFuture<>();
        InferenceCall unused = infer(model, done);
        return done;
    }

    private String reason(String model) {
        return engine.index().stream()
                .filter(m -> m.model().equals(model))
                .flatMap(m -> m.versions().stream())
                .map(ServableState::reason)
                .findFirst()
                .map(String::valueOf)
                .orElse("");
    }

    @Test
    void instancesGetTheirDevicesAndTheConfigurationShowsThem() throws Exception {
        model("m", "instance_group [ { count: 2 }, { kind: KIND_GPU gpus: 1 } ]");
        start();
        assertThat(backend.placements)
                .extracting(InstancePlacement::name)
                .containsExactly("m_0_0_gpu0", "m_0_0_gpu1", "m_0_1_gpu0", "m_0_1_gpu1", "m_1_0_gpu1");
        assertThat(backend.placements)
                .extracting(p -> p.gpu().uuid())
                .containsExactly("GPU-0", "GPU-1", "GPU-0", "GPU-1", "GPU-1");
        assertThat(get(infer("m"))).isEqualTo(7);
        Map<String, Object> document = engine.config(ModelRef.latest("m")).document();
        assertThat(String.valueOf(document.get("instance_group")))
                .contains("name=m_0, kind=KIND_GPU, count=2", "gpus=[0, 1]")
                .contains("name=m_1, kind=KIND_GPU, count=1", "gpus=[1]");
    }

    @Test
    void aFileForTheComputeCapabilityIsLoadedAndTheConfigurationKeepsItsOwn() throws Exception {
        model(
                "m",
                "default_model_filename: 'model.gpu' cc_model_filenames { key: '9.0' value: 'hopper.gpu' }"
                        + " instance_group { gpus: 1 }");
        start();
        assertThat(backend.files).containsExactly("hopper.gpu");
        assertThat(engine.config(ModelRef.latest("m")).document())
                .containsEntry("default_model_filename", "model.gpu")
                .containsEntry("cc_model_filenames", Map.of("9.0", "hopper.gpu"));
    }

    @Test
    void aModelThatDoesNotFitIsRefusedWithFiguresAndOthersAreServed() throws Exception {
        model("large", "instance_group { gpus: 0 }");
        Files.writeString(root.resolve("large/1/model.gpu"), "w".repeat(901));
        model("limited", "instance_group { gpus: 1 }");
        driver.used.put(1, 501L);
        model("small", "instance_group { gpus: 0 }");
        Path wrong = Files.createDirectories(root.resolve("wrong/1"));
        Files.writeString(wrong.resolve("model.puppet"), "");
        Files.writeString(root.resolve("wrong/config.pbtxt"), "instance_group { kind: KIND_GPU }");
        start();
        assertThat(reason("large"))
                .contains("model 'large' does not fit into the memory of device 0: it needs 901")
                .contains("900 B of 1.0 kB are free");
        assertThat(reason("limited"))
                .contains("memory limit set for KIND_GPU 1 has exceeded, model loading is rejected: 501 B of 1.0 kB");
        assertThat(reason("wrong")).contains("backend 'puppet' cannot run on a GPU");
        assertThat(get(infer("small"))).isEqualTo(7);
    }

    @Test
    void aLostDeviceMakesItsModelsUnavailableAndOnlyThese() throws Exception {
        model("first", "instance_group { gpus: 0 }");
        model("second", "instance_group { gpus: 1 }");
        processorModel("cpu");
        start();
        assertThat(get(infer("first"))).isEqualTo(7);
        driver.lost.add(0);
        for (int i = 0; i < 2; i++) {
            ServingException lost = failure(infer("first"));
            assertThat(lost.code()).isEqualTo(ErrorCode.UNAVAILABLE);
            assertThat(lost.getMessage()).contains("device 0 is lost: fell off the bus");
        }
        assertThat(engine.ready(ModelRef.latest("first"))).isFalse();
        assertThat(engine.ready(ModelRef.latest("second"))).isTrue();
        assertThat(get(infer("second"))).isEqualTo(7);
        assertThat(engine.ready(ModelRef.latest("cpu"))).isTrue();
    }

    @Test
    void runsOfOneDeviceOverlapOnThreadsOfItsOwn() throws Exception {
        model("m", "instance_group { count: 2 gpus: 0 }");
        model("n", "instance_group { gpus: 0 }");
        start();
        CountDownLatch gate = new CountDownLatch(1);
        backend.gate = gate;
        List<CompletableFuture<Float>> all = List.of(infer("m"), infer("m"), infer("n"));
        for (int i = 0; i < 3; i++) {
            assertThat(backend.computing.poll(10, TimeUnit.SECONDS)).startsWith("gpu-0");
        }
        // Three runs are on the device of two processor threads, and the memory of each is there.
        assertThat(devices.used(MemoryPlacement.device(0))).isEqualTo(12);
        gate.countDown();
        for (CompletableFuture<Float> one : all) {
            assertThat(get(one)).isEqualTo(7);
        }
    }

    @Test
    void aCancelledRunLeavesNoMemoryOnTheDevice() throws Exception {
        model("m", "instance_group { gpus: 0 }");
        start();
        backend.gate = new CountDownLatch(1);
        CompletableFuture<Float> done = new CompletableFuture<>();
        InferenceCall call = infer("m", done);
        assertThat(backend.computing.poll(10, TimeUnit.SECONDS)).isNotNull();
        assertThat(devices.used(MemoryPlacement.device(0))).isEqualTo(4);
        call.cancel();
        assertThat(failure(done).code()).isEqualTo(ErrorCode.CANCELLED);
    }

    @Test
    void requestsThatTimeOutLeaveNoMemoryOnTheDevice() throws Exception {
        model("m", "instance_group { gpus: 0 }");
        start();
        CountDownLatch gate = new CountDownLatch(1);
        backend.gate = gate;
        CompletableFuture<Float> running = infer("m");
        assertThat(backend.computing.poll(10, TimeUnit.SECONDS)).isNotNull();
        List<CompletableFuture<Float>> late = new ArrayList<>();
        for (int i = 0; i < 20; i++) {
            CompletableFuture<Float> done = new CompletableFuture<>();
            InferenceCall unused = infer("m", Clock.system().nanos() + 20_000_000, done);
            late.add(done);
        }
        for (CompletableFuture<Float> one : late) {
            assertThat(failure(one).code()).isEqualTo(ErrorCode.DEADLINE_EXCEEDED);
        }
        // Only the run in flight has memory, and it goes on.
        assertThat(devices.used(MemoryPlacement.device(0))).isEqualTo(4);
        gate.countDown();
        assertThat(get(running)).isEqualTo(7);
        assertThat(get(infer("m"))).isEqualTo(7);
        assertThat(backend.computing).hasSize(1);
    }

    @Test
    void thePolicyOfAGpuHoldsForItsRunsAlone() throws Exception {
        model("m", "instance_group { gpus: 0 }");
        model("n", "instance_group { kind: KIND_GPU gpus: 1 }");
        model("named", "instance_group { gpus: 1 host_policy: \"gpu_0\" }");
        start(Map.of("gpu_0", Map.of("cpu-cores", "0-0")));
        assertThat(get(infer("m"))).isEqualTo(7);
        assertThat(backend.computing.poll(10, TimeUnit.SECONDS)).startsWith("gpu-0-gpu_0");
        assertThat(get(infer("n"))).isEqualTo(7);
        assertThat(backend.computing.poll(10, TimeUnit.SECONDS))
                .startsWith("gpu-1")
                .doesNotContain("gpu_0");
        assertThat(get(infer("named"))).isEqualTo(7);
        assertThat(backend.computing.poll(10, TimeUnit.SECONDS)).startsWith("gpu-1-gpu_0");
    }
}
