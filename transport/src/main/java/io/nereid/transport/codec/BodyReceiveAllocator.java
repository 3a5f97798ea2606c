// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.codec;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;
import io.netty.channel.AdaptiveRecvByteBufAllocator;
import io.netty.channel.ChannelConfig;
import io.netty.channel.RecvByteBufAllocator;
import io.netty.util.UncheckedBooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Gives the socket the memory to read into. While a body of known length is being received, that is the unwritten rest
 * of the body's own buffer, so that the body is never copied; otherwise a buffer whose size adapts to recent reads.
 *
 * <p>With {@link #target} a connection announces the body; the next read then returns a slice of it, which
 * {@link #issued} recognises. One for each connection, confined to its event loop.
 */
@SuppressWarnings("deprecation") // the older handle is what the interface returns
public final class BodyReceiveAllocator implements RecvByteBufAllocator {
    /** Most bytes of one read, so that a large body does not keep the loop's other connections waiting. */
    private static final int TURN = 256 << 10;

    private static final int READS_PER_TURN = 4;

    private final AdaptiveRecvByteBufAllocator adaptive = new AdaptiveRecvByteBufAllocator(512, 2048, TURN);
    private @Nullable ByteBuf target;
    private @Nullable ByteBuf issued;
    private int largest = 32 << 10;
    private boolean indirect;

    public BodyReceiveAllocator() {
        adaptive.maxMessagesPerRead(READS_PER_TURN);
    }

    /** Lets the socket write into the rest of {@code body}; null ends it. */
    public void target(@Nullable ByteBuf body) {
        this.target = indirect ? null : body;
        this.issued = null;
    }

    /** Whether {@code buffer} is the slice of the body that was given to the last read. */
    public boolean issued(ByteBuf buffer) {
        return buffer == issued;
    }

    /** For connections with TLS: the socket receives ciphertext, which must not be written into the body. */
    public void indirect() {
        this.indirect = true;
    }

    /** For HTTP/2, where bodies pass through the read buffer too: allows reads of up to {@link #TURN} bytes. */
    public void largeReads() {
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
            // the slice starts empty at the body's write position; the connection advances the body by what was read
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
