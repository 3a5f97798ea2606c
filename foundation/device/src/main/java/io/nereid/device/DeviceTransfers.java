// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.device;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.atomic.LongAdder;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The copies between the host and the devices, all of which are made and counted here, and the memory that other processes
 * share. A device has one thread for them, which ends when it is idle: what is given to it runs in that order, and a device
 * that does not answer holds up no other thread. Thread-safe.
 */
public final class DeviceTransfers {
    private static final Logger LOG = LoggerFactory.getLogger(DeviceTransfers.class);

    /** The direction of a copy. */
    public enum Direction {
        /** From the host, or from another device, to the device. */
        TO_DEVICE,
        /** From the device to the host. */
        FROM_DEVICE
    }

    /**
     * Copies in one direction.
     *
     * @param copies how many have ended well
     * @param bytes what they have copied
     */
    public record Copied(long copies, long bytes) {}

    private static final class Counter {
        final LongAdder copies = new LongAdder();
        final LongAdder bytes = new LongAdder();
    }

    private final Devices devices;
    private final DeviceDriver driver;
    private final List<Map<Direction, Counter>> counters;

    @GuardedBy("this") private final Map<Integer, ThreadPoolExecutor> threads = new HashMap<>();

    @GuardedBy("this") private boolean ended;

    DeviceTransfers(Devices devices, DeviceDriver driver) {
        this.devices = devices;
        this.driver = driver;
        this.counters = driver.devices().stream()
                .map(device -> Map.of(Direction.TO_DEVICE, new Counter(), Direction.FROM_DEVICE, new Counter()))
                .toList();
    }

    /** Returns the copies of a device since the start. */
    public Copied copied(int ordinal, Direction direction) {
        Counter counter = counter(ordinal, direction);
        return new Copied(counter.copies.sum(), counter.bytes.sum());
    }

    private Counter counter(int ordinal, Direction direction) {
        Counter counter = counters.get(ordinal).get(direction);
        if (counter == null) {
            throw new IllegalStateException("no counter for " + direction);
        }
        return counter;
    }

    /**
     * Returns the thread of a device. It runs one task after another; a task that is given after the end throws
     * {@link RejectedExecutionException}.
     *
     * @throws ServingException INVALID_ARGUMENT for an ordinal that there is not
     */
    public synchronized Executor thread(int ordinal) {
        devices.state(ordinal);
        ThreadPoolExecutor thread = threads.computeIfAbsent(ordinal, n -> Threads.pool("device-copy-" + n, 1));
        if (ended) {
            thread.shutdown();
        }
        return thread;
    }

    /** Returns the number of bytes of a handle; 0 when the devices do not share memory. */
    public int handleBytes() {
        return driver.handleBytes();
    }

    /**
     * Opens memory that another process shares. The caller releases it. Blocks: call it on {@link #thread}.
     *
     * @param handle {@link #handleBytes()} bytes
     * @throws ServingException INVALID_ARGUMENT for a device that there is not, or a handle that the driver refuses, with
     *     the driver's error; UNAVAILABLE when the device is lost; FAILED_PRECONDITION when it is not supported
     */
    public SharedDeviceMemory openShared(int ordinal, byte[] handle) {
        devices.state(ordinal);
        if (handle.length != driver.handleBytes()) {
            throw ServingException.invalidArgument("a handle of shared memory has " + handle.length
                    + " bytes (expected: " + driver.handleBytes() + ")");
        }
        MemoryPlacement placement = MemoryPlacement.device(ordinal);
        devices.require(placement);
        try {
            DeviceDriver.OpenedMemory opened = driver.openShared(placement, handle);
            return new SharedDeviceMemory(this, placement, opened.address(), opened.bytes());
        } catch (DeviceFault e) {
            String what = "cannot open shared memory of " + placement;
            if (e.kind() == DeviceFault.Kind.OTHER) {
                throw ServingException.invalidArgument(what + ": " + e.getMessage());
            }
            throw devices.failed(e, what, placement);
        }
    }

    /** Closes memory on the thread of its device. */
    void close(MemoryPlacement placement, long address) {
        try {
            thread(placement.device()).execute(() -> closeNow(placement, address));
        } catch (RejectedExecutionException e) {
            // The process ends, which closes it.
            LOG.debug("shared memory of {} is not closed: the server has ended", placement);
        }
    }

    private void closeNow(MemoryPlacement placement, long address) {
        try {
            driver.closeShared(placement, address);
        } catch (DeviceFault e) {
            // The memory is gone with its device; there is nothing left to do.
            devices.note(e, placement);
            LOG.debug("shared memory of {} is not closed: {}", placement, e.getMessage());
        }
    }

    /** Copies and counts; blocks. */
    void copy(MemoryPlacement to, long toAddress, MemoryPlacement from, long fromAddress, long bytes) {
        devices.require(to);
        devices.require(from);
        try {
            driver.copy(to, toAddress, from, fromAddress, bytes);
        } catch (DeviceFault e) {
            throw devices.failed(e, "cannot copy from " + from + " to " + to + " memory", to.isOnHost() ? from : to);
        }
        // Within one device nothing passes the link to the host, and within the host there is no device.
        if (!to.equals(from) && !(to.isOnHost() && from.isOnHost())) {
            if (to.isOnHost()) {
                count(from.device(), Direction.FROM_DEVICE, bytes);
            } else {
                count(to.device(), Direction.TO_DEVICE, bytes);
            }
        }
    }

    /**
     * Counts a copy that a backend has made itself, in a stream of its own, and that has ended well.
     *
     * @throws ServingException INVALID_ARGUMENT for an ordinal that there is not
     */
    public void count(int ordinal, Direction direction, long bytes) {
        devices.state(ordinal);
        Counter counter = counter(ordinal, direction);
        counter.copies.increment();
        counter.bytes.add(bytes);
    }

    /** Frees memory on the thread of its device. */
    void free(DeviceMemory memory) {
        try {
            thread(memory.placement().device()).execute(memory::close);
        } catch (RejectedExecutionException e) {
            memory.close();
        }
    }

    /** Ends the threads once they have done what they were given. */
    synchronized void end() {
        ended = true;
        threads.values().forEach(ThreadPoolExecutor::shutdown);
    }
}
