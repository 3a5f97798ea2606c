// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;
import io.netty.channel.AdaptiveRecvByteBufAllocator;
import io.netty.channel.ChannelConfig;
import io.netty.channel.RecvByteBufAllocator;
import io.netty.util.UncheckedBooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Gives the socket the memory to read into: the rest of the body that is being received, when there is one, so that a body
 * is never copied; else a buffer that fits recent reads. One per connection, confined to its event loop.
 */
@SuppressWarnings("deprecation") // the older handle is what the interface returns
final class ReadAllocator implements RecvByteBufAllocator {
    private static final int TURN = 256 << 10;
    private static final int READS_PER_TURN = 4;

    private final AdaptiveRecvByteBufAllocator adaptive = new AdaptiveRecvByteBufAllocator(512, 2048, TURN);
    private @Nullable ByteBuf target;
    private @Nullable ByteBuf issued;
    private int largest = 32 << 10;
    private boolean indirect;

    ReadAllocator() {
        adaptive.maxMessagesPerRead(READS_PER_TURN);
    }

    /** Lets the socket write into the rest of {@code body}; null ends it. */
    void target(@Nullable ByteBuf body) {
        this.target = indirect ? null : body;
        this.issued = null;
    }

    /** Whether {@code buffer} is the part of the body given out for the last read. */
    boolean issued(ByteBuf buffer) {
        return buffer == issued;
    }

    /** For encrypted connections: what the socket gives is not what is in the body. */
    void indirect() {
        this.indirect = true;
    }

    /** For protocols that read everything through the buffer. */
    void largeReads() {
        this.largest = TURN;
    }

    @Override
    public Handle newHandle() {
        return new BodyHandle(adaptive.newHandle());
    }

    private final class BodyHandle implements ExtendedHandle {
        private final ExtendedHandle handle;

        BodyHandle(Handle handle) {
            this.handle = (ExtendedHandle) handle;
        }

        @Override
        public ByteBuf allocate(ByteBufAllocator allocator) {
            ByteBuf body = target;
            if (body == null) {
                return allocator.ioBuffer(guess());
            }
            int at = body.writerIndex();
            ByteBuf part = body.retainedSlice(at, Math.min(body.capacity() - at, TURN));
            part.setIndex(0, 0);
            issued = part;
            return part;
        }

        @Override
        public int guess() {
            ByteBuf body = target;
            return body == null
                    ? Math.min(handle.guess(), largest)
                    : Math.min(body.capacity() - body.writerIndex(), TURN);
        }

        @Override
        public void reset(ChannelConfig config) {
            handle.reset(config);
        }

        @Override
        public void incMessagesRead(int count) {
            handle.incMessagesRead(count);
        }

        @Override
        public void lastBytesRead(int bytes) {
            handle.lastBytesRead(bytes);
        }

        @Override
        public int lastBytesRead() {
            return handle.lastBytesRead();
        }

        @Override
        public void attemptedBytesRead(int bytes) {
            handle.attemptedBytesRead(bytes);
        }

        @Override
        public int attemptedBytesRead() {
            return handle.attemptedBytesRead();
        }

        @Override
        public boolean continueReading() {
            return handle.continueReading();
        }

        @Override
        public boolean continueReading(UncheckedBooleanSupplier maybeMoreData) {
            return handle.continueReading(maybeMoreData);
        }

        @Override
        public void readComplete() {
            handle.readComplete();
        }
    }
}
