// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine;

import io.nereid.backend.Backend;
import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.InstancePlacement;
import io.nereid.backend.ModelInstance;
import io.nereid.backend.ModelLocation;
import io.nereid.backend.ModelTraits;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.device.DeviceMemory;
import io.nereid.device.Devices;
import io.nereid.device.MemoryPlacement;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * A backend whose instances copy their input to the GPU of their placement and back, by the account of devices. Its runs
 * wait while {@link #gate} is set. Thread-safe.
 */
final class GpuBackend implements Backend {
    /** The instances that were created, in order. */
    final List<InstancePlacement> placements = new CopyOnWriteArrayList<>();

    /** The thread of each run that has copied its input. */
    final BlockingQueue<String> computing = new LinkedBlockingQueue<>();

    /** The files of the loads. */
    final List<String> files = new CopyOnWriteArrayList<>();

    volatile @Nullable CountDownLatch gate;

    @Override
    public String name() {
        return "gpu";
    }

    @Override
    public List<String> defaultFiles() {
        return List.of("model.gpu");
    }

    @Override
    public @Nullable String gpuUnavailableReason() {
        return null;
    }

    @Override
    public BackendModel load(ModelLocation location, ModelConfig config, BackendContext context) {
        files.add(config.modelFile());
        Devices devices = Objects.requireNonNull(context.devices());
        ModelConfig complete = config.completed(
                "gpu",
                "gpu",
                Math.max(0, config.maxBatchSize()),
                List.of(new TensorSpec("IN0", DataType.FP32, Shape.of(-1))),
                List.of(new TensorSpec("OUT0", DataType.FP32, Shape.of(-1))),
                config.batching(),
                config.instances());
        return new BackendModel() {
            @Override
            public ModelConfig config() {
                return complete;
            }

            @Override
            public ModelTraits traits() {
                return ModelTraits.builder().cancellable(true).build();
            }

            @Override
            public ModelInstance newInstance() {
                throw new AssertionError("an instance without a place");
            }

            @Override
            public ModelInstance newInstance(InstancePlacement placement) {
                placements.add(placement);
                return new Instance(devices, placement);
            }

            @Override
            public void close() {}
        };
    }

    private final class Instance implements ModelInstance {
        private final Devices devices;
        private final MemoryPlacement place;
        private final CountDownLatch cancelled = new CountDownLatch(1);

        Instance(Devices devices, InstancePlacement placement) {
            this.devices = devices;
            this.place = MemoryPlacement.device(placement.gpu().ordinal());
        }

        @Override
        public List<Tensor> run(List<Tensor> inputs, List<String> outputs) {
            Tensor in = inputs.get(0);
            try (DeviceMemory host = devices.allocate(MemoryPlacement.PINNED, in.byteLength());
                    DeviceMemory device = devices.allocate(place, in.byteLength())) {
                host.view().put(in.buffer());
                device.copyFrom(host);
                computing.add(Thread.currentThread().getName());
                CountDownLatch waits = gate;
                if (waits != null && !waits.await(10, TimeUnit.SECONDS)) {
                    throw new AssertionError("the gate stays closed");
                }
                if (cancelled.getCount() == 0) {
                    throw ServingException.of(ErrorCode.CANCELLED, "cancelled");
                }
                host.copyFrom(device);
                Tensor out = Tensor.allocate("OUT0", DataType.FP32, in.shape());
                out.buffer().put(host.view());
                return List.of(out);
            } catch (InterruptedException e) {
                throw new AssertionError(e);
            }
        }

        @Override
        public void cancel() {
            cancelled.countDown();
            CountDownLatch waits = gate;
            if (waits != null) {
                waits.countDown();
            }
        }
    }
}
