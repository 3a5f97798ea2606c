// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.http1;

import io.nereid.transport.ServerContext;
import io.nereid.transport.memory.UnsentAnswers;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelOutboundBuffer;
import java.net.InetSocketAddress;
import java.net.SocketAddress;

/** The responses of an HTTP/1.x connection that wait for the socket. Confined to the connection's event loop. */
final class Http1Answers extends UnsentAnswers {
    private final ChannelHandlerContext ctx;

    Http1Answers(ChannelHandlerContext ctx, ServerContext server) {
        super(
                server.memory,
                server.memory.monitor(ctx.channel().eventLoop()),
                server.options.budget(),
                server.options.idleTimeout().toNanos());
        this.ctx = ctx;
    }

    @Override
    protected long unsent() {
        ChannelOutboundBuffer buffer = ctx.channel().unsafe().outboundBuffer();
        return buffer == null ? 0 : Math.max(0, buffer.totalPendingWriteBytes() - buffer.currentProgress());
    }

    @Override
    protected SocketAddress client() {
        SocketAddress remote = ctx.channel().remoteAddress();
        return remote == null ? new InetSocketAddress(0) : remote;
    }

    @Override
    protected void close() {
        ctx.close();
    }
}
