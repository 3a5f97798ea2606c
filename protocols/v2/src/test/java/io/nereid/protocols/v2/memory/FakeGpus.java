// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.memory;

import io.nereid.device.Device;
import io.nereid.device.DeviceDriver;
import io.nereid.device.DeviceFault;
import io.nereid.device.DeviceReading;
import io.nereid.device.MemoryPlacement;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.lang.reflect.Field;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;

/**
 * Three GPUs, the last of which is too old, over memory of the host. The other process is the test: it has 64 bytes on the
 * first GPU, whose handle has the letter A in its first byte. Thread-safe.
 */
final class FakeGpus implements DeviceDriver {
    static final int BYTES = 64;

    /** What the other process sees. */
    final ByteBuf memory = Unpooled.directBuffer(BYTES, BYTES).writeZero(BYTES);

    final List<String> calls = new ArrayList<>();
    final Set<String> threads = ConcurrentHashMap.newKeySet();
    volatile boolean lost;
    volatile CountDownLatch copying = new CountDownLatch(0);

    private synchronized void called(String call) throws DeviceFault {
        calls.add(call);
        threads.add(Thread.currentThread().getName());
        if (lost) {
            throw new DeviceFault(DeviceFault.Kind.LOST, call + ": it is gone");
        }
    }

    @Override
    public String version() {
        return "fake";
    }

    @Override
    public List<Device> devices() {
        return List.of(
                new Device(0, "GPU-0", "fake", 8, 0, 1 << 20, null),
                new Device(1, "GPU-1", "fake", 8, 0, 1 << 20, null),
                new Device(2, "GPU-2", "fake", 5, 0, 1 << 20, null));
    }

    @Override
    public DeviceReading read(Device device) {
        return new DeviceReading(1 << 20, 0, 0, 0, 0, 0);
    }

    @Override
    public long allocate(MemoryPlacement placement, long bytes) {
        throw new UnsupportedOperationException();
    }

    @Override
    public void free(MemoryPlacement placement, long address) {
        throw new UnsupportedOperationException();
    }

    @Override
    public void copy(MemoryPlacement to, long toAddress, MemoryPlacement from, long fromAddress, long bytes)
            throws DeviceFault {
        try {
            copying.await();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
        called("copy " + from + " to " + to + " " + bytes);
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
    public int handleBytes() {
        return 64;
    }

    @Override
    public OpenedMemory openShared(MemoryPlacement placement, byte[] handle) throws DeviceFault {
        called("open " + placement);
        if (handle[0] != 'A' || placement.device() != 0) {
            throw new DeviceFault(DeviceFault.Kind.OTHER, "open: refused");
        }
        return new OpenedMemory(memory.memoryAddress(), BYTES);
    }

    @Override
    public void closeShared(MemoryPlacement placement, long address) throws DeviceFault {
        called("close " + placement + (address == memory.memoryAddress() ? "" : " at another address"));
    }

    @Override
    public ByteBuffer view(long address, int bytes) {
        throw new UnsupportedOperationException();
    }

    @Override
    public void close() {
        memory.release();
    }
}
