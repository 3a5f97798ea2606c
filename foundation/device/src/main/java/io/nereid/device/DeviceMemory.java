// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.device;

import io.nereid.base.ServingException;
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

    @Override
    public void close() {
        if (closed.compareAndSet(false, true)) {
            devices.free(placement, address, bytes);
        }
    }
}
