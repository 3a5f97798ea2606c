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

    /** Holder class: the pool is created on first use. */
    private static final class Pool {
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
