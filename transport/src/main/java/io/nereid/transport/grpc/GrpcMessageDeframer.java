// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.grpc;

import io.nereid.tensor.ByteBudget;
import io.nereid.transport.codec.GatheringWrite;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import org.jspecify.annotations.Nullable;

/**
 * Splits the DATA of a gRPC call into length-prefixed messages. A prefix of five bytes holds the compression flag and
 * the length; a buffer of exactly that length is then allocated and filled, so that each message is copied once. Frame
 * borders and message borders are independent: a message may span frames, and even the prefix may be split.
 *
 * <p>The length is checked against the message limit and reserved in the budget before anything is allocated, as it is
 * the client's claim. Confined to the connection's event loop.
 */
public final class GrpcMessageDeframer implements AutoCloseable {
    private static final int PREFIX = 5;

    /** Receives messages and errors. After an error no further method is called. */
    public interface Sink {
        /** A complete message; the sink takes over the buffer and the reservation of its length in the budget. */
        void onMessage(ByteBuf message, boolean compressed);

        /** A message is too large; nothing was allocated. */
        void onTooLarge(long length);

        /** The budget has too few bytes left for a message; nothing was allocated. */
        void onBudgetExhausted(long length);

        /** The prefix is malformed. */
        void onMalformed(int flag);

        /** Whether the call has ended, so that no more messages are accepted. */
        boolean ended();
    }

    private final Sink sink;
    private final ByteBudget budget;
    private final int maxMessageBytes;
    private int prefixRead;
    private int flag;
    private long length;
    private @Nullable ByteBuf message;

    public GrpcMessageDeframer(Sink sink, ByteBudget budget, int maxMessageBytes) {
        this.sink = sink;
        this.budget = budget;
        this.maxMessageBytes = maxMessageBytes;
    }

    /** Reads all of {@code data}, or up to the point where the sink's call has ended. */
    public void read(ByteBuf data) {
        while (!sink.ended()) {
            ByteBuf open = message;
            if (open == null) {
                if (!readPrefix(data) || !start()) {
                    return;
                }
                continue;
            }
            int n = Math.min(data.readableBytes(), open.writableBytes());
            open.writeBytes(data, n);
            if (open.isWritable()) {
                return;
            }
            message = null;
            prefixRead = 0;
            sink.onMessage(open, flag != 0);
        }
    }

    /** Reads the prefix, in one step or byte by byte; false when more data is needed. */
    private boolean readPrefix(ByteBuf data) {
        if (prefixRead == 0 && data.readableBytes() >= PREFIX) {
            flag = data.readUnsignedByte();
            length = data.readUnsignedInt();
            prefixRead = PREFIX;
            return true;
        }
        while (prefixRead < PREFIX && data.isReadable()) {
            int b = data.readUnsignedByte();
            if (prefixRead == 0) {
                flag = b;
                length = 0;
            } else {
                length = length << 8 | b;
            }
            prefixRead++;
        }
        return prefixRead == PREFIX;
    }

    /** Checks the prefix and allocates the message; false after an error. */
    private boolean start() {
        if (flag > 1) {
            sink.onMalformed(flag);
            return false;
        }
        if (length > maxMessageBytes) {
            sink.onTooLarge(length);
            return false;
        }
        if (!budget.tryReserve(length)) {
            sink.onBudgetExhausted(length);
            return false;
        }
        message = length == 0 ? Unpooled.EMPTY_BUFFER : GatheringWrite.exact((int) length);
        return true;
    }

    /** Whether a message is incomplete. */
    public boolean inMessage() {
        return prefixRead > 0;
    }

    @Override
    public void close() {
        ByteBuf open = message;
        if (open != null) {
            message = null;
            budget.release(open.capacity());
            open.release();
        }
    }
}
