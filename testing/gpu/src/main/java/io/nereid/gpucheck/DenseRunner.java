// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.gpucheck;

import io.nereid.device.DeviceMemory;
import io.nereid.device.DeviceTransfers;
import io.nereid.device.Devices;
import io.nereid.device.MemoryPlacement;
import java.nio.ByteBuffer;
import org.bytedeco.cuda.cublas.cublasContext;
import org.bytedeco.cuda.cudart.CUstream_st;
import org.bytedeco.cuda.global.cublas;
import org.bytedeco.cuda.global.cudart;
import org.bytedeco.javacpp.FloatPointer;
import org.bytedeco.javacpp.IntPointer;
import org.bytedeco.javacpp.LongPointer;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.javacpp.PointerPointer;
import org.jspecify.annotations.Nullable;

/**
 * Runs the layers on a GPU with a stream, a handle of cuBLAS and memory of its own: copies the rows from pinned memory, unless
 * they are on the GPU, computes, copies back, unless they stay there, and waits. One thread at a time, any thread.
 */
final class DenseRunner implements AutoCloseable {
    private static final int BLOCK = 256;

    private final Devices devices;
    private final DenseWeights weights;
    private final int rows;
    private final CUstream_st stream = new CUstream_st();
    private final cublasContext handle = new cublasContext();
    private final DeviceMemory host;
    private final DeviceMemory first;
    private final DeviceMemory second;
    private final FloatPointer one = new FloatPointer(1f);
    private final FloatPointer zero = new FloatPointer(0f);

    /**
     * Allocates what runs need.
     *
     * @param rows the most rows of a run
     */
    DenseRunner(Devices devices, DenseWeights weights, int rows) {
        this.devices = devices;
        this.weights = weights;
        this.rows = rows;
        long bytes = 4L * rows * weights.shape.width();
        MemoryPlacement place = MemoryPlacement.device(weights.device.ordinal());
        Cuda.select(weights.device.ordinal());
        Cuda.check(cudart.cudaStreamCreate(stream), "cudaStreamCreate");
        Cuda.check(cublas.cublasCreate_v2(handle), "cublasCreate");
        Cuda.check(cublas.cublasSetStream_v2(handle, stream), "cublasSetStream");
        this.host = devices.allocate(MemoryPlacement.PINNED, bytes);
        this.first = devices.allocate(place, bytes);
        this.second = devices.allocate(place, bytes);
    }

    /** The pinned memory of the inputs before a run and of the outputs after it. */
    ByteBuffer memory() {
        return host.view();
    }

    /** Computes a number of rows of {@link #memory}. */
    void run(int count) {
        run(count, 0, null);
    }

    /**
     * Computes a number of rows.
     *
     * @param in the address of the rows on the GPU, which are only read; 0 for those of {@link #memory}
     * @param out the memory of the GPU for the results; null for {@link #memory}
     */
    void run(int count, long in, @Nullable DeviceMemory out) {
        int width = weights.shape.width();
        int layers = weights.shape.layers();
        if (count < 1 || count > rows) {
            throw new IllegalArgumentException(count + " rows, at most " + rows);
        }
        long bytes = 4L * count * width;
        Cuda.select(weights.device.ordinal());
        if (in == 0) {
            copy(first.address(), host.address(), bytes, cudart.cudaMemcpyHostToDevice);
        }
        long from = in == 0 ? first.address() : in;
        for (int layer = 0; layer < layers; layer++) {
            long to = out != null && layer == layers - 1
                    ? out.address()
                    : layer % 2 == 0 ? second.address() : first.address();
            int matrix = layer % weights.shape.matrices();
            // cuBLAS has columns where these matrices have rows: the product of the transposed ones is computed.
            Cuda.check(
                    cublas.cublasSgemm_v2(
                            handle,
                            cublas.CUBLAS_OP_N,
                            cublas.CUBLAS_OP_N,
                            width,
                            count,
                            width,
                            one,
                            floats(weights.matrices.get(matrix).address()),
                            width,
                            floats(from),
                            width,
                            zero,
                            floats(to),
                            width),
                    "cublasSgemm");
            launch(to, weights.biases.get(matrix), width, count * width);
            from = to;
        }
        if (out == null) {
            copy(host.address(), from, bytes, cudart.cudaMemcpyDeviceToHost);
        }
        Cuda.check(cudart.cudaStreamSynchronize(stream), "cudaStreamSynchronize");
        if (in == 0) {
            devices.transfers().count(weights.device.ordinal(), DeviceTransfers.Direction.TO_DEVICE, bytes);
        }
        if (out == null) {
            devices.transfers().count(weights.device.ordinal(), DeviceTransfers.Direction.FROM_DEVICE, bytes);
        }
    }

    private void copy(long to, long from, long bytes, int kind) {
        Cuda.check(
                cudart.cudaMemcpyAsync(new Cuda.Address(to), new Cuda.Address(from), bytes, kind, stream),
                "cudaMemcpyAsync");
    }

    private void launch(long data, DeviceMemory bias, int width, int count) {
        try (LongPointer dataAddress = new LongPointer(1).put(data);
                LongPointer biasAddress = new LongPointer(1).put(bias.address());
                IntPointer widthValue = new IntPointer(1).put(width);
                IntPointer countValue = new IntPointer(1).put(count);
                PointerPointer<Pointer> arguments =
                        new PointerPointer<>(dataAddress, biasAddress, widthValue, countValue)) {
            Cuda.check(
                    cudart.cuLaunchKernel(
                            weights.kernel,
                            (count + BLOCK - 1) / BLOCK,
                            1,
                            1,
                            BLOCK,
                            1,
                            1,
                            0,
                            stream,
                            arguments,
                            (PointerPointer<?>) null),
                    "cuLaunchKernel");
        }
    }

    private static FloatPointer floats(long address) {
        return new FloatPointer(new Cuda.Address(address));
    }

    @Override
    public void close() {
        Cuda.select(weights.device.ordinal());
        host.close();
        first.close();
        second.close();
        Cuda.check(cublas.cublasDestroy_v2(handle), "cublasDestroy");
        Cuda.check(cudart.cudaStreamDestroy(stream), "cudaStreamDestroy");
        one.close();
        zero.close();
    }
}
