// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.http2;

import io.nereid.base.ServingException;
import io.nereid.base.access.Caller;
import io.nereid.tensor.ByteBudget;
import io.nereid.transport.ConnectionChecks;
import io.nereid.transport.ServerContext;
import io.nereid.transport.api.GrpcMethod;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.api.HttpRoute;
import io.nereid.transport.codec.BodyReceiveAllocator;
import io.nereid.transport.exchange.AbstractHttpExchange;
import io.nereid.transport.exchange.ChannelClient;
import io.nereid.transport.exchange.CompiledRoutes;
import io.nereid.transport.exchange.VirtualHostResolver;
import io.nereid.transport.memory.ClientMemoryMonitor;
import io.nereid.transport.routing.RequestLine;
import io.nereid.transport.tls.TlsContext;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelPromise;
import io.netty.channel.EventLoop;
import io.netty.handler.codec.http2.AbstractHttp2ConnectionHandlerBuilder;
import io.netty.handler.codec.http2.DefaultHttp2Connection;
import io.netty.handler.codec.http2.DefaultHttp2LocalFlowController;
import io.netty.handler.codec.http2.DefaultHttp2RemoteFlowController;
import io.netty.handler.codec.http2.Http2Connection;
import io.netty.handler.codec.http2.Http2ConnectionDecoder;
import io.netty.handler.codec.http2.Http2ConnectionEncoder;
import io.netty.handler.codec.http2.Http2ConnectionHandler;
import io.netty.handler.codec.http2.Http2Error;
import io.netty.handler.codec.http2.Http2EventAdapter;
import io.netty.handler.codec.http2.Http2Exception;
import io.netty.handler.codec.http2.Http2FrameAdapter;
import io.netty.handler.codec.http2.Http2Headers;
import io.netty.handler.codec.http2.Http2Settings;
import io.netty.handler.codec.http2.Http2Stream;
import io.netty.handler.codec.http2.UniformStreamByteDistributor;
import io.netty.util.AsciiString;
import io.netty.util.concurrent.ScheduledFuture;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One HTTP/2 server connection. Frame parsing, HPACK, flow control and flood protection are Netty's; this class turns
 * streams into gRPC calls and HTTP exchanges, and implements keep-alive pings, graceful shutdown and the rules for
 * errors of single streams.
 *
 * <p>Flow control: the connection's window is refilled as soon as data arrives, the window of a stream only when its
 * consumer has taken the data ({@link #consumed}). A slow consumer thus stops its own stream and no other one; memory
 * is bounded by the windows of the streams and by the server's byte budget.
 *
 * <p>Confined to the channel's event loop, but for {@link #loop()}, {@link #client()}.
 */
public final class Http2ServerConnection extends Http2ConnectionHandler {
    private static final int STREAM_WINDOW = 8 << 20;
    private static final int CONNECTION_WINDOW = 16 << 20;
    private static final int FRAME_SIZE = 1 << 20;
    private static final int STREAMS = 1000;
    private static final int MAX_RESETS = 2000;
    private static final int RESET_SECONDS = 30;
    private static final long LAST_PING = 0x6e65726569646279L;
    private static final long LAST_PING_MILLIS = 1000;
    private static final long LINGER_MILLIS = 500;
    /** How many closed streams are remembered; a power of two. */
    private static final int CLOSED_KNOWN = 256;

    private static final long PING = 0x6e65726569646b61L;
    private static final AsciiString GRPC = AsciiString.cached("application/grpc");
    private static final AsciiString CONTENT_TYPE = AsciiString.cached("content-type");
    private static final AsciiString POST = AsciiString.cached("POST");

    private static final Logger LOG = LoggerFactory.getLogger(Http2ServerConnection.class);

    final ServerContext server;
    /** The connection's share of the server's budget. */
    final ByteBudget budget;

    private final VirtualHostResolver sites;
    /** The key of the property by which Netty's stream refers to ours. */
    private final Http2Connection.PropertyKey key;

    private @Nullable ChannelHandlerContext context;
    private @Nullable ChannelClient client;
    private @Nullable ClientMemoryMonitor monitor;
    private @Nullable Http2Answers answers;
    /** The last route lookup: clients repeat their path, and HPACK then yields the same objects. */
    private @Nullable CharSequence lastPath;

    private @Nullable CharSequence lastMethod;
    private @Nullable RequestLine lastLine;
    private @Nullable CompiledRoutes lastSite;
    /** A ring of the ids of recently closed streams; negative when this side has reset the stream. */
    private final int[] closed = new int[CLOSED_KNOWN];

    private int closedCount;

    private boolean reading;
    private boolean flushPlanned;
    /** Whether anything has arrived since the last call of {@link #watch}. */
    private boolean received;

    private boolean pinged;
    private boolean draining;
    private ConnectionChecks.@Nullable Check check;
    private @Nullable ScheduledFuture<?> lastResort;

    private Http2ServerConnection(
            Http2ConnectionDecoder decoder,
            Http2ConnectionEncoder encoder,
            Http2Settings settings,
            ServerContext server,
            VirtualHostResolver sites) {
        super(decoder, encoder, settings);
        this.server = server;
        this.budget = server.memory.connectionShare();
        this.sites = sites;
        this.key = connection().newKey();
        setCumulator(LargeReadCumulator.INSTANCE);
        Events events = new Events();
        decoder.frameListener(events);
        connection().addListener(events);
    }

    /** Creates the handler of a connection that has begun with the HTTP/2 preface. */
    public static Http2ServerConnection create(
            ServerContext server, VirtualHostResolver sites, BodyReceiveAllocator reads) {
        reads.largeReads();
        return new Builder(server, sites).build();
    }

    private static final class Builder extends AbstractHttp2ConnectionHandlerBuilder<Http2ServerConnection, Builder> {
        private final ServerContext server;
        private final VirtualHostResolver sites;

        Builder(ServerContext server, VirtualHostResolver sites) {
            this.server = server;
            this.sites = sites;
        }

        @Override
        protected Http2ServerConnection build() {
            Http2Connection connection = new DefaultHttp2Connection(true);
            // "true" refills the connection's window at once: memory is bounded by the budget and the streams' windows,
            // and a stream whose data is not consumed must not stop the others
            connection.local().flowController(new DefaultHttp2LocalFlowController(connection, 0.5f, true));
            connection
                    .remote()
                    .flowController(new DefaultHttp2RemoteFlowController(
                            connection, new UniformStreamByteDistributor(connection)));
            connection(connection);
            frameListener(new Http2FrameAdapter());
            initialSettings(Http2Settings.defaultSettings()
                    .initialWindowSize(STREAM_WINDOW)
                    .maxFrameSize(FRAME_SIZE)
                    .maxConcurrentStreams(STREAMS)
                    .maxHeaderListSize(server.options.maxHeadBytes()));
            decoderEnforceMaxRstFramesPerWindow(MAX_RESETS, RESET_SECONDS);
            return super.build();
        }

        @Override
        protected Http2ServerConnection build(
                Http2ConnectionDecoder decoder, Http2ConnectionEncoder encoder, Http2Settings settings) {
            return new Http2ServerConnection(decoder, encoder, settings, server, sites);
        }
    }

    private ChannelHandlerContext context() {
        return Objects.requireNonNull(context);
    }

    EventLoop loop() {
        return context().channel().eventLoop();
    }

    /** The client at the other end. */
    ChannelClient client() {
        return Objects.requireNonNull(client);
    }

    /** Observes the streams while their clients send. */
    ClientMemoryMonitor monitor() {
        return Objects.requireNonNull(monitor);
    }

    /** Whether the server reads what the client sends. */
    boolean isReading() {
        return context().channel().config().isAutoRead();
    }

    @Override
    public void handlerAdded(ChannelHandlerContext ctx) throws Exception {
        context = ctx;
        client = new ChannelClient(server, ctx);
        monitor = server.memory.monitor(loop());
        answers = new Http2Answers(this, ctx);
        super.handlerAdded(ctx);
        Http2Stream whole = connection().connectionStream();
        connection().local().flowController().incrementWindowSize(whole, CONNECTION_WINDOW - 65535);
        long period = Math.max(20, server.options.idleTimeout().toMillis());
        check = server.checks(loop(), period).begin(this::watch);
    }

    /** Runs once in each idle timeout: pings a silent client, and closes the connection if it stays silent. */
    private void watch() {
        if (received) {
            received = false;
            pinged = false;
        } else if (pinged) {
            context().close();
        } else {
            pinged = true;
            encoder().writePing(context(), false, PING, context().newPromise());
            context().flush();
        }
    }

    @Override
    protected void handlerRemoved0(ChannelHandlerContext ctx) throws Exception {
        endCheck();
        Objects.requireNonNull(answers).end();
        super.handlerRemoved0(ctx);
    }

    private void endCheck() {
        if (check != null) {
            check.end();
        }
    }

    @Override
    public void channelInactive(ChannelHandlerContext ctx) throws Exception {
        if (lastResort != null) {
            lastResort.cancel(false);
        }
        endCheck();
        super.channelInactive(ctx);
        Objects.requireNonNull(answers).end();
    }

    @Override
    public void channelRead(ChannelHandlerContext ctx, Object message) throws Exception {
        reading = true;
        received = true;
        super.channelRead(ctx, message);
    }

    @Override
    public void channelReadComplete(ChannelHandlerContext ctx) throws Exception {
        reading = false;
        super.channelReadComplete(ctx);
    }

    @Override
    public void channelWritabilityChanged(ChannelHandlerContext ctx) throws Exception {
        ctx.channel().config().setAutoRead(ctx.channel().isWritable());
        super.channelWritabilityChanged(ctx);
    }

    @Override
    public void userEventTriggered(ChannelHandlerContext ctx, Object event) throws Exception {
        if (event instanceof ServerContext.Drain drain) {
            announceGoAway(ctx, drain.limitMillis());
        } else {
            super.userEventTriggered(ctx, event);
        }
    }

    /**
     * Begins a graceful shutdown (RFC 9113, section 6.8): the first GOAWAY announces the end without a stream limit, so
     * that streams which the client opens meanwhile are still served. The acknowledgement of the ping sent after it
     * shows that the client has read it and opens no more streams; then {@link #finalGoAway} follows.
     */
    private void announceGoAway(ChannelHandlerContext ctx, long limitMillis) {
        sendGoAway(ctx, Integer.MAX_VALUE);
        encoder().writePing(ctx, false, LAST_PING, ctx.newPromise());
        ctx.flush();
        loop().schedule(this::finalGoAway, LAST_PING_MILLIS, TimeUnit.MILLISECONDS);
        lastResort = loop().schedule(() -> ctx.close(), limitMillis, TimeUnit.MILLISECONDS);
    }

    /** Sends the GOAWAY that names the last stream served, on the ping's acknowledgement or after a second. */
    private void finalGoAway() {
        ChannelHandlerContext ctx = context();
        if (!draining && ctx.channel().isActive()) {
            draining = true;
            sendGoAway(ctx, connection().remote().lastStreamCreated());
            ctx.flush();
            closeWhenDone();
        }
    }

    private void sendGoAway(ChannelHandlerContext ctx, int lastStream) {
        goAway(ctx, lastStream, Http2Error.NO_ERROR.code(), Unpooled.EMPTY_BUFFER, ctx.newPromise());
    }

    /**
     * Closes a draining connection after its last stream, with a delay in which the client can close first: closing a
     * socket while the client still sends makes TCP reset the connection, which could destroy the last response.
     */
    private void closeWhenDone() {
        if (draining && connection().numActiveStreams() == 0) {
            loop().schedule(() -> context().close(), LINGER_MILLIS, TimeUnit.MILLISECONDS);
        }
    }

    /**
     * Schedules one flush for everything written in this turn of the loop. Within a read loop there is nothing to do,
     * as Netty's handler flushes at its end.
     */
    void flushSoon() {
        if (!reading && !flushPlanned) {
            flushPlanned = true;
            loop().execute(() -> {
                flushPlanned = false;
                flush(context());
            });
        }
    }

    void writeHeaders(Http2Stream stream, Http2Headers headers, boolean end) {
        writeHeaders(stream, headers, end, context().newPromise());
    }

    void writeHeaders(Http2Stream stream, Http2Headers headers, boolean end, ChannelPromise promise) {
        encoder().writeHeaders(context(), stream.id(), headers, 0, end, promise);
    }

    ChannelPromise newPromise() {
        return context().newPromise();
    }

    /** Writes buffers as DATA and takes them over; {@code last} completes with the last of them. */
    void writeData(Http2Stream stream, ByteBuf[] parts, boolean end, ChannelPromise last) {
        Http2Answers unsent = Objects.requireNonNull(answers);
        for (int i = 0; i < parts.length; i++) {
            ByteBuf part = parts[i];
            while (part.readableBytes() > Http2Answers.PIECE) {
                // in pieces, to see how fast the client takes a large response
                ByteBuf piece = part.readRetainedSlice(Http2Answers.PIECE);
                encoder().writeData(context(), stream.id(), piece, 0, false, unsent.counted(newPromise(), piece));
            }
            boolean isLast = i == parts.length - 1;
            ChannelPromise written = unsent.counted(isLast ? last : newPromise(), part);
            encoder().writeData(context(), stream.id(), part, 0, end && isLast, written);
        }
        unsent.written();
    }

    /** Ends the server's side with these headers. A client that is still sending then gets a reset. */
    void writeEnd(Http2Stream stream, Http2Headers headers) {
        ChannelPromise written = newPromise();
        stopClientAfter(stream, written);
        writeHeaders(stream, headers, true, written);
    }

    /**
     * Resets the stream with NO_ERROR once the complete response is written, if the client has not ended its side: the
     * standard way to ask it to stop sending (RFC 9113, section 8.1).
     */
    void stopClientAfter(Http2Stream stream, ChannelPromise written) {
        if (stream.state() == Http2Stream.State.OPEN) {
            written.addListener(f -> {
                if (f.isSuccess() && stream.state() == Http2Stream.State.HALF_CLOSED_LOCAL) {
                    resetStream(context(), stream.id(), Http2Error.NO_ERROR.code(), newPromise());
                    flushSoon();
                }
            });
        }
    }

    void reset(Http2Stream stream, Http2Error error) {
        resetStream(context(), stream.id(), error.code(), newPromise());
        flushSoon();
    }

    /**
     * Decides between an error of the stream and one of the connection. HEADERS for a closed stream violate the
     * protocol and end the connection, unless this side has reset the stream and the client may not know yet. Frames
     * that cross a reset on the wire are ignored; they must not cost the connection's other streams.
     */
    @Override
    protected void onStreamError(
            ChannelHandlerContext ctx, boolean outbound, Throwable cause, Http2Exception.StreamException error) {
        int id = error.streamId();
        if (!outbound && error.error() == Http2Error.STREAM_CLOSED && connection().stream(id) == null) {
            boolean known = false;
            boolean reset = false;
            for (int i = 0; i < CLOSED_KNOWN; i++) {
                known |= closed[i] == id;
                reset |= closed[i] == -id;
            }
            String message = error.getMessage();
            if (!reset && message != null && message.contains("HEADERS")) {
                onConnectionError(
                        ctx,
                        false,
                        cause,
                        Http2Exception.connectionError(
                                known ? Http2Error.STREAM_CLOSED : Http2Error.PROTOCOL_ERROR,
                                "frame for the closed stream " + id));
                return;
            }
            if (reset) {
                // sent before the client has read the reset; a second one would count as one more error
                return;
            }
        }
        Http2Stream stream = connection().stream(id);
        if (!outbound
                && stream == null
                && connection().remote().isValidStreamId(id)
                && !connection().streamMayHaveExisted(id)) {
            // the decoder rejects a header block before the stream exists; what follows on the stream must be frames
            // of a stream that was reset, not of one that is idle, which would cost the connection
            server.stats.requestRejected();
            try {
                stream = connection().remote().createStream(id, false);
            } catch (Http2Exception e) {
                LOG.debug("cannot reset stream {} of {}", id, client().remote(), e);
            }
        }
        // a frame after END_STREAM is reported by Netty as PROTOCOL_ERROR; the RFC's code for it is STREAM_CLOSED
        Http2Exception.StreamException reported = error;
        if (!outbound
                && stream != null
                && error.error() == Http2Error.PROTOCOL_ERROR
                && stream.state() == Http2Stream.State.HALF_CLOSED_REMOTE
                && stream.getProperty(key) != null
                && Http2Exception.streamError(
                                id, Http2Error.STREAM_CLOSED, "frame after the client's end of stream " + id)
                        instanceof Http2Exception.StreamException late) {
            reported = late;
        }
        super.onStreamError(ctx, outbound, cause, reported);
    }

    @Override
    protected void onConnectionError(
            ChannelHandlerContext ctx, boolean outbound, Throwable cause, @Nullable Http2Exception error) {
        LOG.debug("HTTP/2 error on the connection of {}", client().remote(), cause);
        super.onConnectionError(ctx, outbound, cause, error);
    }

    @Override
    public void exceptionCaught(ChannelHandlerContext ctx, Throwable cause) throws Exception {
        if (TlsContext.isForeign(cause)) {
            LOG.debug("connection of {} was lost", client().remote(), cause);
            ctx.close();
        } else {
            super.exceptionCaught(ctx, cause);
        }
    }

    /** Returns consumed bytes to the stream's window, which may send a WINDOW_UPDATE. */
    void consumed(Http2Stream stream, int bytes) {
        try {
            if (connection().local().flowController().consumeBytes(stream, bytes)) {
                flushSoon();
            }
        } catch (Http2Exception e) {
            onError(context(), true, e);
        }
    }

    /** The request line with its route; from the cache when site, method and path are those of the request before. */
    private RequestLine lineOf(CompiledRoutes site, CharSequence method, CharSequence path) {
        RequestLine line = lastLine;
        if (line == null
                || site != lastSite
                || lastPath == null
                || !path.equals(lastPath)
                || !method.equals(lastMethod)) {
            line = site.line(method.toString(), path.toString());
            lastSite = site;
            lastLine = line;
            lastPath = path;
            lastMethod = method;
        }
        return line;
    }

    /** Begins a stream: resolves the virtual host and starts a gRPC call or an HTTP request. */
    private void begin(Http2Stream stream, Http2Headers headers, boolean end) {
        if (Objects.requireNonNull(answers).areTooMany()) {
            // the client does not take the responses that it has: it may try again, here or elsewhere
            server.stats.requestRejected();
            reset(stream, Http2Error.REFUSED_STREAM);
            return;
        }
        CharSequence method = headers.method();
        CharSequence path = headers.path();
        CharSequence type = headers.get(CONTENT_TYPE);
        String malformed = Http2RequestRules.malformedRequest(headers);
        if (malformed != null || method == null || path == null) {
            malformed(stream, malformed);
            return;
        }
        boolean grpc = type != null && isGrpc(type) && POST.contentEquals(method);
        CompiledRoutes site = sites.own();
        ServingException refusal = null;
        Http2RequestHead head = new Http2RequestHead(method, path, headers, grpc);
        if (!sites.alone()) {
            try {
                site = sites.find(head);
            } catch (ServingException e) {
                refusal = e;
            }
        }
        if (grpc) {
            GrpcMethod found = site.method(path);
            String full = pathOf(found, path);
            Caller caller = Caller.ANONYMOUS;
            if (found != null && refusal == null) {
                try {
                    caller = server.options
                            .access()
                            .admit(head, client(), found.operations().select("POST", full), null);
                } catch (Throwable t) {
                    refusal = server.published(t, full);
                }
            }
            GrpcServerCall call = new GrpcServerCall(this, stream, headers, caller, full, found);
            stream.setProperty(key, call);
            if (!end) {
                monitor().add(call);
            }
            call.begin(refusal);
            if (end) {
                call.onData(Unpooled.EMPTY_BUFFER, 0, true);
            }
            return;
        }
        RequestLine line = refusal == null
                ? lineOf(site, method, path)
                : VirtualHostResolver.refused(RequestLine.of(method.toString(), path.toString()), refusal);
        Caller caller = Caller.ANONYMOUS;
        HttpRoute route = line.match().route();
        HttpReply denial = server.crossOrigin.options(
                line.method(), line.match().status(), line.match().text(), head::header);
        if (route != null && denial == null) {
            try {
                caller = server.options
                        .access()
                        .admit(
                                head,
                                client(),
                                route.operations().select(line.method(), line.path()),
                                line.match().model());
            } catch (Throwable t) {
                denial = AbstractHttpExchange.denied(route, server.published(t, line.method() + " " + line.path()));
            }
        }
        Http2RequestStream request = new Http2RequestStream(this, stream, headers, caller, line);
        stream.setProperty(key, request);
        if (!end) {
            monitor().add(request);
        }
        if (refusal == null && line.match().route() == null && site.names(path)) {
            request.refuse(HttpReply.error(415, "content-type is not application/grpc"));
        } else if (denial != null) {
            request.refuse(denial);
        } else {
            request.begin(end);
        }
    }

    private void malformed(Http2Stream stream, @Nullable String what) {
        LOG.debug("malformed request of {} on stream {}: {}", client().remote(), stream.id(), what);
        server.stats.requestRejected();
        reset(stream, Http2Error.PROTOCOL_ERROR);
    }

    /** The path as a string; the method's own string where it is the same, which saves a copy for each call. */
    private static String pathOf(@Nullable GrpcMethod method, CharSequence path) {
        return method == null || method.path().length() != path.length() ? path.toString() : method.path();
    }

    private static boolean isGrpc(CharSequence type) {
        int length = GRPC.length();
        if (type.length() < length || !AsciiString.regionMatches(type, true, 0, GRPC, 0, length)) {
            return false;
        }
        return type.length() == length || type.charAt(length) == '+' || type.charAt(length) == ';';
    }

    /** Receives Netty's events: frames read, and streams closed. */
    private final class Events extends Http2EventAdapter {
        @Override
        public void onHeadersRead(
                ChannelHandlerContext ctx, int streamId, Http2Headers headers, int padding, boolean endOfStream) {
            Http2Stream stream = connection().stream(streamId);
            if (stream == null) {
                return;
            }
            Http2ServerStream known = stream.getProperty(key);
            if (known == null) {
                begin(stream, headers, endOfStream);
            } else if (endOfStream) {
                // trailers; their content is ignored
                String malformed = Http2RequestRules.malformedTrailers(headers);
                if (malformed != null) {
                    malformed(stream, malformed);
                } else {
                    known.onData(Unpooled.EMPTY_BUFFER, 0, true);
                }
            }
        }

        @Override
        public void onHeadersRead(
                ChannelHandlerContext ctx,
                int streamId,
                Http2Headers headers,
                int streamDependency,
                short weight,
                boolean exclusive,
                int padding,
                boolean endOfStream) {
            onHeadersRead(ctx, streamId, headers, padding, endOfStream);
        }

        @Override
        public void onPingAckRead(ChannelHandlerContext ctx, long data) {
            if (data == LAST_PING) {
                finalGoAway();
            }
        }

        @Override
        public int onDataRead(ChannelHandlerContext ctx, int streamId, ByteBuf data, int padding, boolean endOfStream) {
            int flow = data.readableBytes() + padding;
            Http2Stream stream = connection().stream(streamId);
            Http2ServerStream known = stream == null ? null : stream.getProperty(key);
            return known == null ? flow : known.onData(data, flow, endOfStream);
        }

        @Override
        public void onStreamClosed(Http2Stream stream) {
            closed[closedCount++ & CLOSED_KNOWN - 1] = stream.isResetSent() ? -stream.id() : stream.id();
            Http2ServerStream known = stream.removeProperty(key);
            if (known != null) {
                known.onClosed();
            }
            closeWhenDone();
        }
    }
}
