// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.tensor;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.PooledByteBufAllocator;

/**
 * Memory regions as Netty buffers, and the reverse, without copies: for {@code transport} alone, which reads requests
 * into regions and writes regions to sockets. Not part of the published API; plugins cannot see Netty. Has no state.
 */
public final class NettyBuffers {
    private NettyBuffers() {}

    /** Wraps the readable bytes of {@code buf}, which must be direct, and takes over one reference on it. */
    public static MemoryRegion region(ByteBuf buf) {
        if (!buf.isReadable()) {
            buf.release();
            return MemoryRegion.empty();
        }
        return new MemoryRegion(buf.readerIndex() == 0 ? buf : buf.slice());
    }

    /** Returns {@code length} bytes of a region at {@code offset} as a buffer with a reference of its own. */
    public static ByteBuf buffer(MemoryRegion region, int offset, int length) {
        ByteBuf buf = region.buf();
        return buf.retainedSlice(buf.readerIndex() + offset, length);
    }

    /** The allocator behind {@link MemoryRegion#allocate(int)}, so that buffers and regions share one pool. */
    public static PooledByteBufAllocator allocator() {
        return Pool.ALLOCATOR;
    }

    /**
     * A pooled direct buffer of {@code size} bytes.
     *
     * @throws ServingException RESOURCE_EXHAUSTED, with a remedy, when the process has no memory for it
     */
    public static ByteBuf direct(int size) {
        try {
            return allocator().directBuffer(size, size);
        } catch (OutOfMemoryError e) {
            // the error of one allocation, which concerns one request: the others go on
            throw ServingException.wrap(
                    ErrorCode.RESOURCE_EXHAUSTED,
                    "the server has no memory for " + size + " bytes outside the heap",
                    "retry later",
                    e);
        }
    }

    /**
     * A pool of small chunks, in front of one of large chunks for what does not fit: a chunk is zeroed, and so resident, as a whole
     * when its first buffer is taken. Most servers never have a body of 512 KiB.
     */
    private static final class Pool extends PooledByteBufAllocator {
        /** Chunks of {@code 8 KiB << 8} = 2 MiB. */
        private static final int CHUNK_ORDER = 8;

        /** Buffers from this size on come from the large chunks. */
        private static final int LARGE = 512 << 10;

        /** The pool is created on first use. */
        static final PooledByteBufAllocator ALLOCATOR = new Pool(CHUNK_ORDER);

        Pool(int chunkOrder) {
            super(
                    true,
                    0,
                    Math.max(1, Math.min(Runtime.getRuntime().availableProcessors(), 16)),
                    defaultPageSize(),
                    chunkOrder,
                    defaultSmallCacheSize(),
                    defaultNormalCacheSize(),
                    true,
                    isDirectMemoryCacheAlignmentSupported() ? MemoryRegion.ALIGNMENT : 0);
        }

        @Override
        protected ByteBuf newDirectBuffer(int initialCapacity, int maxCapacity) {
            return initialCapacity < LARGE
                    ? super.newDirectBuffer(initialCapacity, maxCapacity)
                    : LargePool.ALLOCATOR.directBuffer(initialCapacity, maxCapacity);
        }
    }

    /** Holder class: large chunks are made when the first large buffer is. */
    private static final class LargePool {
        /**
         * Chunks of {@code 8 KiB << 11} = 16 MiB. With Netty's default of 4 MiB a batch of images (4.8 MB) would
         * bypass the pool, and the page faults of fresh memory for each request would cost more than everything else.
         */
        private static final int CHUNK_ORDER = 11;

        static final PooledByteBufAllocator ALLOCATOR = new PooledByteBufAllocator(
                true,
                0,
                Math.max(1, Math.min(Runtime.getRuntime().availableProcessors(), 16)),
                PooledByteBufAllocator.defaultPageSize(),
                CHUNK_ORDER,
                PooledByteBufAllocator.defaultSmallCacheSize(),
                PooledByteBufAllocator.defaultNormalCacheSize(),
                true,
                PooledByteBufAllocator.isDirectMemoryCacheAlignmentSupported() ? MemoryRegion.ALIGNMENT : 0);
    }
}
