// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.devices.cuda;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.device.DeviceFault;
import io.nereid.device.DeviceReading;
import io.nereid.device.MigPart;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import org.bytedeco.cuda.global.nvml;
import org.bytedeco.cuda.nvml.nvmlDevice_st;
import org.bytedeco.cuda.nvml.nvmlMemory_t;
import org.bytedeco.cuda.nvml.nvmlUtilization_t;
import org.bytedeco.javacpp.BytePointer;
import org.jspecify.annotations.Nullable;

/**
 * The figures of devices by NVML, which counts them without regard to {@code CUDA_VISIBLE_DEVICES}: they are found by
 * their identities. Thread-safe.
 */
final class Nvml implements AutoCloseable {
    private final Map<String, nvmlDevice_st> handles = new ConcurrentHashMap<>();
    private final AtomicBoolean closed = new AtomicBoolean();

    private Nvml() {}

    /** @throws ServingException FAILED_PRECONDITION when NVML does not start */
    static Nvml open() {
        int error = nvml.nvmlInit_v2();
        if (error != nvml.NVML_SUCCESS) {
            throw ServingException.of(
                    ErrorCode.FAILED_PRECONDITION,
                    "NVML does not start: nvmlInit_v2: " + CudaErrors.nvml(error),
                    "look at nvidia-smi; the library and the kernel's module must have one version");
        }
        return new Nvml();
    }

    /** The version of the driver. */
    String driverVersion() {
        byte[] text = new byte[nvml.NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE];
        return nvml.nvmlSystemGetDriverVersion(text, text.length) == nvml.NVML_SUCCESS ? string(text) : "unknown";
    }

    /** The text up to the first 0, in ASCII. */
    static String string(byte[] text) {
        StringBuilder letters = new StringBuilder();
        for (int i = 0; i < text.length && text[i] != 0; i++) {
            letters.append((char) (text[i] & 0x7f));
        }
        return letters.toString();
    }

    /**
     * Finds a device by the digits of its identity, and returns the identity with its kind.
     *
     * @throws ServingException FAILED_PRECONDITION when NVML does not know a device that CUDA knows
     */
    String register(String digits) {
        int error = nvml.NVML_SUCCESS;
        for (String kind : new String[] {"GPU-", "MIG-"}) {
            String uuid = kind + digits;
            nvmlDevice_st handle = new nvmlDevice_st();
            try (BytePointer text = new BytePointer(uuid)) {
                error = nvml.nvmlDeviceGetHandleByUUID(text, handle);
            }
            if (error == nvml.NVML_SUCCESS) {
                handles.put(uuid, handle);
                return uuid;
            }
        }
        throw ServingException.of(
                ErrorCode.FAILED_PRECONDITION,
                "NVML does not know the device " + digits + ": nvmlDeviceGetHandleByUUID: " + CudaErrors.nvml(error),
                "look at nvidia-smi -L");
    }

    /** Which part of a GPU a device is; null for a whole one. */
    @Nullable MigPart part(String uuid) {
        nvmlDevice_st handle = handle(uuid);
        int[] is = new int[1];
        if (nvml.nvmlDeviceIsMigDeviceHandle(handle, is) != nvml.NVML_SUCCESS || is[0] == 0) {
            return null;
        }
        int[] instance = new int[1];
        int[] compute = new int[1];
        nvmlDevice_st parent = new nvmlDevice_st();
        byte[] text = new byte[nvml.NVML_DEVICE_UUID_V2_BUFFER_SIZE];
        boolean known = nvml.nvmlDeviceGetGpuInstanceId(handle, instance) == nvml.NVML_SUCCESS
                && nvml.nvmlDeviceGetComputeInstanceId(handle, compute) == nvml.NVML_SUCCESS
                && nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle, parent) == nvml.NVML_SUCCESS
                && nvml.nvmlDeviceGetUUID(parent, text, text.length) == nvml.NVML_SUCCESS;
        return known ? new MigPart(string(text), instance[0], compute[0]) : null;
    }

    /** @throws DeviceFault when the device is lost, or has an uncorrectable error in its memory since it was reset */
    DeviceReading read(String uuid) throws DeviceFault {
        nvmlDevice_st handle = handle(uuid);
        long[] count = new long[1];
        if (CudaErrors.has(
                        nvml.nvmlDeviceGetTotalEccErrors(
                                handle, nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC, count),
                        "nvmlDeviceGetTotalEccErrors")
                && count[0] > 0) {
            throw new DeviceFault(
                    DeviceFault.Kind.ECC, "nvmlDeviceGetTotalEccErrors: " + count[0] + " uncorrected errors");
        }
        try (nvmlMemory_t memory = new nvmlMemory_t();
                nvmlUtilization_t busy = new nvmlUtilization_t()) {
            boolean sizes = CudaErrors.has(nvml.nvmlDeviceGetMemoryInfo(handle, memory), "nvmlDeviceGetMemoryInfo");
            boolean rates =
                    CudaErrors.has(nvml.nvmlDeviceGetUtilizationRates(handle, busy), "nvmlDeviceGetUtilizationRates");
            int[] power = new int[1];
            int[] limit = new int[1];
            long[] energy = new long[1];
            boolean powers = CudaErrors.has(nvml.nvmlDeviceGetPowerUsage(handle, power), "nvmlDeviceGetPowerUsage");
            boolean limited = CudaErrors.has(
                    nvml.nvmlDeviceGetEnforcedPowerLimit(handle, limit), "nvmlDeviceGetEnforcedPowerLimit");
            boolean energies = CudaErrors.has(
                    nvml.nvmlDeviceGetTotalEnergyConsumption(handle, energy), "nvmlDeviceGetTotalEnergyConsumption");
            return new DeviceReading(
                    sizes ? memory.total() : -1,
                    sizes ? memory.used() : -1,
                    rates ? busy.gpu() / 100.0 : Double.NaN,
                    powers ? power[0] / 1000.0 : Double.NaN,
                    limited ? limit[0] / 1000.0 : Double.NaN,
                    energies ? energy[0] / 1000.0 : Double.NaN);
        }
    }

    private nvmlDevice_st handle(String uuid) {
        nvmlDevice_st handle = handles.get(uuid);
        if (handle == null || closed.get()) {
            throw new IllegalStateException("NVML has no device " + uuid + ", or is closed");
        }
        return handle;
    }

    @Override
    public void close() {
        if (closed.compareAndSet(false, true)) {
            int unused = nvml.nvmlShutdown();
        }
    }
}
