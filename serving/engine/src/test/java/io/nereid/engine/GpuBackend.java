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
import io.nereid.tensor.DeviceRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * A backend whose instances copy their input to the GPU of their placement and back, by the account of devices. With the
 * parameter {@code stay} of a model they take it on the GPU, and leave the output there. Runs wait while {@link #gate}, or the
 * gate of their model, is set. Thread-safe.
 */
final class GpuBackend implements Backend {
    /** The instances that were created, in order. */
    final List<InstancePlacement> placements = new CopyOnWriteArrayList<>();

    /** The thread of each run that has copied its input. */
    final BlockingQueue<String> computing = new LinkedBlockingQueue<>();

    /** The files of the loads. */
    final List<String> files = new CopyOnWriteArrayList<>();

    volatile @Nullable CountDownLatch gate;

    /** By model. */
    final Map<String, CountDownLatch> gates = new ConcurrentHashMap<>();

    /** The inputs of the runs of models that take them on the GPU, as {@code MODEL DEVICE [SHAPE]}. */
    final List<String> inputs = new CopyOnWriteArrayList<>();

    /** The models whose runs fail once their output is on the GPU. */
    final Set<String> failing = ConcurrentHashMap.newKeySet();

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
                return ModelTraits.builder()
                        .cancellable(true)
                        .deviceTensors(config.parameters().containsKey("stay"))
                        .build();
            }

            @Override
            public ModelInstance newInstance() {
                throw new AssertionError("an instance without a place");
            }

            @Override
            public ModelInstance newInstance(InstancePlacement placement) {
                placements.add(placement);
                return new Instance(location.id().model(), devices, placement);
            }

            @Override
            public void close() {}
        };
    }

    private final class Instance implements ModelInstance {
        private final String model;
        private final Devices devices;
        private final MemoryPlacement place;
        private final CountDownLatch cancelled = new CountDownLatch(1);

        Instance(String model, Devices devices, InstancePlacement placement) {
            this.model = model;
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
                compute();
                host.copyFrom(device);
                Tensor out = Tensor.allocate("OUT0", DataType.FP32, in.shape());
                out.buffer().put(host.view());
                return List.of(out);
            }
        }

        @Override
        public List<Tensor> runOnDevice(List<Tensor> given, List<String> outputs, Set<String> kept) {
            Tensor in = given.get(0);
            DeviceRegion region = in.deviceRegion();
            inputs.add(model + " " + (region == null ? "host" : region.device()) + " " + in.shape());
            DeviceMemory out = devices.allocate(place, in.byteLength());
            boolean done = false;
            try {
                out.write(0, in);
                compute();
                done = true;
            } finally {
                if (!done) {
                    out.close();
                }
            }
            Tensor made =
                    Tensor.over("OUT0", DataType.FP32, in.shape(), out.region(in.byteLength()), 0, in.byteLength());
            if (failing.contains(model)) {
                made.close();
                throw ServingException.of(ErrorCode.INTERNAL, "the kernel has failed");
            }
            return List.of(made);
        }

        private void compute() {
            computing.add(Thread.currentThread().getName());
            try {
                for (CountDownLatch waits : new @Nullable CountDownLatch[] {gate, gates.get(model)}) {
                    if (waits != null && !waits.await(10, TimeUnit.SECONDS)) {
                        throw new AssertionError("the gate stays closed");
                    }
                }
            } catch (InterruptedException e) {
                throw new AssertionError(e);
            }
            if (cancelled.getCount() == 0) {
                throw ServingException.of(ErrorCode.CANCELLED, "cancelled");
            }
        }

        @Override
        public void cancel() {
            cancelled.countDown();
            for (CountDownLatch waits : new @Nullable CountDownLatch[] {gate, gates.get(model)}) {
                if (waits != null) {
                    waits.countDown();
                }
            }
        }
    }
}
