// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.devices.cuda;

import io.nereid.device.Device;
import io.nereid.device.DeviceDriver;
import io.nereid.device.DeviceFault;
import io.nereid.device.DeviceReading;
import io.nereid.device.MemoryPlacement;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import org.bytedeco.cuda.cudart.CUuuid;
import org.bytedeco.cuda.cudart.cudaIpcMemHandle_t;
import org.bytedeco.cuda.global.cudart;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.javacpp.PointerPointer;
import org.bytedeco.javacpp.SizeTPointer;

/**
 * Devices by the CUDA runtime, whose memory the libraries of the field share. The runtime has a current device for each
 * thread; every call sets it. Opening does not take memory of a device; its first allocation does. Thread-safe.
 */
final class CudaDriver implements DeviceDriver {
    private static final int NAME_BYTES = 256;

    private final List<Device> devices;
    private final Nvml nvml;
    private final String version;

    private CudaDriver(List<Device> devices, Nvml nvml, String version) {
        this.devices = List.copyOf(devices);
        this.nvml = nvml;
        this.version = version;
    }

    /**
     * Finds the devices.
     *
     * @throws io.nereid.base.ServingException UNAVAILABLE without a device, FAILED_PRECONDITION when the driver fails
     */
    static CudaDriver open() {
        int[] number = new int[1];
        CudaErrors.start(cudart.cudaGetDeviceCount(number), "cudaGetDeviceCount");
        int count = number[0];
        CudaErrors.start(cudart.cuInit(0), "cuInit");
        CudaErrors.start(cudart.cudaDriverGetVersion(number), "cudaDriverGetVersion");
        int driver = number[0];
        CudaErrors.start(cudart.cudaRuntimeGetVersion(number), "cudaRuntimeGetVersion");
        int runtime = number[0];
        Nvml nvml = Nvml.open();
        boolean done = false;
        try {
            List<Device> devices = new ArrayList<>();
            for (int i = 0; i < count; i++) {
                devices.add(device(i, nvml));
            }
            done = true;
            return new CudaDriver(
                    devices,
                    nvml,
                    "driver " + nvml.driverVersion() + ", which is for CUDA " + release(driver) + "; CUDA runtime "
                            + release(runtime));
        } finally {
            if (!done) {
                nvml.close();
            }
        }
    }

    /** Version 13010 is 13.1. */
    private static String release(int version) {
        return version / 1000 + "." + version % 1000 / 10;
    }

    private static Device device(int ordinal, Nvml nvml) {
        int[] number = new int[1];
        CudaErrors.start(cudart.cuDeviceGet(number, ordinal), "cuDeviceGet");
        int handle = number[0];
        int major = attribute(cudart.cudaDevAttrComputeCapabilityMajor, ordinal);
        int minor = attribute(cudart.cudaDevAttrComputeCapabilityMinor, ordinal);
        byte[] name = new byte[NAME_BYTES];
        try (CUuuid uuid = new CUuuid();
                SizeTPointer bytes = new SizeTPointer(1)) {
            CudaErrors.start(cudart.cuDeviceGetName(name, NAME_BYTES, handle), "cuDeviceGetName");
            CudaErrors.start(cudart.cuDeviceGetUuid(uuid, handle), "cuDeviceGetUuid");
            CudaErrors.start(cudart.cuDeviceTotalMem(bytes, handle), "cuDeviceTotalMem");
            String identity = nvml.register(text(uuid));
            return new Device(ordinal, identity, Nvml.string(name), major, minor, bytes.get(), nvml.part(identity));
        }
    }

    private static int attribute(int attribute, int ordinal) {
        int[] value = new int[1];
        CudaErrors.start(cudart.cudaDeviceGetAttribute(value, attribute, ordinal), "cudaDeviceGetAttribute");
        return value[0];
    }

    /** The digits of an identity in groups, without the kind of the device. */
    private static String text(CUuuid uuid) {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < 16; i++) {
            if (i == 4 || i == 6 || i == 8 || i == 10) {
                text.append('-');
            }
            int value = uuid.bytes(i);
            text.append(Character.forDigit(value >> 4 & 15, 16)).append(Character.forDigit(value & 15, 16));
        }
        return text.toString();
    }

    @Override
    public String version() {
        return version;
    }

    @Override
    public List<Device> devices() {
        return devices;
    }

    @Override
    public DeviceReading read(Device device) throws DeviceFault {
        return nvml.read(device.uuid());
    }

    @Override
    public long allocate(MemoryPlacement placement, long bytes) throws DeviceFault {
        if (placement.kind() == MemoryPlacement.Kind.HOST) {
            Pointer at = Pointer.malloc(bytes);
            if (at == null || at.isNull()) {
                throw new DeviceFault(DeviceFault.Kind.OUT_OF_MEMORY, "malloc of " + bytes + " bytes has failed");
            }
            return at.address();
        }
        try (PointerPointer<Pointer> at = new PointerPointer<>(1)) {
            if (placement.kind() == MemoryPlacement.Kind.PINNED) {
                CudaErrors.check(cudart.cudaHostAlloc(at, bytes, cudart.cudaHostAllocPortable), "cudaHostAlloc");
            } else {
                select(placement);
                CudaErrors.check(cudart.cudaMalloc(at, bytes), "cudaMalloc");
            }
            return at.get(0).address();
        }
    }

    @Override
    public void free(MemoryPlacement placement, long address) throws DeviceFault {
        Pointer at = new Address(address);
        switch (placement.kind()) {
            case HOST -> Pointer.free(at);
            case PINNED -> CudaErrors.check(cudart.cudaFreeHost(at), "cudaFreeHost");
            case DEVICE -> {
                select(placement);
                CudaErrors.check(cudart.cudaFree(at), "cudaFree");
            }
        }
    }

    @Override
    public void copy(MemoryPlacement to, long toAddress, MemoryPlacement from, long fromAddress, long bytes)
            throws DeviceFault {
        if (to.isOnHost() && from.isOnHost()) {
            Pointer.memcpy(new Address(toAddress), new Address(fromAddress), bytes);
            return;
        }
        select(to.isOnHost() ? from : to);
        // The runtime knows from the addresses where both are.
        CudaErrors.check(
                cudart.cudaMemcpy(new Address(toAddress), new Address(fromAddress), bytes, cudart.cudaMemcpyDefault),
                "cudaMemcpy");
        if (!to.isOnHost()) {
            // To a device, the call returns once the bytes have left the host's memory, which is before they arrive.
            CudaErrors.check(cudart.cudaStreamSynchronize(null), "cudaStreamSynchronize");
        }
    }

    @Override
    public int handleBytes() {
        return cudart.CUDA_IPC_HANDLE_SIZE;
    }

    @Override
    public OpenedMemory openShared(MemoryPlacement placement, byte[] handle) throws DeviceFault {
        select(placement);
        long address;
        try (PointerPointer<Pointer> at = new PointerPointer<>(1);
                cudaIpcMemHandle_t memory = new cudaIpcMemHandle_t()) {
            for (int i = 0; i < handle.length; i++) {
                memory.reserved(i, handle[i]);
            }
            CudaErrors.checkHandle(
                    cudart.cudaIpcOpenMemHandle(at, memory, cudart.cudaIpcMemLazyEnablePeerAccess),
                    "cudaIpcOpenMemHandle");
            address = at.get(0).address();
        }
        boolean done = false;
        try (SizeTPointer bytes = new SizeTPointer(1)) {
            long[] base = new long[1];
            CudaErrors.check(cudart.cuMemGetAddressRange(base, bytes, address), "cuMemGetAddressRange");
            done = true;
            return new OpenedMemory(address, base[0] + bytes.get() - address);
        } finally {
            if (!done) {
                int unused = cudart.cudaIpcCloseMemHandle(new Address(address));
            }
        }
    }

    @Override
    public void closeShared(MemoryPlacement placement, long address) throws DeviceFault {
        select(placement);
        CudaErrors.check(cudart.cudaIpcCloseMemHandle(new Address(address)), "cudaIpcCloseMemHandle");
    }

    private static void select(MemoryPlacement placement) throws DeviceFault {
        CudaErrors.check(cudart.cudaSetDevice(placement.device()), "cudaSetDevice");
    }

    @Override
    public ByteBuffer view(long address, int bytes) {
        return new BytePointer(new Address(address))
                .capacity(bytes)
                .asByteBuffer()
                .order(ByteOrder.nativeOrder());
    }

    @Override
    public void close() {
        nvml.close();
    }

    /** A pointer to memory that it does not own. */
    private static final class Address extends Pointer {
        Address(long address) {
            this.address = address;
        }
    }
}
