// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.grpc;

import io.nereid.base.ServingException;
import io.nereid.tensor.ByteBudget;
import io.nereid.transport.memory.BodyBuffer;
import io.netty.buffer.ByteBuf;
import org.jspecify.annotations.Nullable;

/**
 * Splits the DATA of a gRPC call into length-prefixed messages. A prefix of five bytes holds the compression flag and
 * the length; a {@link BodyBuffer} is then filled, which grows up to that length. Frame borders and message borders are
 * independent: a message may span frames, and even the prefix may be split.
 *
 * <p>The length is checked against the message limit and against what the budget has left before anything is allocated,
 * as it is the client's claim. Confined to the connection's event loop.
 */
public final class GrpcMessageDeframer implements AutoCloseable {
    private static final int PREFIX = 5;

    /** Receives messages and errors. After an error no further method is called. */
    public interface Sink {
        /** A complete message; the sink takes over the buffer and the reservation of its length in the budget. */
        void onMessage(ByteBuf message, boolean compressed);

        /** A message is too large; nothing was allocated. */
        void onTooLarge(long length);

        /** The budget has too few bytes left for a message, or the process too little memory. */
        void onBudgetExhausted(long length);

        /** The prefix is malformed. */
        void onMalformed(int flag);

        /** Whether the call has ended, so that no more messages are accepted. */
        boolean ended();
    }

    private final Sink sink;
    private final ByteBudget budget;
    private final ByteBudget ahead;
    private final int maxMessageBytes;
    private int prefixRead;
    private int flag;
    private long length;
    private @Nullable BodyBuffer message;

    /** @param ahead limits what is allocated before it has arrived, as described at {@link BodyBuffer} */
    public GrpcMessageDeframer(Sink sink, ByteBudget budget, ByteBudget ahead, int maxMessageBytes) {
        this.sink = sink;
        this.budget = budget;
        this.ahead = ahead;
        this.maxMessageBytes = maxMessageBytes;
    }

    /** Reads all of {@code data}, or up to the point where the sink's call has ended. */
    public void read(ByteBuf data) {
        while (!sink.ended()) {
            BodyBuffer open = message;
            if (open == null) {
                if (!readPrefix(data) || !start(data.readableBytes())) {
                    return;
                }
                continue;
            }
            try {
                open.append(data);
            } catch (ServingException e) {
                sink.onBudgetExhausted(length);
                return;
            }
            if (!open.isComplete()) {
                return;
            }
            message = null;
            prefixRead = 0;
            sink.onMessage(open.take(), flag != 0);
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
    private boolean start(int arrived) {
        if (flag > 1) {
            sink.onMalformed(flag);
            return false;
        }
        if (length > maxMessageBytes) {
            sink.onTooLarge(length);
            return false;
        }
        if (length > budget.left()) {
            sink.onBudgetExhausted(length);
            return false;
        }
        try {
            message = new BodyBuffer(budget, ahead, (int) length, arrived);
        } catch (ServingException e) {
            sink.onBudgetExhausted(length);
            return false;
        }
        return true;
    }

    /** Whether a message is incomplete. */
    public boolean inMessage() {
        return prefixRead > 0;
    }

    /** The bytes that an incomplete message has reserved in the budget. */
    public int reserved() {
        BodyBuffer open = message;
        return open == null ? 0 : open.reserved();
    }

    /** Gives back what is allocated ahead of the bytes received. */
    public void trim() {
        BodyBuffer open = message;
        if (open != null) {
            open.trim();
        }
    }

    @Override
    public void close() {
        BodyBuffer open = message;
        if (open != null) {
            message = null;
            open.close();
        }
    }
}
