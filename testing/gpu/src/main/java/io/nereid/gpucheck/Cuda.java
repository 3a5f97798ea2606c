// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.gpucheck;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.device.Device;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.bytedeco.cuda.global.cublas;
import org.bytedeco.cuda.global.cudart;
import org.bytedeco.cuda.global.nvrtc;
import org.bytedeco.cuda.nvrtc._nvrtcProgram;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.javacpp.Loader;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.javacpp.PointerPointer;
import org.bytedeco.javacpp.SizeTPointer;
import org.jspecify.annotations.Nullable;

/** The calls of CUDA's libraries that the backend and the check share. Thread-safe. */
final class Cuda {
    /** The kernel, which adds a bias to each row and applies ReLU. */
    static final String KERNEL = "bias_relu";

    private static final String SOURCE = """
        extern "C" __global__ void bias_relu(float *data, const float *bias, int width, int count) {
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i < count) {
                float value = data[i] + bias[i % width];
                data[i] = value > 0 ? value : 0;
            }
        }
        """;

    private static final Map<String, byte[]> COMPILED = new ConcurrentHashMap<>();

    private Cuda() {}

    /** A pointer to memory that it does not own. */
    static final class Address extends Pointer {
        Address(long address) {
            this.address = address;
        }
    }

    /** Returns why cuBLAS or NVRTC cannot be loaded; null when they are. The driver must have been opened. */
    static @Nullable String missing() {
        for (String library : new String[] {"libcublasLt.so.13", "libcublas.so.13", "libnvrtc.so.13"}) {
            try {
                Loader.loadGlobal(library);
            } catch (LinkageError e) {
                return String.valueOf(e.getMessage());
            }
        }
        try {
            Loader.load(cublas.class);
            Loader.load(nvrtc.class);
            return null;
        } catch (LinkageError e) {
            Throwable cause = e.getCause();
            return String.valueOf((cause == null ? e : cause).getMessage());
        }
    }

    /** Throws unless a call has succeeded; 0 is success in the runtime, the driver, cuBLAS and NVRTC. */
    static void check(int error, String call) {
        if (error != 0) {
            throw ServingException.of(ErrorCode.INTERNAL, call + " has failed with the number " + error);
        }
    }

    static void select(int ordinal) {
        check(cudart.cudaSetDevice(ordinal), "cudaSetDevice");
    }

    /** The kernel for the compute capability of a GPU, compiled once. */
    static byte[] kernel(Device device) {
        return COMPILED.computeIfAbsent(device.major() + "" + device.minor(), Cuda::compile);
    }

    private static byte[] compile(String capability) {
        try (_nvrtcProgram program = new _nvrtcProgram();
                BytePointer source = new BytePointer(SOURCE);
                BytePointer name = new BytePointer(KERNEL + ".cu");
                BytePointer option = new BytePointer("--gpu-architecture=sm_" + capability);
                PointerPointer<BytePointer> options = new PointerPointer<BytePointer>(1).put(0, option);
                SizeTPointer size = new SizeTPointer(1)) {
            check(
                    nvrtc.nvrtcCreateProgram(program, source, name, 0, (PointerPointer<?>) null, null),
                    "nvrtcCreateProgram");
            int error = nvrtc.nvrtcCompileProgram(program, 1, options);
            if (error != 0) {
                check(nvrtc.nvrtcGetProgramLogSize(program, size), "nvrtcGetProgramLogSize");
                byte[] log = new byte[(int) size.get()];
                check(nvrtc.nvrtcGetProgramLog(program, log), "nvrtcGetProgramLog");
                throw ServingException.of(
                        ErrorCode.INTERNAL,
                        "nvrtcCompileProgram has failed with the number " + error + ": "
                                + new String(log, StandardCharsets.UTF_8));
            }
            check(nvrtc.nvrtcGetCUBINSize(program, size), "nvrtcGetCUBINSize");
            byte[] image = new byte[(int) size.get()];
            check(nvrtc.nvrtcGetCUBIN(program, image), "nvrtcGetCUBIN");
            check(nvrtc.nvrtcDestroyProgram(program), "nvrtcDestroyProgram");
            return image;
        }
    }
}
