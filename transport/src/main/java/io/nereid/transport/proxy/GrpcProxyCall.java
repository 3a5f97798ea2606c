// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.proxy;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.tensor.ByteBudget;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.NettyBuffers;
import io.nereid.transport.api.GrpcCall;
import io.nereid.transport.api.GrpcMethod.GrpcListener;
import io.nereid.transport.codec.ContentEncoding;
import io.nereid.transport.grpc.GrpcHeaders;
import io.nereid.transport.grpc.GrpcMessageDeframer;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.EventLoop;
import io.netty.handler.codec.http2.DefaultHttp2DataFrame;
import io.netty.handler.codec.http2.DefaultHttp2HeadersFrame;
import io.netty.handler.codec.http2.Http2DataFrame;
import io.netty.handler.codec.http2.Http2Error;
import io.netty.handler.codec.http2.Http2GoAwayFrame;
import io.netty.handler.codec.http2.Http2Headers;
import io.netty.handler.codec.http2.Http2HeadersFrame;
import io.netty.handler.codec.http2.Http2ResetFrame;
import io.netty.handler.codec.http2.Http2StreamChannel;
import io.netty.handler.codec.http2.Http2StreamChannelBootstrap;
import io.netty.util.ReferenceCountUtil;
import io.netty.util.concurrent.ScheduledFuture;
import java.net.ConnectException;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * A gRPC call that is forwarded to an upstream server, message by message. The client's messages arrive on the event
 * loop of its connection; everything else runs on the loop of the upstream connection, which is the same one when the
 * client shares the server's loops.
 *
 * <p>Flow control works in both directions: reading from the client stops while the upstream stream is not writable,
 * and reading from the upstream stream stops while the client's call is not ready.
 */
final class GrpcProxyCall extends ChannelInboundHandlerAdapter implements GrpcListener, GrpcMessageDeframer.Sink {
    private static final int PREFIX = 5;
    private static final long HELD_BACK_ABOVE = 256 << 10;

    /** How much earlier than our deadline the upstream server may end the call, as {@code grpc-timeout} is rounded. */
    private static final long EARLY_NANOS = 1_000_000;

    private final EventLoopHttpClient client;
    private final EventLoopHttpClient.Key key;
    private final GrpcCall call;
    private final @Nullable EventLoop caller;
    private final Http2Headers headers;
    private final long deadlineNanos;
    private final Duration timeout;
    /** The size that a message from the upstream server may have, compressed and decompressed. */
    private final int largest;

    private final GrpcMessageDeframer reader;
    /** Messages received before the upstream stream was open. */
    private final ArrayDeque<ByteBuf> early = new ArrayDeque<>();

    private long earlyBytes;
    private @Nullable Http2StreamChannel stream;
    private GrpcConnectionPool.@Nullable Connection connection;
    private @Nullable ScheduledFuture<?> timer;
    private ContentEncoding encoding = ContentEncoding.IDENTITY;
    private boolean opening;
    private boolean halfClosed;
    private boolean answered;
    private boolean heldBack;
    private boolean over;

    /**
     * Creates a call that is not sent yet.
     *
     * @param deadlineNanos its deadline, in nanoseconds of the options' clock; {@link Long#MAX_VALUE} for none
     */
    GrpcProxyCall(
            EventLoopHttpClient client,
            EventLoopHttpClient.Key key,
            GrpcCall call,
            @Nullable EventLoop caller,
            Http2Headers headers,
            long deadlineNanos,
            Duration timeout,
            long maxBytes) {
        this.client = client;
        this.key = key;
        this.call = call;
        this.caller = caller;
        this.headers = headers;
        this.deadlineNanos = deadlineNanos;
        this.timeout = timeout;
        this.largest = (int) Math.min(maxBytes, Integer.MAX_VALUE - 64);
        this.reader =
                new GrpcMessageDeframer(this, new ByteBudget(Long.MAX_VALUE), new ByteBudget(Long.MAX_VALUE), largest);
    }

    void start() {
        if (over) {
            return;
        }
        if (client.closed()) {
            unavailable("the server is stopping");
            return;
        }
        if (deadlineNanos != Long.MAX_VALUE) {
            long left = Math.max(0, deadlineNanos - client.options().clock().nanos());
            timer = client.loop.schedule(this::late, left, TimeUnit.NANOSECONDS);
        }
        client.calls(key).start(this);
    }

    private void late() {
        String within = timeout.isZero() ? "within its deadline" : "after " + timeout.toMillis() + " ms";
        end(ErrorCode.DEADLINE_EXCEEDED, "no complete response from " + key + " " + within, true);
    }

    /**
     * Whether the deadline has passed. The upstream server got it as {@code grpc-timeout} and may notice first; its
     * CANCELLED is then reported to the client as DEADLINE_EXCEEDED.
     */
    private boolean overdue() {
        return deadlineNanos != Long.MAX_VALUE && client.options().clock().nanos() - deadlineNanos >= -EARLY_NANOS;
    }

    void unavailable(String reason) {
        end(ErrorCode.UNAVAILABLE, reason, true);
    }

    /** Called when no connection could be made. The cause says that nothing was sent, so the caller may retry. */
    void unconnected(String reason) {
        if (!over) {
            end(ErrorCode.UNAVAILABLE, reason, false);
            call.fail(ServingException.wrap(ErrorCode.UNAVAILABLE, reason, new ConnectException(reason)));
        }
    }

    /** Opens a stream for the call. */
    void open(Channel parent, GrpcConnectionPool.Connection owner) {
        connection = owner;
        opening = true;
        new Http2StreamChannelBootstrap(parent).handler(this).open().addListener(f -> {
            opening = false;
            if (!f.isSuccess()) {
                owner.ended();
                unavailable("cannot open a stream to " + key + ": " + f.cause().getMessage());
                return;
            }
            Http2StreamChannel opened = (Http2StreamChannel) f.getNow();
            opened.closeFuture().addListener(c -> owner.ended());
            stream = opened;
            if (over) {
                opened.close();
                return;
            }
            begin(opened);
        });
    }

    private void begin(Http2StreamChannel opened) {
        if (deadlineNanos != Long.MAX_VALUE) {
            long left = Math.max(1, deadlineNanos - client.options().clock().nanos());
            headers.set("grpc-timeout", GrpcHeaders.timeout(left));
        }
        opened.write(new DefaultHttp2HeadersFrame(headers, halfClosed && early.isEmpty()));
        while (!early.isEmpty()) {
            ByteBuf next = early.remove();
            opened.write(new DefaultHttp2DataFrame(next, halfClosed && early.isEmpty()));
        }
        earlyBytes = 0;
        opened.flush();
        flow();
    }

    // ---- from the client

    @Override
    public void onMessage(MemoryRegion message) {
        int size = message.size();
        ByteBuf prefix =
                NettyBuffers.allocator().directBuffer(PREFIX).writeByte(0).writeInt(size);
        ByteBuf framed = size == 0 ? prefix : Unpooled.wrappedBuffer(prefix, NettyBuffers.buffer(message, 0, size));
        run(() -> {
            Http2StreamChannel open = stream;
            if (over) {
                framed.release();
            } else if (open == null) {
                early.add(framed);
                earlyBytes += size;
                flow();
            } else {
                open.writeAndFlush(new DefaultHttp2DataFrame(framed, false));
                flow();
            }
        });
    }

    @Override
    public void onHalfClose() {
        run(() -> {
            halfClosed = true;
            Http2StreamChannel open = stream;
            if (open != null && !over) {
                open.writeAndFlush(new DefaultHttp2DataFrame(Unpooled.EMPTY_BUFFER, true));
            }
        });
    }

    @Override
    public void onCancel() {
        run(() -> end(ErrorCode.CANCELLED, null, false));
    }

    @Override
    public void onReady() {
        run(() -> {
            Http2StreamChannel open = stream;
            if (open != null) {
                open.config().setAutoRead(true);
            }
        });
    }

    private void run(Runnable action) {
        if (client.loop.inEventLoop()) {
            action.run();
            return;
        }
        client.loop.execute(action);
    }

    /** Stops reading from the client while the upstream stream is not writable. */
    private void flow() {
        Http2StreamChannel open = stream;
        boolean hold = open == null ? earlyBytes > HELD_BACK_ABOVE : !open.isWritable();
        if (hold != heldBack) {
            heldBack = hold;
            if (caller == null || caller.inEventLoop()) {
                call.setReading(!hold);
            } else {
                caller.execute(() -> call.setReading(!hold));
            }
        }
    }

    // ---- from the upstream server

    @Override
    public void channelWritabilityChanged(ChannelHandlerContext ctx) {
        if (!over) {
            flow();
        }
    }

    @Override
    public void channelRead(ChannelHandlerContext ctx, Object message) {
        try {
            if (over) {
                return;
            }
            if (message instanceof Http2HeadersFrame frame) {
                onHeaders(frame.headers(), frame.isEndStream());
            } else if (message instanceof Http2DataFrame data) {
                reader.read(data.content());
                if (!over && !call.isReady()) {
                    ctx.channel().config().setAutoRead(false);
                    // the call may have become ready in between
                    if (call.isReady()) {
                        ctx.channel().config().setAutoRead(true);
                    }
                }
                if (data.isEndStream()) {
                    end(ErrorCode.INTERNAL, "the response of " + key + " ended without a status", true);
                }
            } else if (message instanceof Http2ResetFrame reset) {
                onReset(reset.errorCode());
            }
        } finally {
            ReferenceCountUtil.release(message);
        }
    }

    private void onHeaders(Http2Headers answer, boolean end) {
        CharSequence status = answer.get("grpc-status");
        CharSequence http = answer.status();
        if (http != null && http.length() > 0 && http.charAt(0) == '1') {
            return; // informational
        }
        if (!answered && !end) {
            answered = true;
            if (http == null || !http.toString().equals("200")) {
                end(fromHttp(http), key + " answered with HTTP status " + http, true);
                return;
            }
            CharSequence coding = answer.get("grpc-encoding");
            ContentEncoding known = ContentEncoding.of(coding == null ? null : coding.toString());
            if (known == null) {
                end(ErrorCode.INTERNAL, key + " answered in the unknown grpc-encoding '" + coding + "'", true);
            } else {
                encoding = known;
            }
            return;
        }
        if (!end) {
            return;
        }
        if (status == null) {
            end(fromHttp(http), key + " answered with HTTP status " + http + " and no grpc-status", true);
            return;
        }
        ErrorCode code = code(status.toString());
        if (code == ErrorCode.CANCELLED && overdue()) {
            late();
            return;
        }
        CharSequence text = answer.get("grpc-message");
        end(code, text == null ? null : GrpcHeaders.message(text.toString()), true);
    }

    private static ErrorCode code(String number) {
        for (ErrorCode code : ErrorCode.values()) {
            if (Integer.toString(code.number()).equals(number)) {
                return code;
            }
        }
        return ErrorCode.UNKNOWN;
    }

    private static ErrorCode fromHttp(@Nullable CharSequence status) {
        return switch (status == null ? "" : status.toString()) {
            case "400" -> ErrorCode.INTERNAL;
            case "401" -> ErrorCode.UNAUTHENTICATED;
            case "403" -> ErrorCode.PERMISSION_DENIED;
            case "404" -> ErrorCode.UNIMPLEMENTED;
            case "429", "502", "503", "504" -> ErrorCode.UNAVAILABLE;
            default -> ErrorCode.UNKNOWN;
        };
    }

    private void onReset(long error) {
        if (error == Http2Error.REFUSED_STREAM.code()) {
            unavailable(key + " refused the stream");
        } else if (error == Http2Error.CANCEL.code() && overdue()) {
            late();
        } else if (error == Http2Error.CANCEL.code()) {
            end(ErrorCode.CANCELLED, key + " cancelled the call", true);
        } else {
            end(ErrorCode.UNAVAILABLE, key + " reset the call with HTTP/2 error " + error, true);
        }
    }

    @Override
    public void userEventTriggered(ChannelHandlerContext ctx, Object event) {
        if (event instanceof Http2ResetFrame reset) {
            onReset(reset.errorCode());
        } else if (event instanceof Http2GoAwayFrame) {
            GrpcConnectionPool.Connection used = connection;
            if (used != null) {
                used.leave();
            }
            unavailable(key + " is going away and has not begun with the call");
        }
        ReferenceCountUtil.release(event);
    }

    @Override
    public void channelInactive(ChannelHandlerContext ctx) {
        if (!over) {
            unavailable("the connection to " + key + " was lost " + (answered ? "within" : "before") + " the response");
        }
    }

    @Override
    public void exceptionCaught(ChannelHandlerContext ctx, Throwable cause) {
        unavailable("the call to " + key + " failed: " + cause.getMessage());
    }

    @Override
    public void onMessage(ByteBuf message, boolean compressed) {
        ByteBuf plain = message;
        if (compressed && message.isReadable()) {
            if (encoding == ContentEncoding.IDENTITY) {
                message.release();
                end(ErrorCode.INTERNAL, "compressed message without grpc-encoding from " + key, true);
                return;
            }
            try {
                plain = encoding.inflate(message, largest, new ByteBudget(Long.MAX_VALUE));
            } catch (ServingException e) {
                end(ErrorCode.INTERNAL, e.describe(), true);
                return;
            } finally {
                message.release();
            }
        }
        call.send(ProxyExchange.content(plain));
        plain.release();
    }

    @Override
    public void onTooLarge(long length) {
        end(
                ErrorCode.RESOURCE_EXHAUSTED,
                "a message of " + length + " bytes from " + key + " is larger than the limit of the proxy",
                true);
    }

    @Override
    public void onBudgetExhausted(long length) {
        end(ErrorCode.RESOURCE_EXHAUSTED, "not enough memory for a message of " + length + " bytes from " + key, true);
    }

    @Override
    public void onMalformed(int flag) {
        end(ErrorCode.INTERNAL, "malformed message from " + key, true);
    }

    @Override
    public boolean ended() {
        return over;
    }

    /** Ends the call on both sides, once; sends the status to the client if {@code notify}. */
    private void end(ErrorCode code, @Nullable String message, boolean notify) {
        if (over) {
            return;
        }
        over = true;
        if (timer != null) {
            timer.cancel(false);
        }
        reader.close();
        early.forEach(ByteBuf::release);
        early.clear();
        Http2StreamChannel open = stream;
        if (open != null) {
            open.config().setAutoRead(true);
            open.close(); // resets the stream unless both sides have ended it
        } else if (!opening) {
            client.calls(key).forget(this);
        }
        if (notify) {
            call.close(code, message);
        }
    }
}
