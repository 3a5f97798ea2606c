// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport;

import io.nereid.tensor.ByteBudget;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import org.jspecify.annotations.Nullable;

/**
 * Cuts the data of a call into gRPC messages: five bytes of prefix say how long the next one is, and its bytes are copied
 * once, to where they stay. Confined to the connection's event loop.
 */
final class MessageReader implements AutoCloseable {
    private static final int PREFIX = 5;

    /** Receives the messages and what stops them. */
    interface Sink {
        /** A whole message; the sink owns it and the bytes of the budget that its length took. */
        void onMessage(ByteBuf message, boolean compressed);

        /** A message is too large; nothing was allocated. */
        void onTooLarge(long length);

        /** The budget has no room for a message; nothing was allocated. */
        void onNoRoom(long length);

        /** The prefix is malformed. */
        void onMalformed(int flag);

        /** Whether no more messages are wanted. */
        boolean ended();
    }

    private final Sink sink;
    private final ByteBudget budget;
    private final int maxMessageBytes;
    private int prefixRead;
    private int flag;
    private long length;
    private @Nullable ByteBuf message;

    MessageReader(Sink sink, ByteBudget budget, int maxMessageBytes) {
        this.sink = sink;
        this.budget = budget;
        this.maxMessageBytes = maxMessageBytes;
    }

    /** Reads all of {@code data}, unless the sink ends. */
    void read(ByteBuf data) {
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
            sink.onNoRoom(length);
            return false;
        }
        message = length == 0 ? Unpooled.EMPTY_BUFFER : Gather.exact((int) length);
        return true;
    }

    /** Whether a message has begun and not ended. */
    boolean inMessage() {
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
