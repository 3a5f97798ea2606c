// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.device;

import java.nio.ByteBuffer;
import java.util.List;

/**
 * A driver of devices, opened by a plugin. Addresses are the driver's, and no call checks them: {@link Devices} is what
 * callers use. Thread-safe; calls block for as long as the driver does.
 */
public interface DeviceDriver extends AutoCloseable {
    /**
     * Memory of another process that was opened by a handle.
     *
     * @param address where it begins in this process
     * @param bytes how long the other process has allocated it, at least
     */
    record OpenedMemory(long address, long bytes) {}

    /** The versions of the driver and of its libraries in words, for logs. */
    String version();

    /** The devices by ordinal. {@code CUDA_VISIBLE_DEVICES} has selected and ordered them. */
    List<Device> devices();

    /**
     * Reads the figures of a device without using its memory.
     *
     * @param device one of {@link #devices()}
     * @throws DeviceFault when the device does not answer, or has an uncorrectable error in its memory
     */
    DeviceReading read(Device device) throws DeviceFault;

    /**
     * Allocates memory, whose content is not defined, and returns its address. The caller frees it.
     *
     * @param bytes at least 1
     * @throws DeviceFault OUT_OF_MEMORY, or another one
     */
    long allocate(MemoryPlacement placement, long bytes) throws DeviceFault;

    /**
     * Frees what {@link #allocate} has returned.
     *
     * @throws DeviceFault when the device is not usable any more; the memory is then gone with it
     */
    void free(MemoryPlacement placement, long address) throws DeviceFault;

    /**
     * Copies bytes, and returns when they are there.
     *
     * @throws DeviceFault when a device does not do it
     */
    void copy(MemoryPlacement to, long toAddress, MemoryPlacement from, long fromAddress, long bytes)
            throws DeviceFault;

    /**
     * Returns the number of bytes of a handle for memory of another process, which is 64 for CUDA's
     * {@code cudaIpcMemHandle_t}; 0 for a driver whose devices do not share memory.
     */
    default int handleBytes() {
        return 0;
    }

    /**
     * Opens the memory of a device that another process has allocated and shares by a handle. The caller closes it, once
     * for each time that it was opened. The other process keeps the memory until then.
     *
     * @param placement the device
     * @param handle {@link #handleBytes()} bytes
     * @throws DeviceFault when the driver refuses the handle
     */
    default OpenedMemory openShared(MemoryPlacement placement, byte[] handle) throws DeviceFault {
        throw new DeviceFault(DeviceFault.Kind.OTHER, "the driver does not share memory");
    }

    /**
     * Closes what {@link #openShared} has opened.
     *
     * @throws DeviceFault when the device is not usable any more
     */
    default void closeShared(MemoryPlacement placement, long address) throws DeviceFault {
        throw new DeviceFault(DeviceFault.Kind.OTHER, "the driver does not share memory");
    }

    /** Returns memory of the host as a buffer in the byte order of the machine; valid until the memory is freed. */
    ByteBuffer view(long address, int bytes);

    /** Releases the driver. Memory must have been freed before. */
    @Override
    void close();
}
