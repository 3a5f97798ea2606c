// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.server;

import io.nereid.transport.ServerContext;
import io.nereid.transport.tls.TlsContext;
import io.netty.buffer.ByteBuf;
import io.netty.channel.ChannelHandler;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.handler.ssl.SslHandshakeCompletionEvent;
import io.netty.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The first handler of a connection without TLS, or after it. Replaces itself by the HTTP/2 handler if the first bytes
 * begin the HTTP/2 preface, and by the HTTP/1.x handler otherwise. Confined to the channel's event loop.
 */
public final class ProtocolDetector extends ChannelInboundHandlerAdapter {
    private static final Logger LOG = LoggerFactory.getLogger(ProtocolDetector.class);
    private static final byte[] PREFACE = {'P', 'R', 'I', ' '};
    private static final int TLS_HANDSHAKE = 0x16;

    private final Supplier<ChannelHandler> http1;
    private final Supplier<ChannelHandler> http2;
    private final ServerContext server;
    private @Nullable ByteBuf first;
    private @Nullable ScheduledFuture<?> timer;

    ProtocolDetector(Supplier<ChannelHandler> http1, Supplier<ChannelHandler> http2, ServerContext server) {
        this.http1 = http1;
        this.http2 = http2;
        this.server = server;
    }

    @Override
    public void handlerAdded(ChannelHandlerContext ctx) {
        long millis = server.options.idleTimeout().toMillis();
        timer = ctx.channel().eventLoop().schedule(() -> ctx.close(), millis, TimeUnit.MILLISECONDS);
    }

    @Override
    public void channelRead(ChannelHandlerContext ctx, Object message) {
        ByteBuf in = (ByteBuf) message;
        ByteBuf before = first;
        if (before != null) {
            in = ctx.alloc()
                    .directBuffer(before.readableBytes() + in.readableBytes())
                    .writeBytes(before)
                    .writeBytes((ByteBuf) message);
            before.release();
            ((ByteBuf) message).release();
            first = null;
        }
        int n = Math.min(in.readableBytes(), PREFACE.length);
        boolean preface = true;
        for (int i = 0; i < n && preface; i++) {
            preface = in.getByte(in.readerIndex() + i) == PREFACE[i];
        }
        if (preface && n < PREFACE.length) {
            first = in; // undecided: wait for more bytes
            return;
        }
        if (n > 0 && in.getByte(in.readerIndex()) == TLS_HANDSHAKE) {
            in.release();
            LOG.debug(
                    "{} sent a TLS handshake to {}, which does not use TLS",
                    ctx.channel().remoteAddress(),
                    ctx.channel().localAddress());
            server.stats.requestRejected();
            ctx.close();
            return;
        }
        ChannelHandler handler = (preface ? http2 : http1).get();
        ctx.pipeline().replace(this, null, handler);
        ctx.fireChannelRead(in); // to the replacement, not again through TLS
    }

    @Override
    public void userEventTriggered(ChannelHandlerContext ctx, Object event) {
        if (event instanceof ServerContext.Drain) {
            ctx.close();
        } else if (event instanceof SslHandshakeCompletionEvent done && !done.isSuccess()) {
            server.stats.handshakeFailed();
            LOG.debug(
                    "TLS handshake with {} failed: {}", ctx.channel().remoteAddress(), TlsContext.reason(done.cause()));
        }
    }

    @Override
    public void handlerRemoved(ChannelHandlerContext ctx) {
        if (timer != null) {
            timer.cancel(false);
        }
        ByteBuf rest = first;
        if (rest != null) {
            first = null;
            rest.release();
        }
    }

    @Override
    public void exceptionCaught(ChannelHandlerContext ctx, Throwable cause) {
        ctx.close();
    }
}
