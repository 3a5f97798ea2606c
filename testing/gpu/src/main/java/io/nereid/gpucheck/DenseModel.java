// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.gpucheck;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.backend.BackendModel;
import io.nereid.backend.InstancePlacement;
import io.nereid.backend.ModelInstance;
import io.nereid.backend.ModelTraits;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.device.DeviceMemory;
import io.nereid.device.Devices;
import io.nereid.device.MemoryPlacement;
import io.nereid.spi.config.ModelConfig;
import io.nereid.tensor.DataType;
import io.nereid.tensor.DeviceRegion;
import io.nereid.tensor.Tensor;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** A loaded model of {@link DenseBackend}. Thread-safe. */
final class DenseModel implements BackendModel {
    private static final ModelTraits TRAITS =
            ModelTraits.builder().deviceTensors(true).build();

    private final DenseShape shape;
    private final ModelConfig config;
    private final @Nullable Devices devices;

    /** The numbers on each GPU that has an instance, by its ordinal. */
    @GuardedBy("this") private final Map<Integer, DenseWeights> weights = new HashMap<>();

    DenseModel(DenseShape shape, ModelConfig config, @Nullable Devices devices) {
        this.shape = shape;
        this.config = config;
        this.devices = devices;
    }

    @Override
    public ModelConfig config() {
        return config;
    }

    @Override
    public ModelTraits traits() {
        return TRAITS;
    }

    @Override
    public ModelInstance newInstance() {
        return (inputs, outputs) -> {
            Tensor in = inputs.get(0);
            float[] numbers = new float[in.byteLength() / 4];
            little(in.buffer()).asFloatBuffer().get(numbers);
            Tensor out = Tensor.allocate("OUT", DataType.FP32, in.shape());
            little(out.buffer()).asFloatBuffer().put(shape.compute(numbers));
            return List.of(out);
        };
    }

    @Override
    public synchronized ModelInstance newInstance(InstancePlacement placement) {
        if (!placement.onGpu()) {
            return newInstance();
        }
        Devices all = Objects.requireNonNull(devices, "an instance on a GPU of a server without one");
        DenseWeights shared = weights.computeIfAbsent(
                placement.gpu().ordinal(), ordinal -> new DenseWeights(all, placement.gpu(), shape));
        return new OnGpu(
                all,
                MemoryPlacement.device(placement.gpu().ordinal()),
                new DenseRunner(all, shared, config.maxBatchSize()),
                shape.width());
    }

    private static ByteBuffer little(ByteBuffer of) {
        return of.order(ByteOrder.LITTLE_ENDIAN);
    }

    @Override
    public synchronized long memoryBytes() {
        return weights.values().stream().mapToLong(DenseWeights::bytes).sum();
    }

    @Override
    public synchronized void close() {
        weights.values().forEach(DenseWeights::close);
        weights.clear();
    }

    private record OnGpu(Devices devices, MemoryPlacement place, DenseRunner runner, int width)
            implements ModelInstance {
        @Override
        public List<Tensor> run(List<Tensor> inputs, List<String> outputs) {
            return runOnDevice(inputs, outputs, Set.of());
        }

        @Override
        public List<Tensor> runOnDevice(List<Tensor> inputs, List<String> outputs, Set<String> kept) {
            Tensor in = inputs.get(0);
            int bytes = in.byteLength();
            DeviceRegion there = in.deviceRegion();
            if (there == null) {
                runner.memory().put(in.buffer());
            }
            DeviceMemory stays = kept.contains("OUT") ? memory(bytes) : null;
            boolean done = false;
            try {
                runner.run(bytes / 4 / width, there == null ? 0 : there.deviceAddress() + in.offset(), stays);
                done = true;
            } finally {
                if (!done && stays != null) {
                    stays.close();
                }
            }
            if (stays != null) {
                return List.of(Tensor.over("OUT", DataType.FP32, in.shape(), stays.region(bytes), 0, bytes));
            }
            Tensor out = Tensor.allocate("OUT", DataType.FP32, in.shape());
            out.buffer().put(runner.memory().limit(bytes));
            return List.of(out);
        }

        /** Memory for an output that stays on the GPU; null when the GPU has none, and the output goes to the host. */
        private @Nullable DeviceMemory memory(int bytes) {
            try {
                return devices.allocate(place, bytes);
            } catch (ServingException e) {
                if (e.code() != ErrorCode.RESOURCE_EXHAUSTED) {
                    throw e;
                }
                return null;
            }
        }

        @Override
        public void close() {
            runner.close();
        }
    }
}
