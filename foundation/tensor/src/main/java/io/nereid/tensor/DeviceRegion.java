// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.tensor;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.nio.ByteBuffer;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/**
 * A reference-counted region in the memory of a device. Processors can read its bytes only after {@link #copyToHost}, which
 * copies the whole region once, for all its readers; before, and for writing, the methods of {@link MemoryRegion} that
 * access bytes or give an address throw {@link IllegalStateException}. The memory is given back once, when the count reaches
 * zero. Counting and {@link #copyToHost} are thread-safe.
 */
public final class DeviceRegion extends MemoryRegion {
    /** The memory behind a region, which the region owns. Implementations are thread-safe. */
    public interface Memory {
        /** The ordinal of the device. */
        int device();

        /** The address of the first byte on the device. */
        long address();

        /**
         * Copies from the first byte on to memory of the host; blocks until the bytes are there.
         *
         * @param to where to, with as many bytes as are copied
         * @throws io.nereid.base.ServingException UNAVAILABLE when the device is lost
         */
        void read(MemoryRegion to);

        /** Gives the memory back. Called once, on any thread: must neither block nor throw. */
        void free();
    }

    private final Memory memory;
    private final int size;
    private final AtomicInteger references = new AtomicInteger(1);
    private volatile @Nullable MemoryRegion host;

    private DeviceRegion(Memory memory, int size) {
        super(Unpooled.EMPTY_BUFFER);
        this.memory = memory;
        this.size = size;
    }

    /**
     * Creates a region, which owns the memory from here on.
     *
     * @param size its number of bytes, at least 1
     */
    public static DeviceRegion of(Memory memory, int size) {
        if (size < 1) {
            throw new IllegalArgumentException("a region of a device has " + size + " bytes (expected: at least 1)");
        }
        return new DeviceRegion(memory, size);
    }

    /** The ordinal of the device. */
    public int device() {
        return memory.device();
    }

    /** The address of the first byte on the device; valid while the caller holds a reference. */
    public long deviceAddress() {
        if (references.get() <= 0) {
            throw new IllegalStateException("memory of device " + device() + " is used after it was released");
        }
        return memory.address();
    }

    /**
     * Makes the bytes readable for processors, and returns them, without a reference of their own. The first call copies them and
     * blocks until they are there; later ones return the same.
     *
     * @throws io.nereid.base.ServingException UNAVAILABLE when the device is lost, RESOURCE_EXHAUSTED without memory
     */
    public MemoryRegion copyToHost() {
        MemoryRegion made = host;
        if (made != null) {
            return made;
        }
        synchronized (this) {
            made = host;
            if (made == null) {
                long unused = deviceAddress();
                made = MemoryRegion.allocate(size);
                boolean done = false;
                try {
                    memory.read(made);
                    done = true;
                } finally {
                    if (!done) {
                        made.release();
                    }
                }
                host = made;
            }
            return made;
        }
    }

    /** Whether {@link #copyToHost} returns at once. */
    public boolean isOnHost() {
        return host != null;
    }

    private MemoryRegion readable() {
        MemoryRegion made = host;
        if (made == null) {
            throw new IllegalStateException(
                    "the bytes are in the memory of device " + device() + " and have not been copied to the host");
        }
        return made;
    }

    private IllegalStateException readOnly() {
        return new IllegalStateException("memory of device " + device() + " cannot be written by processors");
    }

    @Override
    ByteBuf buf() {
        return readable().buf();
    }

    @Override
    boolean onDevice() {
        return true;
    }

    @Override
    public int size() {
        return size;
    }

    @Override
    public long address() {
        return readable().address();
    }

    @Override
    public ByteBuffer buffer(int offset, int length) {
        return readable().buffer(offset, length);
    }

    @Override
    public void getBytes(int offset, byte[] target, int targetOffset, int length) {
        readable().getBytes(offset, target, targetOffset, length);
    }

    @Override
    public void setBytes(int offset, byte[] source, int sourceOffset, int length) {
        throw readOnly();
    }

    @Override
    public void setBytes(int offset, MemoryRegion source, int sourceOffset, int length) {
        throw readOnly();
    }

    @Override
    public byte getByte(int offset) {
        return readable().getByte(offset);
    }

    @Override
    public int getInt(int offset) {
        return readable().getInt(offset);
    }

    @Override
    public void setInt(int offset, int value) {
        throw readOnly();
    }

    @Override
    public MemoryRegion zero() {
        throw readOnly();
    }

    @Override
    public MemoryRegion retain() {
        references.updateAndGet(n -> {
            if (n <= 0) {
                throw new IllegalStateException("memory of device " + device() + " is retained after it was released");
            }
            return n + 1;
        });
        return this;
    }

    @Override
    public boolean release() {
        int left = references.decrementAndGet();
        if (left < 0) {
            references.incrementAndGet();
            throw new IllegalStateException(
                    "memory of device " + device() + " is released more often than it was retained");
        }
        if (left == 0) {
            MemoryRegion made = host;
            if (made != null) {
                made.release();
            }
            memory.free();
        }
        return left == 0;
    }
}
