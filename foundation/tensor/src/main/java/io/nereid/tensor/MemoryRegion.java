// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.tensor;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.buffer.UnpooledByteBufAllocator;
import io.netty.buffer.UnpooledUnsafeDirectByteBuf;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * A reference-counted region of direct memory. The creator owns the first reference; the memory is freed, or returned
 * to its foreign owner, when the count reaches zero. Counting is thread-safe; access to the bytes is not synchronised.
 *
 * <p>Pooled regions start on a 64-byte boundary. Their content is undefined at first: overwrite them completely.
 *
 * <p>{@link DeviceRegion} is the only other kind. Programs meet it where they have said that they take it, and nowhere else.
 */
public class MemoryRegion {
    /** The size of a cache line, and the widest alignment that an inference library asks for. */
    public static final int ALIGNMENT = 64;

    private static final MemoryRegion EMPTY = new MemoryRegion(Unpooled.EMPTY_BUFFER);

    private final ByteBuf buf;

    /** @param buf a direct buffer whose one reference the region takes over; its readable bytes start at index 0 */
    MemoryRegion(ByteBuf buf) {
        this.buf = buf;
    }

    /**
     * Allocates a pooled, 64-byte aligned region of exactly {@code size} bytes; 0 returns the shared empty region.
     *
     * @throws io.nereid.base.ServingException RESOURCE_EXHAUSTED, with a remedy, when the process has no memory for it
     */
    public static MemoryRegion allocate(int size) {
        return size == 0 ? EMPTY : new MemoryRegion(NettyBuffers.direct(size).writerIndex(size));
    }

    /** The region of zero bytes, which is never freed. */
    public static MemoryRegion empty() {
        return EMPTY;
    }

    /** Copies {@code length} bytes of {@code bytes} to a new pooled region. */
    public static MemoryRegion copyOf(byte[] bytes, int offset, int length) {
        MemoryRegion region = allocate(length);
        if (length > 0) {
            region.buf.setBytes(0, bytes, offset, length);
        }
        return region;
    }

    /**
     * Wraps memory of another owner.
     *
     * @param memory a direct buffer; all of it is used, regardless of its position
     * @param onFree runs once, on the thread that releases the last reference; must not throw
     */
    public static MemoryRegion wrap(ByteBuffer memory, Runnable onFree) {
        if (memory.capacity() == 0) {
            onFree.run();
            return EMPTY;
        }
        return new MemoryRegion(new ForeignBuf(memory.duplicate().clear(), onFree));
    }

    /** The buffer behind the region, without a reference of its own. */
    ByteBuf buf() {
        return buf;
    }

    /** Whether it is a {@link DeviceRegion}. */
    boolean onDevice() {
        return false;
    }

    /** Bytes in the region. */
    public int size() {
        return buf.writerIndex() - buf.readerIndex();
    }

    /** The address of the first byte; valid while the caller holds a reference. */
    public long address() {
        return buf.memoryAddress() + buf.readerIndex();
    }

    /** Returns a new little-endian view of {@code length} bytes at {@code offset}; it holds no reference. */
    public ByteBuffer buffer(int offset, int length) {
        return buf.nioBuffer(buf.readerIndex() + offset, length).order(ByteOrder.LITTLE_ENDIAN);
    }

    /** Copies bytes out. */
    public void getBytes(int offset, byte[] target, int targetOffset, int length) {
        buf.getBytes(buf.readerIndex() + offset, target, targetOffset, length);
    }

    /** Copies bytes in. */
    public void setBytes(int offset, byte[] source, int sourceOffset, int length) {
        buf.setBytes(buf.readerIndex() + offset, source, sourceOffset, length);
    }

    /** Copies bytes from another region. */
    public void setBytes(int offset, MemoryRegion source, int sourceOffset, int length) {
        if (length > 0) {
            ByteBuf from = source.buf();
            buf.setBytes(buf.readerIndex() + offset, from, from.readerIndex() + sourceOffset, length);
        }
    }

    /** The byte at {@code offset}. */
    public byte getByte(int offset) {
        return buf.getByte(buf.readerIndex() + offset);
    }

    /** The little-endian int at {@code offset}. */
    public int getInt(int offset) {
        return buf.getIntLE(buf.readerIndex() + offset);
    }

    /** Sets the little-endian int at {@code offset}. */
    public void setInt(int offset, int value) {
        buf.setIntLE(buf.readerIndex() + offset, value);
    }

    /** Fills the region with zeros. */
    public MemoryRegion zero() {
        if (size() > 0) {
            buf.setZero(buf.readerIndex(), size());
        }
        return this;
    }

    /** Adds a reference, to be dropped by {@link #release()}. */
    public MemoryRegion retain() {
        buf.retain();
        return this;
    }

    /** Drops a reference; returns true when it was the last one. */
    public boolean release() {
        return buf.release();
    }

    /** The bytes of pooled direct memory that the process has reserved, thread caches included. */
    public static long pooledBytes() {
        return NettyBuffers.allocator().metric().usedDirectMemory();
    }

    private static final class ForeignBuf extends UnpooledUnsafeDirectByteBuf {
        private final Runnable onFree;

        ForeignBuf(ByteBuffer memory, Runnable onFree) {
            super(UnpooledByteBufAllocator.DEFAULT, memory, memory.remaining());
            this.onFree = onFree;
        }

        @Override
        protected void deallocate() {
            super.deallocate();
            onFree.run();
        }
    }
}
