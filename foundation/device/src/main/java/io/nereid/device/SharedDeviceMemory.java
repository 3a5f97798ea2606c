// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.device;

import io.nereid.base.ServingException;
import io.nereid.tensor.MemoryRegion;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Memory of a device that another process has allocated and shares. Reference-counted: the caller that opened it owns
 * the first reference, and the last release closes it, on the thread of the device. The other process may change the content at any
 * time. Thread-safe.
 */
public final class SharedDeviceMemory {
    private final DeviceTransfers transfers;
    private final MemoryPlacement placement;
    private final long address;
    private final long bytes;
    private final AtomicInteger references = new AtomicInteger(1);

    SharedDeviceMemory(DeviceTransfers transfers, MemoryPlacement placement, long address, long bytes) {
        this.transfers = transfers;
        this.placement = placement;
        this.address = address;
        this.bytes = bytes;
    }

    /** Returns the ordinal of the device. */
    public int device() {
        return placement.device();
    }

    public long bytes() {
        return bytes;
    }

    /** Returns the thread on which copies of this device are made: copies block, and keep the order of their start. */
    public Executor thread() {
        return transfers.thread(placement.device());
    }

    /**
     * Copies to memory of the host; blocks.
     *
     * @throws ServingException UNAVAILABLE when the device is lost
     */
    public void read(long offset, MemoryRegion to, int toOffset, int length) {
        long from = at(offset, length);
        check(toOffset, length, to);
        if (length > 0) {
            transfers.copy(MemoryPlacement.HOST, to.address() + toOffset, placement, from, length);
        }
    }

    /**
     * Copies from memory of the host, and returns when the bytes are on the device; blocks.
     *
     * @throws ServingException UNAVAILABLE when the device is lost
     */
    public void write(long offset, MemoryRegion from, int fromOffset, int length) {
        long to = at(offset, length);
        check(fromOffset, length, from);
        if (length > 0) {
            transfers.copy(placement, to, MemoryPlacement.HOST, from.address() + fromOffset, length);
        }
    }

    private long at(long offset, int length) {
        if (references.get() <= 0) {
            throw new IllegalStateException("shared memory of " + placement + " is used after it was closed");
        }
        if (offset < 0 || length < 0 || length > bytes - offset) {
            throw new IndexOutOfBoundsException(
                    length + " bytes at " + offset + " are not in shared memory of " + bytes + " bytes");
        }
        return address + offset;
    }

    private static void check(int offset, int length, MemoryRegion host) {
        if (offset < 0 || length < 0 || length > host.size() - offset) {
            throw new IndexOutOfBoundsException(
                    length + " bytes at " + offset + " are not in a region of " + host.size() + " bytes");
        }
    }

    /** Adds a reference, to be dropped by {@link #release}. */
    public SharedDeviceMemory retain() {
        references.updateAndGet(n -> {
            if (n <= 0) {
                throw new IllegalStateException("shared memory of " + placement + " is retained after it was closed");
            }
            return n + 1;
        });
        return this;
    }

    /** Drops a reference; does not block. */
    public void release() {
        if (references.decrementAndGet() == 0) {
            transfers.close(placement, address);
        }
    }
}
