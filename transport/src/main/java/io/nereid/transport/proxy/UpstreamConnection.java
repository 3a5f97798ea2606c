// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.proxy;

import io.netty.buffer.ByteBuf;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.handler.codec.http.HttpContent;
import io.netty.handler.codec.http.HttpObject;
import io.netty.handler.codec.http.HttpResponse;
import io.netty.handler.codec.http.HttpUtil;
import io.netty.handler.codec.http.LastHttpContent;
import io.netty.util.ReferenceCountUtil;
import io.netty.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** One HTTP/1.1 connection to an upstream server, with at most one request at a time. Confined to its event loop. */
final class UpstreamConnection extends ChannelInboundHandlerAdapter {
    final EventLoopHttpClient.Pool pool;
    final Channel channel;
    private @Nullable UpstreamRequest current;
    private @Nullable ScheduledFuture<?> idle;
    private boolean used;

    /** Whether the present request is not the connection's first. */
    private boolean kept;

    private boolean written;

    /** Whether a byte of the present response has arrived. */
    private boolean touched;

    private boolean informational;

    /** Whether the response allows the connection to be reused. */
    private boolean reusable;

    private String reason = "closed by the other side";

    UpstreamConnection(EventLoopHttpClient.Pool pool, Channel channel) {
        this.pool = pool;
        this.channel = channel;
    }

    void send(UpstreamRequest request) {
        if (idle != null) {
            idle.cancel(false);
            idle = null;
        }
        kept = used;
        used = true;
        written = false;
        touched = false;
        reusable = false;
        current = request;
        request.assigned(this);
        channel.writeAndFlush(request.request()).addListener(f -> {
            if (f.isSuccess()) {
                written = current == request || written;
            } else if (current == request) {
                reason = String.valueOf(f.cause().getMessage());
                channel.close();
            }
        });
    }

    /** Called when the connection returns to the pool; closes it after the idle timeout. */
    void rest(long idleNanos) {
        idle = channel.eventLoop().schedule(() -> channel.close(), idleNanos, TimeUnit.NANOSECONDS);
    }

    /** Drops the present request; the rest of its response would precede the next one, so the connection is closed. */
    void abandon() {
        current = null;
        channel.close();
    }

    void reading(boolean on) {
        channel.config().setAutoRead(on);
    }

    @Override
    public void channelRead(ChannelHandlerContext ctx, Object message) {
        try {
            UpstreamRequest request = current;
            if (request == null) {
                ctx.close(); // a response without a request
                return;
            }
            touched = true;
            HttpObject object = (HttpObject) message;
            if (object.decoderResult().isFailure()) {
                reason = "the response is malformed: "
                        + object.decoderResult().cause().getMessage();
                ctx.close();
                return;
            }
            if (object instanceof HttpResponse response) {
                int status = response.status().code();
                informational = status < 200;
                if (status == 101) {
                    reason = "the other side switched protocols without a request to";
                    ctx.close();
                } else if (!informational) {
                    reusable = HttpUtil.isKeepAlive(response);
                    request.head(status, response.headers());
                }
            }
            if (object instanceof HttpContent content && !informational) {
                ByteBuf bytes = content.content();
                if (bytes.isReadable()) {
                    request.data(bytes);
                }
                if (object instanceof LastHttpContent && current == request) {
                    complete(request);
                }
            }
        } finally {
            ReferenceCountUtil.release(message);
        }
    }

    private void complete(UpstreamRequest request) {
        current = null;
        // a response that came before the whole request was sent leaves the connection in an unknown state
        boolean again = reusable && written && channel.isActive();
        channel.config().setAutoRead(true);
        request.end();
        if (again) {
            pool.release(this);
        } else {
            channel.close();
        }
    }

    @Override
    public void channelInactive(ChannelHandlerContext ctx) {
        if (idle != null) {
            idle.cancel(false);
        }
        UpstreamRequest request = current;
        current = null;
        pool.closed(this);
        if (request != null) {
            request.lost(written, kept, !touched, reason);
        }
    }

    @Override
    public void exceptionCaught(ChannelHandlerContext ctx, Throwable cause) {
        reason = cause.getMessage() == null ? cause.getClass().getSimpleName() : cause.getMessage();
        ctx.close();
    }
}
