// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.device;

import io.nereid.base.ServingException;
import io.nereid.tensor.DeviceRegion;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Tensor;
import java.nio.ByteBuffer;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Memory that {@link Devices#allocate} has given. The caller owns it and closes it once; a second close does nothing.
 * Reading and writing it are for one thread at a time.
 */
public final class DeviceMemory implements AutoCloseable {
    private final Devices devices;
    private final MemoryPlacement placement;
    private final long address;
    private final long bytes;
    private final AtomicBoolean closed = new AtomicBoolean();

    DeviceMemory(Devices devices, MemoryPlacement placement, long address, long bytes) {
        this.devices = devices;
        this.placement = placement;
        this.address = address;
        this.bytes = bytes;
    }

    public MemoryPlacement placement() {
        return placement;
    }

    /**
     * The address, which native libraries take.
     *
     * @throws IllegalStateException after {@link #close}
     */
    public long address() {
        if (closed.get()) {
            throw new IllegalStateException("memory of " + placement + " is used after it was closed");
        }
        return address;
    }

    public long bytes() {
        return bytes;
    }

    /**
     * Returns the memory as a buffer in the byte order of the machine; it must not be used after {@link #close}.
     *
     * @throws IllegalStateException for memory of a device, or beyond 2 GiB
     */
    public ByteBuffer view() {
        if (!placement.isOnHost() || bytes > Integer.MAX_VALUE) {
            throw new IllegalStateException(bytes + " bytes of " + placement + " memory have no view");
        }
        return devices.view(address(), (int) bytes);
    }

    /**
     * Copies the whole of another memory to the beginning of this one, and returns when it is there.
     *
     * @throws ServingException INVALID_ARGUMENT when the other one is longer; UNAVAILABLE when a device is lost
     */
    public void copyFrom(DeviceMemory from) {
        if (from.bytes > bytes) {
            throw ServingException.invalidArgument(
                    from.bytes + " bytes do not fit into " + bytes + " bytes of " + placement + " memory",
                    "allocate at least as much as is copied");
        }
        devices.copy(this, from);
    }

    /**
     * Copies the bytes of a tensor into this memory, and returns when they are there. A tensor on the same device is copied there,
     * without a detour to the host.
     *
     * @param at the first byte to write
     * @throws IndexOutOfBoundsException when the bytes do not fit there
     * @throws ServingException UNAVAILABLE when a device is lost
     */
    public void write(long at, Tensor from) {
        int length = from.byteLength();
        if (at < 0 || length > bytes - at) {
            throw new IndexOutOfBoundsException(
                    length + " bytes at " + at + " are not in " + bytes + " bytes of " + placement + " memory");
        }
        DeviceRegion other = from.deviceRegion();
        if (length > 0 && other != null) {
            devices.transfers()
                    .copy(
                            placement,
                            address() + at,
                            MemoryPlacement.device(other.device()),
                            other.deviceAddress() + from.offset(),
                            length);
        } else if (length > 0) {
            devices.transfers().copy(placement, address() + at, MemoryPlacement.HOST, from.address(), length);
        }
    }

    /**
     * Hands memory of a device over to a region, which gives it back when its last reference is dropped: on the thread of the
     * device, {@link DeviceTransfers#thread}, since that may block. What was written to the memory must be there: a kernel or a
     * copy that is still under way must have ended.
     *
     * @param size the number of bytes from the first one on, at least 1
     * @throws IllegalStateException for memory of the host
     */
    public DeviceRegion region(int size) {
        if (placement.isOnHost() || size > bytes) {
            throw new IllegalStateException(
                    "no region of " + size + " bytes in " + bytes + " bytes of " + placement + " memory");
        }
        return DeviceRegion.of(
                new DeviceRegion.Memory() {
                    @Override
                    public int device() {
                        return placement.device();
                    }

                    @Override
                    public long address() {
                        return DeviceMemory.this.address();
                    }

                    @Override
                    public void read(MemoryRegion to) {
                        devices.transfers()
                                .copy(
                                        MemoryPlacement.HOST,
                                        to.address(),
                                        placement,
                                        DeviceMemory.this.address(),
                                        Math.min(to.size(), bytes));
                    }

                    @Override
                    public void free() {
                        devices.transfers().free(DeviceMemory.this);
                    }
                },
                size);
    }

    @Override
    public void close() {
        if (closed.compareAndSet(false, true)) {
            devices.free(placement, address, bytes);
        }
    }
}
