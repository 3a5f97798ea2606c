// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine;

import static io.nereid.engine.EngineFixture.failure;
import static io.nereid.engine.EngineFixture.get;
import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.device.DeviceLimits;
import io.nereid.device.DeviceMemory;
import io.nereid.device.Devices;
import io.nereid.device.MemoryPlacement;
import io.nereid.engine.servable.RequestSubmitter;
import io.nereid.engine.servable.StepSubmitter;
import io.nereid.lifecycle.ManagerOptions;
import io.nereid.lifecycle.ServableManager;
import io.nereid.spi.InferenceCall;
import io.nereid.spi.InferenceEngine;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceResponse;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ResponseSink;
import io.nereid.spi.config.ModelConfig;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Steps whose inputs are on a GPU when the model that reads them is not, such as one that was replaced meanwhile. */
class StepSubmitterTest {
    private final FakeDeviceDriver driver = new FakeDeviceDriver();
    private final Devices devices = new Devices(driver, DeviceLimits.DEFAULT);
    private final ServableManager manager = new ServableManager(ManagerOptions.DEFAULT, Clock.system());
    private final AtomicInteger cancels = new AtomicInteger();
    private final CompletableFuture<String> answered = new CompletableFuture<>();
    private final StepSubmitter steps =
            new StepSubmitter(new HostEngine(), manager, new RequestSubmitter(Clock.system()), devices);

    /** Answers with the value of the input and the thread. */
    private final class HostEngine implements InferenceEngine {
        @Override
        public InferenceCall infer(InferenceRequest request, ResponseSink sink) {
            Tensor input = request.inputs().get(0);
            assertThat(input.deviceRegion()).isNull();
            answered.complete(
                    input.buffer().getFloat(0) + " " + Thread.currentThread().getName());
            request.release();
            return cancels::incrementAndGet;
        }

        @Override
        public ModelMetadata metadata(ModelRef model) {
            throw new AssertionError();
        }

        @Override
        public ModelConfig config(ModelRef model) {
            throw new AssertionError();
        }
    }

    private Tensor onDevice() {
        DeviceMemory memory = devices.allocate(MemoryPlacement.device(0), 4);
        try (Tensor host = EngineFixture.floats("IN0", Shape.of(1), 7)) {
            memory.write(0, host);
        }
        return Tensor.over("IN0", DataType.FP32, Shape.of(1), memory.region(4), 0, 4);
    }

    private InferenceCall infer(ModelRef model, Tensor input) {
        return steps.infer(
                new InferenceRequest(model, "", List.of(input), List.of(), Map.of(), Long.MAX_VALUE, 0),
                new ResponseSink() {
                    @Override
                    public void next(InferenceResponse response, boolean last) {
                        throw new AssertionError("no model answers");
                    }

                    @Override
                    public void fail(ServingException e) {
                        answered.completeExceptionally(e);
                    }
                });
    }

    @AfterEach
    void nothingIsLeftOnTheDevice() throws Exception {
        devices.close();
        CountDownLatch pause = new CountDownLatch(1);
        for (int i = 0; i < 2000 && driver.allocated() > 0; i++) {
            boolean unused = pause.await(5, TimeUnit.MILLISECONDS);
        }
        assertThat(driver.allocated()).isZero();
        assertThat(devices.used(MemoryPlacement.device(0))).isZero();
        manager.close();
    }

    @Test
    void anInputIsCopiedOnTheThreadOfItsGpu() throws Exception {
        InferenceCall call = infer(EngineFixture.label("m", "stable"), onDevice());
        assertThat(get(answered)).startsWith("7.0 device-copy-0");
        call.cancel();
        // The call of the engine may not have been returned yet; its cancellation then follows.
        CompletableFuture<Void> after = new CompletableFuture<>();
        devices.transfers().thread(0).execute(() -> after.complete(null));
        get(after);
        assertThat(cancels).hasValue(1);
    }

    @Test
    void whatHasBeenCopiedNeedsNoOtherThread() throws Exception {
        Tensor input = onDevice();
        input.retainOnHost().close();
        InferenceCall unused = infer(EngineFixture.label("m", "stable"), input);
        assertThat(answered)
                .isCompletedWithValue("7.0 " + Thread.currentThread().getName());
    }

    @Test
    void aRequestThatIsCancelledBeforeItsCopyIsNotSubmitted() throws Exception {
        CountDownLatch gate = new CountDownLatch(1);
        devices.transfers().thread(0).execute(() -> {
            try {
                gate.await();
            } catch (InterruptedException e) {
                throw new AssertionError(e);
            }
        });
        InferenceCall call = infer(EngineFixture.label("m", "stable"), onDevice());
        call.cancel();
        gate.countDown();
        assertThat(failure(answered).code()).isEqualTo(ErrorCode.CANCELLED);
    }

    @Test
    void theLossOfTheGpuFailsTheRequest() throws Exception {
        Tensor input = onDevice();
        driver.lost.add(0);
        InferenceCall unused = infer(EngineFixture.label("m", "stable"), input);
        ServingException lost = failure(answered);
        assertThat(lost.code()).isEqualTo(ErrorCode.UNAVAILABLE);
        assertThat(lost.getMessage()).contains("device 0 is lost");
    }

    @Test
    void aModelThatIsGoneFailsTheRequest() throws Exception {
        assertThat(steps.takesDeviceTensors(ModelRef.latest("gone"), 0)).isFalse();
        InferenceCall unused = infer(ModelRef.latest("gone"), onDevice());
        assertThat(failure(answered).code()).isEqualTo(ErrorCode.NOT_FOUND);
    }

    @Test
    void theEndOfTheServerFailsTheRequest() throws Exception {
        Tensor input = onDevice();
        devices.close();
        InferenceCall unused = infer(EngineFixture.label("m", "stable"), input);
        assertThat(failure(answered).getMessage()).contains("the server is stopping");
    }
}
