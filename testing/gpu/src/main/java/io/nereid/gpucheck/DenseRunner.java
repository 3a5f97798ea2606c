// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.gpucheck;

import io.nereid.device.DeviceMemory;
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

/**
 * Runs the layers on a GPU with a stream, a handle of cuBLAS and memory of its own: copies the rows from pinned memory,
 * computes, copies back, and waits. One thread at a time, any thread.
 */
final class DenseRunner implements AutoCloseable {
    private static final int BLOCK = 256;

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
        int width = weights.shape.width();
        if (count < 1 || count > rows) {
            throw new IllegalArgumentException(count + " rows, at most " + rows);
        }
        long bytes = 4L * count * width;
        Cuda.select(weights.device.ordinal());
        copy(first.address(), host.address(), bytes, cudart.cudaMemcpyHostToDevice);
        DeviceMemory from = first;
        DeviceMemory to = second;
        for (int layer = 0; layer < weights.shape.layers(); layer++) {
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
                            floats(weights.matrices.get(matrix)),
                            width,
                            floats(from),
                            width,
                            zero,
                            floats(to),
                            width),
                    "cublasSgemm");
            launch(to, weights.biases.get(matrix), width, count * width);
            DeviceMemory other = from;
            from = to;
            to = other;
        }
        copy(host.address(), from.address(), bytes, cudart.cudaMemcpyDeviceToHost);
        Cuda.check(cudart.cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    }

    private void copy(long to, long from, long bytes, int kind) {
        Cuda.check(
                cudart.cudaMemcpyAsync(new Cuda.Address(to), new Cuda.Address(from), bytes, kind, stream),
                "cudaMemcpyAsync");
    }

    private void launch(DeviceMemory data, DeviceMemory bias, int width, int count) {
        try (LongPointer dataAddress = new LongPointer(1).put(data.address());
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

    private static FloatPointer floats(DeviceMemory memory) {
        return new FloatPointer(new Cuda.Address(memory.address()));
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
