// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.gpucheck;

import io.nereid.device.Device;
import io.nereid.device.DeviceMemory;
import io.nereid.device.Devices;
import io.nereid.device.MemoryPlacement;
import java.util.ArrayList;
import java.util.List;
import org.bytedeco.cuda.cudart.CUfunc_st;
import org.bytedeco.cuda.cudart.CUmod_st;
import org.bytedeco.cuda.global.cudart;
import org.bytedeco.javacpp.BytePointer;

/** The numbers of a model on one GPU with its kernel, which its instances there share. Thread-safe: immutable until closed. */
final class DenseWeights implements AutoCloseable {
    final DenseShape shape;
    final Device device;
    final List<DeviceMemory> matrices = new ArrayList<>();
    final List<DeviceMemory> biases = new ArrayList<>();
    final CUfunc_st kernel = new CUfunc_st();
    private final CUmod_st module = new CUmod_st();
    private boolean loaded;

    DenseWeights(Devices devices, Device device, DenseShape shape) {
        this.shape = shape;
        this.device = device;
        boolean done = false;
        try {
            Cuda.select(device.ordinal());
            try (BytePointer image = new BytePointer(Cuda.kernel(device))) {
                Cuda.check(cudart.cuModuleLoadData(module, image), "cuModuleLoadData");
            }
            loaded = true;
            Cuda.check(cudart.cuModuleGetFunction(kernel, module, Cuda.KERNEL), "cuModuleGetFunction");
            for (int i = 0; i < shape.matrices(); i++) {
                matrices.add(upload(devices, device, shape.weights(i)));
                biases.add(upload(devices, device, shape.biases(i)));
            }
            done = true;
        } finally {
            if (!done) {
                close();
            }
        }
    }

    private static DeviceMemory upload(Devices devices, Device device, float[] numbers) {
        long bytes = 4L * numbers.length;
        DeviceMemory to = devices.allocate(MemoryPlacement.device(device.ordinal()), bytes);
        try (DeviceMemory host = devices.allocate(MemoryPlacement.HOST, bytes)) {
            host.view().asFloatBuffer().put(numbers);
            to.copyFrom(host);
        }
        return to;
    }

    long bytes() {
        return 4L * shape.matrices() * shape.width() * (shape.width() + 1L);
    }

    @Override
    public void close() {
        matrices.forEach(DeviceMemory::close);
        biases.forEach(DeviceMemory::close);
        if (loaded) {
            Cuda.select(device.ordinal());
            Cuda.check(cudart.cuModuleUnload(module), "cuModuleUnload");
            loaded = false;
        }
    }
}
