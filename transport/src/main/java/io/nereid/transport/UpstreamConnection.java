// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport;

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

/** One HTTP/1.1 connection to another server, with at most one request at a time. Confined to its event loop. */
final class UpstreamConnection extends ChannelInboundHandlerAdapter {
    final LoopClient.Pool pool;
    final Channel channel;
    private @Nullable Outgoing current;
    private @Nullable ScheduledFuture<?> idle;
    private boolean used;
    private boolean kept;
    private boolean written;
    private boolean touched;
    private boolean informational;
    private boolean reusable;
    private String reason = "closed by the other side";

    UpstreamConnection(LoopClient.Pool pool, Channel channel) {
        this.pool = pool;
        this.channel = channel;
    }

    void send(Outgoing request) {
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

    /** Kept for the next request, for a while. */
    void rest(long idleNanos) {
        idle = channel.eventLoop().schedule(() -> channel.close(), idleNanos, TimeUnit.NANOSECONDS);
    }

    /** The answer is not wanted any more; the connection cannot be used again. */
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
            Outgoing request = current;
            if (request == null) {
                ctx.close(); // an answer that nobody has asked for
                return;
            }
            touched = true;
            HttpObject object = (HttpObject) message;
            if (object.decoderResult().isFailure()) {
                reason = "the answer is malformed: "
                        + object.decoderResult().cause().getMessage();
                ctx.close();
                return;
            }
            if (object instanceof HttpResponse response) {
                int status = response.status().code();
                informational = status < 200;
                if (status == 101) {
                    reason = "the other side changed the protocol unasked";
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

    private void complete(Outgoing request) {
        current = null;
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
        Outgoing request = current;
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
