// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.devices.cuda;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.device.DeviceFault;
import org.bytedeco.cuda.global.cudart;
import org.bytedeco.cuda.global.nvml;
import org.bytedeco.javacpp.BytePointer;

/** The errors of CUDA and of NVML, by the numbers of {@code driver_types.h} and {@code nvml.h}. Stateless. */
final class CudaErrors {
    private CudaErrors() {}

    /** Throws unless a call of the CUDA runtime, on the current thread, has succeeded. */
    static void check(int error, String call) throws DeviceFault {
        if (error == cudart.cudaSuccess) {
            return;
        }
        // A failed allocation stays the last error of the thread, which the next call would report again.
        int unused = cudart.cudaGetLastError();
        throw new DeviceFault(kind(error), runtime(error, call));
    }

    /**
     * As {@link #check}, for a call with a handle that a client has given. An error without a name then means that handle,
     * and not that the device is lost.
     */
    static void checkHandle(int error, String call) throws DeviceFault {
        if (error == cudart.cudaErrorUnknown) {
            int unused = cudart.cudaGetLastError();
            throw new DeviceFault(DeviceFault.Kind.OTHER, runtime(error, call));
        }
        check(error, call);
    }

    private static String runtime(int error, String call) {
        return call + ": " + text(cudart.cudaGetErrorName(error)) + " (" + error + "), "
                + text(cudart.cudaGetErrorString(error));
    }

    private static DeviceFault.Kind kind(int error) {
        return switch (error) {
            case cudart.cudaErrorMemoryAllocation -> DeviceFault.Kind.OUT_OF_MEMORY;
            case cudart.cudaErrorECCUncorrectable, cudart.cudaErrorNvlinkUncorrectable -> DeviceFault.Kind.ECC;
            // After these, NVIDIA's documentation says, the process must be ended to use the device again.
            case cudart.cudaErrorIllegalAddress,
                    cudart.cudaErrorLaunchTimeout,
                    cudart.cudaErrorAssert,
                    cudart.cudaErrorHardwareStackError,
                    cudart.cudaErrorIllegalInstruction,
                    cudart.cudaErrorMisalignedAddress,
                    cudart.cudaErrorInvalidAddressSpace,
                    cudart.cudaErrorInvalidPc,
                    cudart.cudaErrorLaunchFailure,
                    cudart.cudaErrorDevicesUnavailable,
                    cudart.cudaErrorUnknown -> DeviceFault.Kind.LOST;
            default -> DeviceFault.Kind.OTHER;
        };
    }

    /** Throws unless a call of the runtime or the driver, before the devices are known, has succeeded. */
    static void start(int error, String call) {
        if (error == cudart.cudaSuccess) {
            return;
        }
        throw switch (error) {
            case cudart.cudaErrorNoDevice ->
                ServingException.of(
                        ErrorCode.UNAVAILABLE,
                        "the driver has no device: " + runtime(error, call),
                        "look at nvidia-smi, and at CUDA_VISIBLE_DEVICES");
            case cudart.cudaErrorInsufficientDriver ->
                ServingException.of(
                        ErrorCode.FAILED_PRECONDITION,
                        "the driver is too old for CUDA 13: " + runtime(error, call),
                        "install a driver of version 580 or newer");
            default ->
                ServingException.of(
                        ErrorCode.FAILED_PRECONDITION,
                        "the driver does not work: " + runtime(error, call),
                        "look at nvidia-smi and at the log of the kernel");
        };
    }

    /** Returns whether a call of NVML has a result; false when the device does not have the figure. */
    static boolean has(int error, String call) throws DeviceFault {
        if (error == nvml.NVML_SUCCESS) {
            return true;
        }
        if (error == nvml.NVML_ERROR_GPU_IS_LOST || error == nvml.NVML_ERROR_RESET_REQUIRED) {
            throw new DeviceFault(DeviceFault.Kind.LOST, call + ": " + nvml(error));
        }
        return false;
    }

    /** The name and number of an error of NVML. */
    static String nvml(int error) {
        return text(nvml.nvmlErrorString(error)) + " (" + error + ")";
    }

    private static String text(BytePointer text) {
        return text == null || text.isNull() ? "unknown" : text.getString();
    }
}
