// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.http2;

import io.nereid.transport.memory.UnsentAnswers;
import io.netty.buffer.ByteBuf;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelPromise;
import java.net.SocketAddress;

/**
 * The responses of an HTTP/2 connection that wait for the windows of its streams or for the socket. Confined to the
 * connection's event loop.
 */
final class Http2Answers extends UnsentAnswers {
    /** Large responses are written, and counted, in pieces of this size. */
    static final int PIECE = 256 << 10;

    /** Smaller writes are not counted: the limit of streams bounds them. */
    private static final int UNCOUNTED = 1 << 10;

    /** From this many bytes on, a client that does not take them may not begin new streams. */
    private static final int MANY = 1 << 20;

    private final Http2ServerConnection connection;
    private final ChannelHandlerContext ctx;
    private long unsent;
    private long unseen;

    Http2Answers(Http2ServerConnection connection, ChannelHandlerContext ctx) {
        super(
                connection.server.memory,
                connection.monitor(),
                connection.budget,
                connection.server.options.idleTimeout().toNanos());
        this.connection = connection;
        this.ctx = ctx;
    }

    /** Counts a buffer that is about to be written with {@code promise}, until it has been written. */
    ChannelPromise counted(ChannelPromise promise, ByteBuf part) {
        int bytes = part.readableBytes();
        if (bytes >= UNCOUNTED) {
            unsent += bytes;
            unseen += bytes;
            promise.addListener(f -> {
                unsent -= bytes;
                if (isCharged()) {
                    settle();
                }
            });
        }
        return promise;
    }

    /** Reserves what {@link #counted} has added; called after the writes. */
    void written() {
        if (unseen > 0) {
            long bytes = unseen;
            unseen = 0;
            written(bytes);
        }
    }

    /** Whether responses wait that the client does not take, or so many that its share of the budget is short. */
    boolean areTooMany() {
        return unsent > MANY && (isSlow() || unsent > connection.budget.limit() / 2);
    }

    @Override
    protected long unsent() {
        return unsent;
    }

    @Override
    protected SocketAddress client() {
        return connection.client().remote();
    }

    @Override
    protected void close() {
        ctx.close();
    }
}
