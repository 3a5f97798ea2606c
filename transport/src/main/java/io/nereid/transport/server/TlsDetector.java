// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.server;

import io.nereid.transport.ServerContext;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.codec.ContentEncoding;
import io.nereid.transport.http1.Http1ResponseEncoder;
import io.nereid.transport.tls.TlsContext;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelFutureListener;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelPipeline;
import io.netty.channel.socket.DuplexChannel;
import io.netty.util.concurrent.ScheduledFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The first handler of a connection to an address with TLS. Replaces itself by the TLS handler on a handshake; sends a
 * client of plain HTTP an error as HTTP/1.1 and closes, or serves it where plain text is allowed, too. Confined to the channel's event loop.
 *
 * <p>A client of HTTP/2 without TLS gets the error in HTTP/1.1 too, and no SETTINGS frame: SETTINGS would tell gRPC's
 * clients that the connection is established, and they would connect again at once, without their backoff.
 */
final class TlsDetector extends ChannelInboundHandlerAdapter {
    private static final Logger LOG = LoggerFactory.getLogger(TlsDetector.class);
    private static final String TEXT = "this port requires TLS: use https://, or a TLS channel";
    private static final int HANDSHAKE = 0x16;
    private static final long LINGER_MILLIS = 1000;

    private final ServerContext server;
    private final TlsContext tls;
    private final Executor tasks;
    private final ProtocolDetector next;
    private final boolean plainText;
    private @Nullable ScheduledFuture<?> timer;
    private boolean refused;

    /** @param plainText whether connections without TLS are served */
    TlsDetector(ServerContext server, TlsContext tls, Executor tasks, ProtocolDetector next, boolean plainText) {
        this.server = server;
        this.tls = tls;
        this.tasks = tasks;
        this.next = next;
        this.plainText = plainText;
    }

    @Override
    public void handlerAdded(ChannelHandlerContext ctx) {
        timer = ctx.channel()
                .eventLoop()
                .schedule(() -> ctx.close(), server.options.idleTimeout().toMillis(), TimeUnit.MILLISECONDS);
    }

    @Override
    public void channelRead(ChannelHandlerContext ctx, Object message) {
        ByteBuf in = (ByteBuf) message;
        if (refused || !in.isReadable()) {
            in.release();
            return;
        }
        int first = in.getByte(in.readerIndex());
        if (first != HANDSHAKE && plainText) {
            ChannelPipeline pipeline = ctx.pipeline();
            pipeline.replace(this, null, next);
            pipeline.fireChannelRead(in);
            return;
        }
        if (first != HANDSHAKE) {
            refused = true;
            server.stats.handshakeFailed();
            server.stats.requestRejected();
            LOG.debug(
                    "{} did not begin a TLS handshake with {}",
                    ctx.channel().remoteAddress(),
                    ctx.channel().localAddress());
            refuse(ctx, in);
            return;
        }
        ctx.pipeline().addLast(next);
        ctx.pipeline().replace(this, null, tls.newHandler(ctx.channel(), tasks));
        ctx.pipeline().fireChannelRead(in);
    }

    private void refuse(ChannelHandlerContext ctx, ByteBuf in) {
        int first = in.getByte(in.readerIndex());
        in.release();
        if (first < 'A' || first > 'Z') {
            ctx.close();
            return;
        }
        ctx.writeAndFlush(badRequest()).addListener((ChannelFutureListener) written -> {
            // closing a socket with unread input sends a reset, which can destroy the response before it is read
            if (written.isSuccess() && ctx.channel() instanceof DuplexChannel duplex) {
                duplex.shutdownOutput();
                duplex.eventLoop().schedule(() -> duplex.close(), LINGER_MILLIS, TimeUnit.MILLISECONDS);
            } else {
                ctx.close();
            }
        });
    }

    private ByteBuf badRequest() {
        return Unpooled.wrappedBuffer(Http1ResponseEncoder.render(
                HttpReply.error(400, TEXT), ContentEncoding.IDENTITY, server.dateLine(server.nanos()), 0, false));
    }

    @Override
    public void userEventTriggered(ChannelHandlerContext ctx, Object event) {
        if (event instanceof ServerContext.Drain) {
            ctx.close();
        }
    }

    @Override
    public void handlerRemoved(ChannelHandlerContext ctx) {
        if (timer != null) {
            timer.cancel(false);
        }
    }

    @Override
    public void exceptionCaught(ChannelHandlerContext ctx, Throwable cause) {
        ctx.close();
    }
}
