// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine;

import io.nereid.device.Device;
import io.nereid.device.DeviceDriver;
import io.nereid.device.DeviceFault;
import io.nereid.device.DeviceReading;
import io.nereid.device.MemoryPlacement;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;

/** A driver of two devices of 1000 bytes, whose memory is on the heap. Thread-safe. */
final class FakeDeviceDriver implements DeviceDriver {
    /** The devices that do not answer any more. */
    final Set<Integer> lost = ConcurrentHashMap.newKeySet();

    /** The bytes that other processes use, by device. */
    final Map<Integer, Long> used = new ConcurrentHashMap<>();

    private final Map<Long, ByteBuffer> memory = new ConcurrentHashMap<>();
    private final AtomicLong addresses = new AtomicLong();

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
        long address = addresses.incrementAndGet();
        memory.put(address, ByteBuffer.allocate(Math.toIntExact(bytes)));
        return address;
    }

    @Override
    public void free(MemoryPlacement placement, long address) throws DeviceFault {
        memory.remove(address);
        answers(placement);
    }

    @Override
    public void copy(MemoryPlacement to, long toAddress, MemoryPlacement from, long fromAddress, long bytes)
            throws DeviceFault {
        answers(to);
        answers(from);
        view(toAddress, (int) bytes).put(view(fromAddress, (int) bytes));
    }

    @Override
    public ByteBuffer view(long address, int bytes) {
        return memory.get(address).duplicate().clear().limit(bytes);
    }

    @Override
    public void close() {}
}
