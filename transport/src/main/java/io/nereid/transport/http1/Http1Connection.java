// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.http1;

import io.nereid.base.ServingException;
import io.nereid.base.access.Caller;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.NettyBuffers;
import io.nereid.transport.AccessLog;
import io.nereid.transport.ConnectionChecks;
import io.nereid.transport.ServerContext;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.api.HttpRoute;
import io.nereid.transport.codec.BodyReceiveAllocator;
import io.nereid.transport.codec.ContentEncoding;
import io.nereid.transport.codec.GatheringWrite;
import io.nereid.transport.exchange.AbstractHttpExchange;
import io.nereid.transport.exchange.ChannelClient;
import io.nereid.transport.exchange.CompiledRoutes;
import io.nereid.transport.exchange.Decompression;
import io.nereid.transport.exchange.VirtualHostResolver;
import io.nereid.transport.routing.RequestLine;
import io.nereid.transport.routing.RouteTable;
import io.nereid.transport.tls.TlsContext;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelFutureListener;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelPromise;
import io.netty.channel.EventLoop;
import io.netty.channel.socket.DuplexChannel;
import io.netty.handler.ssl.SslHandler;
import io.netty.util.concurrent.Future;
import io.netty.util.concurrent.GenericFutureListener;
import java.nio.channels.ClosedChannelException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One HTTP/1.x server connection, a state machine over the bytes received. It serves one request at a time: head, body,
 * handler, response. Bytes of pipelined requests wait in {@link #held} until the present response has been written, so
 * that responses leave in the order of the requests.
 *
 * <p>A body of known length is read from the socket straight into the buffer that becomes the request's body (see
 * {@link Http1Body} and {@link BodyReceiveAllocator}). While the client does not take the responses, no further request
 * begins. Confined to the channel's event loop, but for {@link #draining()}.
 */
public final class Http1Connection extends ChannelInboundHandlerAdapter {
    private enum State {
        /** Between requests, or within a request line and headers. */
        HEAD,
        /** Within a body, of known length or chunked. */
        BODY,
        /** Within a body that is read and dropped; the error response is sent after it. */
        SKIP,
        /** The request is complete, or decompressed, and its response is not; further input is held. */
        ANSWER,
        /** The last response has been written; further input is dropped until the connection closes. */
        DISCARD
    }

    private static final Logger LOG = LoggerFactory.getLogger(Http1Connection.class);
    private static final byte[] CONTINUE = "HTTP/1.1 100 Continue\r\n\r\n".getBytes(StandardCharsets.US_ASCII);

    /**
     * Bodies up to this size are read and dropped, so that the connection stays open after a request without a route.
     */
    private static final int MAX_SKIPPED = 64 << 10;

    /** More pipelined bytes than this are left in the socket until the present request is answered. */
    private static final int MAX_HELD = 64 << 10;

    private static final long LINGER_MILLIS = 2000;

    private final ServerContext server;
    private final VirtualHostResolver sites;
    private final BodyReceiveAllocator reads;
    private @Nullable ChannelHandlerContext context;
    private @Nullable ChannelClient client;
    private Caller caller = Caller.ANONYMOUS;
    private State state = State.HEAD;

    /** The bytes received of an incomplete head; the three positions below are indexes into it. */
    private byte[] partial = new byte[512];

    private int partialLength;

    /** Up to here there is no further line end; {@link #scan} goes on from here. */
    private int scanned;

    private int lineStart;

    /** Where the request line begins, after any empty lines. */
    private int headStart;

    /** The head parsed last, kept to recognise an equal one without parsing it. */
    private @Nullable Http1RequestHead last;

    /** The line of the present request with its route, and the line without a route that it was made from. */
    private @Nullable RequestLine routed;

    private @Nullable RequestLine unrouted;
    private @Nullable CompiledRoutes site;
    private volatile boolean draining;

    private long arrivedNanos;
    private long activeNanos;
    private long unsentBefore;
    private @Nullable Http1Body body;
    private @Nullable Http1Answers answers;
    private @Nullable Decompression decompressing;
    private long skip;
    private @Nullable HttpReply skippedReply;
    private @Nullable Http1Exchange current;

    /** Pipelined bytes that wait for the end of the present exchange. */
    private @Nullable ByteBuf held;

    /** Between channelRead and channelReadComplete: writes are flushed once, at the end of the read loop. */
    private boolean reading;

    /** Within {@link #consume}: a response written now must not start another pass over {@code held}. */
    private boolean consuming;

    private boolean unflushed;

    /** Whether the reservation of unsent responses is settled once those written before have been sent. */
    private boolean settling;

    private ConnectionChecks.@Nullable Check check;

    public Http1Connection(ServerContext server, VirtualHostResolver sites, BodyReceiveAllocator reads) {
        this.server = server;
        this.sites = sites;
        this.reads = reads;
    }

    private ChannelHandlerContext context() {
        return java.util.Objects.requireNonNull(context);
    }

    EventLoop loop() {
        return context().channel().eventLoop();
    }

    /** The client at the other end. */
    ChannelClient client() {
        return java.util.Objects.requireNonNull(client);
    }

    /** Who makes the present request. */
    Caller caller() {
        return caller;
    }

    @Override
    public void handlerAdded(ChannelHandlerContext ctx) {
        context = ctx;
        client = new ChannelClient(server, ctx);
        body = new Http1Body(this, server, reads);
        answers = new Http1Answers(ctx, server);
        activeNanos = server.nanos();
        arrivedNanos = activeNanos;
        long period = Math.min(
                        server.options.idleTimeout().toMillis(),
                        server.options.requestTimeout().toMillis())
                / 2;
        period = Math.max(20, Math.min(period, 30_000));
        check = server.checks(ctx.channel().eventLoop(), period).begin(this::watch);
    }

    @Override
    public void channelRead(ChannelHandlerContext ctx, Object message) {
        ByteBuf in = (ByteBuf) message;
        reading = true;
        Http1Body open = java.util.Objects.requireNonNull(body);
        if (open.adopt(in)) {
            try {
                if (open.continued()) {
                    bodyComplete();
                }
            } catch (ServingException e) {
                refuseBody(e);
            }
            return;
        }
        if (held != null) {
            hold(in);
            return;
        }
        try {
            consume(in);
        } finally {
            in.release();
        }
    }

    @Override
    public void channelReadComplete(ChannelHandlerContext ctx) {
        reading = false;
        flushWritten(ctx);
    }

    private void flushWritten(ChannelHandlerContext ctx) {
        if (unflushed) {
            unflushed = false;
            ctx.flush();
            settle();
        }
    }

    private void settle() {
        Http1Answers unsent = answers;
        if (unsent != null && unsent.isCharged()) {
            unsent.settle();
        }
    }

    private void consume(ByteBuf in) {
        consuming = true;
        try {
            while (in.isReadable()) {
                if (state == State.HEAD && !context().channel().isWritable()) {
                    // the client does not take the responses: its next request waits for that
                    hold(in.readRetainedSlice(in.readableBytes()));
                    return;
                }
                switch (state) {
                    case HEAD -> readHead(in);
                    case BODY -> readBody(in);
                    case SKIP -> {
                        int n = (int) Math.min(skip, in.readableBytes());
                        in.skipBytes(n);
                        skip -= n;
                        if (skip == 0) {
                            skipped();
                        }
                    }
                    case ANSWER -> {
                        hold(in.readRetainedSlice(in.readableBytes()));
                        return;
                    }
                    case DISCARD -> in.skipBytes(in.readableBytes());
                }
            }
        } finally {
            consuming = false;
        }
    }

    /**
     * Keeps pipelined bytes; takes {@code in} over. Beyond {@link #MAX_HELD} reading stops, so that a client which
     * pipelines without end is stopped by TCP flow control and not by the server's memory.
     */
    private void hold(ByteBuf in) {
        ByteBuf before = held;
        if (before == null) {
            held = in;
        } else {
            ByteBuf both = context().alloc().directBuffer(before.readableBytes() + in.readableBytes());
            both.writeBytes(before).writeBytes(in);
            before.release();
            in.release();
            held = both;
        }
        if (java.util.Objects.requireNonNull(held).readableBytes() > MAX_HELD) {
            context().channel().config().setAutoRead(false);
        }
    }

    private void readHead(ByteBuf in) {
        Http1RequestHead before = last;
        if (partialLength == 0) {
            // clients repeat their head byte for byte from request to request: reuse the parsed one
            if (before != null && in.readableBytes() >= before.bytes.length) {
                int length = before.bytes.length;
                if (partial.length < length) {
                    partial = new byte[length];
                }
                in.getBytes(in.readerIndex(), partial, 0, length);
                if (Arrays.equals(partial, 0, length, before.bytes, 0, length)) {
                    in.skipBytes(length);
                    arrivedNanos = server.nanos();
                    begin(before, in.readableBytes());
                    return;
                }
            }
            arrivedNanos = server.nanos();
        }
        int most = server.options.maxHeadBytes();
        while (in.isReadable()) {
            // copy in steps that double, so that the body which follows a short head is not copied along with it;
            // 4 bytes beyond the limit leave space for the CRLF CRLF that ends a head of exactly the limit
            int n = Math.min(in.readableBytes(), Math.max(512, partialLength));
            n = Math.min(n, most + 4 - partialLength);
            if (n == 0) {
                // still within the first line: the URI is too long (414); otherwise the headers are (431)
                refuse(lineStart == 0 ? 414 : 431, "the request head is larger than " + most + " bytes");
                return;
            }
            if (partialLength + n > partial.length) {
                partial = Arrays.copyOf(partial, Math.max(2 * partial.length, partialLength + n));
            }
            int from = partialLength;
            in.getBytes(in.readerIndex(), partial, from, n);
            partialLength += n;
            int end = scan();
            if (end < 0) {
                return;
            }
            if (end > 0) {
                in.skipBytes(end - from);
                byte[] bytes = Arrays.copyOfRange(partial, headStart, end);
                clearPartial();
                Http1RequestHead head = Http1RequestHead.parse(bytes, sites.alone() ? sites.own() : null, before);
                if (head.refusal() == null) {
                    last = head;
                }
                begin(head, in.readableBytes());
                return;
            }
            in.skipBytes(n);
        }
    }

    private void clearPartial() {
        partialLength = 0;
        scanned = 0;
        lineStart = 0;
        headStart = 0;
    }

    /**
     * Looks for the empty line that ends the head. A line that ends in a bare LF is rejected (RFC 9112 allows to accept
     * it): proxies and servers that disagree on line ends can be made to disagree on where a request begins.
     *
     * @return the end of the head in {@code partial}; 0 when it has not arrived yet, -1 when an error was sent
     */
    private int scan() {
        byte[] b = partial;
        for (int i = scanned; i < partialLength; i++) {
            if (b[i] != '\n') {
                continue;
            }
            if (i == 0 || b[i - 1] != '\r') {
                refuse(400, "bare LF in the request head");
                return -1;
            }
            if (i == lineStart + 1) {
                if (lineStart > headStart) {
                    return i + 1;
                }
                headStart = i + 1; // empty lines before a request are ignored
            }
            lineStart = i + 1;
        }
        scanned = partialLength;
        return 0;
    }

    /**
     * Acts on a complete head: rejects the request, dispatches it, or prepares to receive its body, of which at most
     * {@code arrived} bytes were read with the head.
     */
    private void begin(Http1RequestHead head, int arrived) {
        caller = Caller.ANONYMOUS; // until the access policy names it
        Http1RequestHead.Refusal refusal = head.refusal();
        if (refusal != null) {
            last = head;
            refuse(refusal.status(), refusal.text());
            return;
        }
        long length = head.contentLength();
        boolean chunked = head.chunked();
        RequestLine line = sites.alone() ? head.line() : route(head);
        routed = line;
        RouteTable.Match match = line.match();
        boolean hasBody = chunked || length > 0;
        ContentEncoding encoding =
                hasBody ? ContentEncoding.of(head.header("content-encoding")) : ContentEncoding.IDENTITY;
        HttpReply denial = server.crossOrigin.options(line.method(), match.status(), match.text(), head::header);
        if (denial == null && match.route() != null) {
            denial = admit(head, line, match.route());
        }
        if (match.route() == null || encoding == null || denial != null) {
            // a small body is skipped to keep the connection; with a large or chunked one the connection is closed, and
            // a client that waits for 100 Continue never sends its body
            server.stats.requestRejected();
            HttpReply reply = denial != null
                    ? denial
                    : encoding == null
                            ? AbstractHttpExchange.unsupportedEncoding()
                            : AbstractHttpExchange.missing(match);
            if (chunked || length > MAX_SKIPPED || head.expectsContinue()) {
                refuse(reply);
            } else {
                skip = length;
                skippedReply = reply;
                state = State.SKIP;
                last = head;
                if (length == 0) {
                    skipped();
                }
            }
            return;
        }
        if (!hasBody) {
            dispatch(head, Unpooled.EMPTY_BUFFER, 0, 0);
            return;
        }
        int most = server.options.maxBodyBytes();
        if (length > most) {
            refuse(413, "the request body of " + length + " bytes is larger than the limit of " + most + " bytes");
            return;
        }
        last = head;
        Http1Body receiver = java.util.Objects.requireNonNull(body);
        state = State.BODY;
        if (chunked) {
            receiver.beginChunked(arrivedNanos);
        } else {
            try {
                receiver.begin((int) length, arrived, arrivedNanos);
                if (arrived == 0) {
                    boolean unused = receiver.continued();
                }
            } catch (ServingException e) {
                refuseBody(e);
                return;
            }
        }
        if (head.expectsContinue()) {
            write(Unpooled.wrappedBuffer(CONTINUE));
        }
    }

    /** Asks the access policy; the reply when access is denied, else null and {@link #caller} is set. */
    private @Nullable HttpReply admit(Http1RequestHead head, RequestLine line, HttpRoute route) {
        try {
            caller = server.options
                    .access()
                    .admit(
                            head,
                            client(),
                            route.operations().select(line.method(), line.path()),
                            line.match().model());
            return null;
        } catch (Throwable t) {
            return AbstractHttpExchange.denied(route, server.published(t, line.method() + " " + line.path()));
        }
    }

    /** Resolves the virtual host and then the route of a request; reuses the previous result when both are the same. */
    private RequestLine route(Http1RequestHead head) {
        RequestLine plain = head.line();
        CompiledRoutes found;
        try {
            found = sites.find(head);
        } catch (ServingException e) {
            site = null;
            return VirtualHostResolver.refused(plain, e);
        }
        RequestLine before = routed;
        if (found == site && plain == unrouted && before != null) {
            return before;
        }
        site = found;
        unrouted = plain;
        return found.line(plain);
    }

    /** Whether the connection closes after the present response. Any thread. */
    boolean draining() {
        return draining;
    }

    private void bodyComplete() {
        Http1Body receiver = java.util.Objects.requireNonNull(body);
        int reserved = receiver.reserved();
        ByteBuf complete = receiver.take();
        dispatch(java.util.Objects.requireNonNull(last), complete, complete.readableBytes(), reserved);
    }

    private void readBody(ByteBuf in) {
        try {
            if (java.util.Objects.requireNonNull(body).read(in)) {
                bodyComplete();
            }
        } catch (ServingException e) {
            in.skipBytes(in.readableBytes());
            refuseBody(e);
        }
    }

    private void refuseBody(ServingException e) {
        refuse(AbstractHttpExchange.bodyStatus(e), e.describe());
    }

    /** Sends the error response that was due once the body had been skipped. */
    private void skipped() {
        HttpReply reply = java.util.Objects.requireNonNull(skippedReply);
        skippedReply = null;
        Http1Exchange exchange = new Http1Exchange(
                server,
                this,
                java.util.Objects.requireNonNull(last),
                java.util.Objects.requireNonNull(routed),
                MemoryRegion.empty(),
                0,
                0,
                arrivedNanos);
        state = State.ANSWER;
        current = exchange;
        server.stats.exchangeStarted();
        exchange.reply(reply);
    }

    /**
     * Hands a complete request to its handler, after decompression if its body is compressed; takes over the body and
     * its reservation in the budget.
     */
    private void dispatch(Http1RequestHead head, ByteBuf complete, int bytesIn, long reserved) {
        state = State.ANSWER;
        ContentEncoding encoding =
                bytesIn > 0 ? ContentEncoding.of(head.header("content-encoding")) : ContentEncoding.IDENTITY;
        if (encoding == null || encoding == ContentEncoding.IDENTITY) {
            deliver(head, complete, bytesIn, reserved, null);
            return;
        }
        Decompression task = new Decompression(
                encoding,
                complete,
                reserved,
                server.options.maxBodyBytes(),
                server.options.budget(),
                loop(),
                (plain, taken, error) -> {
                    decompressing = null;
                    deliver(head, plain == null ? complete : plain, bytesIn, taken, error);
                });
        decompressing = task;
        task.start(server.codec);
    }

    private void deliver(
            Http1RequestHead head, ByteBuf plain, int bytesIn, long reserved, @Nullable ServingException error) {
        Http1Exchange exchange = new Http1Exchange(
                server,
                this,
                head,
                java.util.Objects.requireNonNull(routed),
                NettyBuffers.region(plain),
                bytesIn,
                reserved,
                arrivedNanos);
        current = exchange;
        if (error != null) {
            server.stats.requestRejected();
            server.stats.exchangeStarted();
            exchange.reply(HttpReply.error(AbstractHttpExchange.bodyStatus(error), error.describe()));
        } else {
            exchange.dispatch();
        }
    }

    /**
     * Writes the response, or the end of a streamed one, and goes on with the next request. Event loop only; takes the
     * buffers over.
     */
    void answered(Http1Exchange exchange, ByteBuf[] parts, boolean keep, long nowNanos) {
        ChannelHandlerContext ctx = context();
        if (current != exchange || !ctx.channel().isActive()) {
            // the client has left, or the connection was closed meanwhile
            GatheringWrite.release(parts);
            return;
        }
        current = null;
        activeNanos = nowNanos;
        // draining may have begun after the response was encoded on another thread and before it arrived here
        if (!keep || draining) {
            writeLast(parts, false);
            return;
        }
        state = State.HEAD;
        write(parts);
        consumeHeld();
    }

    /** Serves the pipelined requests, unless the present one is not answered; their responses are flushed together. */
    private void consumeHeld() {
        ByteBuf waiting = held;
        if (waiting == null || consuming || state != State.HEAD) {
            return;
        }
        ChannelHandlerContext ctx = context();
        held = null;
        ctx.channel().config().setAutoRead(ctx.channel().isWritable());
        boolean outer = reading;
        reading = true;
        try {
            consume(waiting);
        } finally {
            waiting.release();
            reading = outer;
        }
        if (!outer) {
            flushWritten(ctx);
        }
    }

    /**
     * Writes part of a streamed response. Event loop only; takes the buffers over.
     *
     * @param more whether another part, or the end, follows at once: they share a system call
     */
    void streamed(Http1Exchange exchange, ByteBuf[] parts, boolean more, GenericFutureListener<Future<Void>> written) {
        ChannelHandlerContext ctx = context();
        ChannelPromise promise = ctx.newPromise();
        promise.addListener(written);
        if (current != exchange || !ctx.channel().isActive()) {
            GatheringWrite.release(parts);
            promise.setFailure(new ClosedChannelException());
            return;
        }
        long bytes = 0;
        for (int i = 0; i < parts.length; i++) {
            bytes += parts[i].readableBytes();
            ctx.write(parts[i], i == parts.length - 1 ? promise : ctx.voidPromise());
        }
        wrote(ctx, bytes, more);
    }

    private void wrote(ChannelHandlerContext ctx, long bytes, boolean more) {
        if (reading || more) {
            unflushed = true;
        } else {
            unflushed = false;
            ctx.flush();
        }
        Http1Answers unsent = java.util.Objects.requireNonNull(answers);
        unsent.written(bytes);
        if (unsent.isCharged() && !settling) {
            settling = true;
            ctx.write(Unpooled.EMPTY_BUFFER).addListener(f -> {
                settling = false;
                loop().execute(this::settle); // at this moment the buffer still counts what it has written
            });
            if (!reading) {
                ctx.flush();
            }
        }
    }

    /** Closes the connection within a response, which the client then sees as truncated. Event loop only. */
    void broken(Http1Exchange exchange) {
        if (current == exchange) {
            flushWritten(context());
            context().close();
        }
    }

    private void write(ByteBuf... parts) {
        ChannelHandlerContext ctx = context();
        long bytes = 0;
        for (ByteBuf part : parts) {
            bytes += part.readableBytes();
            ctx.write(part, ctx.voidPromise());
        }
        wrote(ctx, bytes, false);
    }

    /** Rejects the present request and closes the connection. */
    void refuse(int status, String text) {
        server.stats.requestRejected();
        refuse(HttpReply.error(status, text));
    }

    /**
     * Sends an error without a handler and closes the connection: the end of the request is unknown or its body is not
     * going to be read, so the next request cannot be found.
     */
    private void refuse(HttpReply plain) {
        HttpReply reply = server.crossOrigin.enabled() && last != null
                ? server.crossOrigin.readable(plain, last.header("origin"))
                : plain;
        AccessLog log = server.options.accessLog();
        long now = server.nanos();
        if (log != null) {
            Http1RequestHead head = last;
            RequestLine line = partialLength > 0 || head == null ? null : head.lineOrNull();
            RequestLine found = routed;
            if (line != null && found != null && found.sent().equals(line.sent())) {
                line = found;
            }
            log.finished(new AccessLog.Entry(
                    "HTTP/1.1",
                    line == null ? "-" : line.method(),
                    line == null ? "-" : line.sent(),
                    reply.status(),
                    0,
                    reply.content().length(),
                    now - arrivedNanos,
                    client().remote(),
                    line == null || head == null ? null : head.header("x-request-id"),
                    client().peer(),
                    caller.name(),
                    line == null ? null : line.operation(),
                    line == null ? null : line.match().model()));
        }
        writeLast(Http1ResponseEncoder.render(reply, ContentEncoding.IDENTITY, server.dateLine(now), 0, false), true);
    }

    /**
     * Writes the last response of the connection. With {@code linger} the output is shut down and input is read and
     * dropped for a while: closing a socket with unread input sends a reset, which can destroy the response before the
     * client has read it.
     */
    private void writeLast(ByteBuf[] parts, boolean linger) {
        ChannelHandlerContext ctx = context();
        dropInput();
        state = State.DISCARD;
        for (int i = 0; i < parts.length - 1; i++) {
            ctx.write(parts[i], ctx.voidPromise());
        }
        ChannelPromise written = ctx.newPromise();
        if (linger && ctx.channel() instanceof DuplexChannel duplex) {
            written.addListener(f -> {
                if (f.isSuccess()) {
                    SslHandler tls = ctx.pipeline().get(SslHandler.class);
                    if (tls == null) {
                        duplex.shutdownOutput();
                    } else {
                        tls.closeOutbound().addListener(notified -> duplex.shutdownOutput());
                    }
                    duplex.config().setAutoRead(true);
                    loop().schedule(() -> duplex.close(), LINGER_MILLIS, TimeUnit.MILLISECONDS);
                } else {
                    duplex.close();
                }
            });
        } else {
            written.addListener(ChannelFutureListener.CLOSE);
        }
        ctx.writeAndFlush(parts[parts.length - 1], written);
        java.util.Objects.requireNonNull(answers).settle();
    }

    private void dropInput() {
        clearPartial();
        ByteBuf waiting = held;
        if (waiting != null) {
            held = null;
            waiting.release();
        }
        java.util.Objects.requireNonNull(body).drop();
        Decompression started = decompressing;
        if (started != null) {
            decompressing = null;
            started.cancel();
        }
    }

    /** Whether the server reads what the client sends. */
    boolean isReading() {
        return context().channel().config().isAutoRead();
    }

    /**
     * Runs periodically: closes idle connections and connections whose client does not read its response, and sends 408
     * for a request that does not arrive in time. A handler that is at work is not limited here.
     */
    private void watch() {
        long now = server.nanos();
        long idle = server.options.idleTimeout().toNanos();
        long unsent = java.util.Objects.requireNonNull(answers).unsent();
        if (unsent != unsentBefore) {
            // the client has taken some bytes of the response, or has been sent more
            unsentBefore = unsent;
            activeNanos = now;
        } else if (unsent > 0 && now - activeNanos > idle) {
            context().close();
            return;
        }
        switch (state) {
            case HEAD -> {
                if (partialLength > 0) {
                    if (held == null
                            && now - arrivedNanos
                                    > server.options.requestTimeout().toNanos()) {
                        refuse(408, "the request head did not arrive in time");
                    }
                } else if (unsent == 0 && now - Math.max(activeNanos, arrivedNanos) > idle) {
                    context().close();
                }
            }
            case SKIP -> {
                if (now - arrivedNanos > server.options.requestTimeout().toNanos()) {
                    refuse(408, "the request body did not arrive in time");
                }
            }
            case BODY, ANSWER, DISCARD -> {}
        }
    }

    @Override
    public void channelWritabilityChanged(ChannelHandlerContext ctx) {
        ByteBuf waiting = held;
        boolean writable = ctx.channel().isWritable();
        ctx.channel().config().setAutoRead(writable && (waiting == null || waiting.readableBytes() <= MAX_HELD));
        settle();
        if (writable && waiting != null && state == State.HEAD) {
            loop().execute(this::consumeHeld);
        }
    }

    @Override
    public void userEventTriggered(ChannelHandlerContext ctx, Object event) {
        if (!(event instanceof ServerContext.Drain)) {
            return;
        }
        draining = true;
        if (state == State.HEAD && partialLength == 0) {
            // closes once everything written before has been sent
            ctx.writeAndFlush(Unpooled.EMPTY_BUFFER).addListener(ChannelFutureListener.CLOSE);
        }
    }

    @Override
    public void handlerRemoved(ChannelHandlerContext ctx) {
        endCheck();
        dropInput();
        java.util.Objects.requireNonNull(answers).end();
    }

    private void endCheck() {
        if (check != null) {
            check.end();
        }
    }

    @Override
    public void channelInactive(ChannelHandlerContext ctx) {
        endCheck();
        dropInput();
        java.util.Objects.requireNonNull(answers).end();
        state = State.DISCARD;
        Http1Exchange left = current;
        if (left != null) {
            current = null;
            left.gone();
        }
    }

    @Override
    public void exceptionCaught(ChannelHandlerContext ctx, Throwable cause) {
        if (TlsContext.isForeign(cause)) {
            LOG.debug("connection of {} was lost", client().remote(), cause);
        } else {
            LOG.error("connection of {} failed", client().remote(), cause);
        }
        ctx.close();
    }
}
