// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine;

import io.nereid.device.Device;
import io.nereid.device.DeviceDriver;
import io.nereid.device.DeviceFault;
import io.nereid.device.DeviceReading;
import io.nereid.device.MemoryPlacement;
import io.nereid.tensor.MemoryRegion;
import java.lang.reflect.Field;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** A driver of two devices of 1000 bytes, whose memory is the host's. Thread-safe. */
final class FakeDeviceDriver implements DeviceDriver {
    /** The devices that do not answer any more. */
    final Set<Integer> lost = ConcurrentHashMap.newKeySet();

    /** The bytes that other processes use, by device. */
    final Map<Integer, Long> used = new ConcurrentHashMap<>();

    /** The threads of copies. */
    final Set<String> copying = ConcurrentHashMap.newKeySet();

    /** The threads on which memory was freed. */
    final Set<String> freeing = ConcurrentHashMap.newKeySet();

    private final Map<Long, MemoryRegion> memory = new ConcurrentHashMap<>();

    /** The number of allocations that have not been freed. */
    int allocated() {
        return memory.size();
    }

    @Override
    public String version() {
        return "fake";
    }

    @Override
    public List<Device> devices() {
        return List.of(
                new Device(0, "GPU-0", "fake", 8, 0, 1000, null), new Device(1, "GPU-1", "fake", 9, 0, 1000, null));
    }

    private void answers(MemoryPlacement placement) throws DeviceFault {
        if (!placement.isOnHost() && lost.contains(placement.device())) {
            throw new DeviceFault(DeviceFault.Kind.LOST, "fell off the bus");
        }
    }

    @Override
    public DeviceReading read(Device device) throws DeviceFault {
        answers(MemoryPlacement.device(device.ordinal()));
        return new DeviceReading(1000, used.getOrDefault(device.ordinal(), 100L), 0, 0, 0, 0);
    }

    @Override
    public long allocate(MemoryPlacement placement, long bytes) throws DeviceFault {
        answers(placement);
        MemoryRegion region = MemoryRegion.allocate(Math.toIntExact(bytes));
        memory.put(region.address(), region);
        return region.address();
    }

    @Override
    public void free(MemoryPlacement placement, long address) throws DeviceFault {
        freeing.add(Thread.currentThread().getName());
        if (!memory.remove(address).release()) {
            throw new AssertionError("memory is still used");
        }
        answers(placement);
    }

    @Override
    public void copy(MemoryPlacement to, long toAddress, MemoryPlacement from, long fromAddress, long bytes)
            throws DeviceFault {
        copying.add(Thread.currentThread().getName());
        answers(to);
        answers(from);
        try {
            Class<?> type = Class.forName("sun.misc.Unsafe");
            Field instance = type.getDeclaredField("theUnsafe");
            instance.setAccessible(true);
            type.getMethod("copyMemory", long.class, long.class, long.class)
                    .invoke(instance.get(null), fromAddress, toAddress, bytes);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }

    @Override
    public ByteBuffer view(long address, int bytes) {
        return memory.get(address).buffer(0, bytes);
    }

    @Override
    public void close() {}
}
