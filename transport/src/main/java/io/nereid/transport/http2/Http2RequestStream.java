// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.http2;

import io.nereid.base.ServingException;
import io.nereid.base.access.Caller;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.NettyBuffers;
import io.nereid.transport.ServerContext;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.codec.ContentEncoding;
import io.nereid.transport.exchange.AbstractHttpExchange;
import io.nereid.transport.exchange.Decompression;
import io.nereid.transport.memory.BodyBuffer;
import io.nereid.transport.routing.RequestLine;
import io.nereid.transport.routing.RouteTable;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.handler.codec.http2.Http2Error;
import io.netty.handler.codec.http2.Http2Headers;
import io.netty.handler.codec.http2.Http2Stream;
import org.jspecify.annotations.Nullable;

/**
 * The stream of an HTTP request over HTTP/2: receives the body, into a buffer of the length that {@code content-length}
 * gives or into one that grows, and then dispatches the exchange. Confined to the connection's event loop.
 */
final class Http2RequestStream extends Http2ServerStream {
    private final ServerContext server;
    private final Http2Stream stream;
    private final Http2Headers headers;
    private final Caller caller;
    private final RequestLine line;
    private final long arrivedNanos;
    private ContentEncoding encoding = ContentEncoding.IDENTITY;
    private @Nullable BodyBuffer body;
    private ContentEncoding.@Nullable Growing growing;
    private @Nullable Decompression decompressing;
    private @Nullable Http2Exchange exchange;

    Http2RequestStream(
            Http2ServerConnection connection,
            Http2Stream stream,
            Http2Headers headers,
            Caller caller,
            RequestLine line) {
        super(connection);
        this.server = connection.server;
        this.stream = stream;
        this.headers = headers;
        this.caller = caller;
        this.line = line;
        this.arrivedNanos = server.nanos();
    }

    void begin(boolean end) {
        RouteTable.Match match = line.match();
        if (match.route() == null) {
            refuse(AbstractHttpExchange.missing(match));
            return;
        }
        if (end) {
            dispatch(Unpooled.EMPTY_BUFFER, 0, 0);
            return;
        }
        CharSequence coding = headers.get("content-encoding");
        ContentEncoding known = ContentEncoding.of(coding == null ? null : coding.toString());
        if (known == null) {
            refuse(AbstractHttpExchange.unsupportedEncoding());
            return;
        }
        encoding = known;
        int most = server.options.maxBodyBytes();
        long length = headers.getLong("content-length", -1);
        if (length > most) {
            refuse(HttpReply.error(
                    413, "the request body of " + length + " bytes is larger than the limit of " + most + " bytes"));
        } else if (length < 0) {
            growing = new ContentEncoding.Growing(connection.budget, most);
        } else if (length > connection.budget.left()) {
            server.memory.shortage(length);
            refuse(BodyBuffer.exhausted(connection.budget, length));
        } else {
            try {
                body = new BodyBuffer(server.memory, connection.budget, (int) length, 0);
            } catch (ServingException e) {
                refuse(e);
            }
        }
    }

    private void refuse(ServingException e) {
        refuse(HttpReply.error(AbstractHttpExchange.bodyStatus(e), e.describe()));
    }

    /** Sends an error without calling a handler. */
    void refuse(HttpReply reply) {
        dropBody();
        server.stats.requestRejected();
        Http2Exchange refused =
                new Http2Exchange(connection, stream, headers, caller, line, MemoryRegion.empty(), 0, 0, arrivedNanos);
        exchange = refused;
        server.stats.exchangeStarted();
        refused.reply(reply);
    }

    @Override
    int onData(ByteBuf data, int flow, boolean end) {
        BodyBuffer known = body;
        ContentEncoding.Growing grown = growing;
        try {
            if (known != null) {
                // RFC 9113, section 8.1.1: more or fewer bytes than content-length make the request malformed
                int n = data.readableBytes();
                int missing = known.length() - known.received();
                if (n > missing || end && n < missing) {
                    dropBody();
                    connection.reset(stream, Http2Error.PROTOCOL_ERROR);
                    return flow;
                }
                known.append(data);
                if (end) {
                    body = null;
                    int reserved = known.reserved();
                    dispatch(known.take(), reserved, reserved);
                }
            } else if (grown != null) {
                grown.append(data, data.readableBytes());
                if (end) {
                    growing = null;
                    int reserved = grown.reserved();
                    ByteBuf whole = grown.take();
                    dispatch(whole, whole.readableBytes(), reserved);
                }
            }
        } catch (ServingException e) {
            refuse(e);
        }
        return flow;
    }

    private void dispatch(ByteBuf complete, int bytesIn, long reserved) {
        connection.monitor().remove(this);
        if (bytesIn == 0 || encoding == ContentEncoding.IDENTITY) {
            deliver(complete, bytesIn, reserved, null);
            return;
        }
        Decompression task = new Decompression(
                encoding,
                complete,
                reserved,
                server.options.maxBodyBytes(),
                connection.budget,
                connection.loop(),
                (plain, taken, error) -> {
                    decompressing = null;
                    deliver(plain == null ? complete : plain, bytesIn, taken, error);
                });
        decompressing = task;
        task.start(server.codec);
    }

    private void deliver(ByteBuf plain, int bytesIn, long reserved, @Nullable ServingException error) {
        Http2Exchange ready = new Http2Exchange(
                connection, stream, headers, caller, line, NettyBuffers.region(plain), bytesIn, reserved, arrivedNanos);
        exchange = ready;
        if (error != null) {
            server.stats.requestRejected();
            server.stats.exchangeStarted();
            ready.reply(HttpReply.error(AbstractHttpExchange.bodyStatus(error), error.describe()));
        } else {
            ready.dispatch();
        }
    }

    /** Releases a body that is incomplete or not decompressed. */
    private void dropBody() {
        connection.monitor().remove(this);
        BodyBuffer known = body;
        if (known != null) {
            body = null;
            known.close();
        }
        ContentEncoding.Growing grown = growing;
        if (grown != null) {
            growing = null;
            grown.close();
        }
        Decompression task = decompressing;
        if (task != null) {
            decompressing = null;
            task.cancel();
        }
    }

    @Override
    void onClosed() {
        dropBody();
        Http2Exchange left = exchange;
        if (left != null) {
            left.gone();
        }
    }

    @Override
    protected long progress() {
        BodyBuffer known = body;
        ContentEncoding.Growing grown = growing;
        return known != null ? known.received() : grown == null ? 0 : grown.size();
    }

    @Override
    protected long held() {
        BodyBuffer known = body;
        ContentEncoding.Growing grown = growing;
        return known != null ? known.reserved() : grown == null ? 0 : grown.reserved();
    }

    @Override
    protected void check(long now) {
        if (!connection.isReading()) {
            return;
        }
        if (server.memory.isLate(now - arrivedNanos, stillNanos(now), progress())) {
            refuse(HttpReply.error(408, "the request body did not arrive in time"));
            return;
        }
        BodyBuffer known = body;
        if (known != null && isSlow()) {
            known.trim();
        }
    }

    @Override
    protected void cut() {
        refuse(HttpReply.error(
                429,
                "the request body arrives slowly, and the server's limit of "
                        + server.options.budget().limit() + " bytes of requests in flight is reached (retry later)"));
    }
}
