// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.http2;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.access.Caller;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.NettyBuffers;
import io.nereid.transport.ServerContext;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.codec.ContentEncoding;
import io.nereid.transport.codec.GatheringWrite;
import io.nereid.transport.exchange.AbstractHttpExchange;
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
    private final Http2ServerConnection connection;
    private final ServerContext server;
    private final Http2Stream stream;
    private final Http2Headers headers;
    private final Caller caller;
    private final RequestLine line;
    private final long arrivedNanos;
    private ContentEncoding encoding = ContentEncoding.IDENTITY;
    private @Nullable ByteBuf body;
    private ContentEncoding.@Nullable Growing growing;
    private @Nullable Http2Exchange exchange;

    Http2RequestStream(
            Http2ServerConnection connection,
            Http2Stream stream,
            Http2Headers headers,
            Caller caller,
            RequestLine line) {
        this.connection = connection;
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
            growing = new ContentEncoding.Growing(server.options.budget(), most);
        } else if (!server.options.budget().tryReserve(length)) {
            refuse(HttpReply.error(
                    429,
                    "cannot accept a request body of " + length + " bytes: the server's limit of "
                            + server.options.budget().limit()
                            + " bytes of requests in flight is reached (retry later)"));
        } else {
            body = length == 0 ? Unpooled.EMPTY_BUFFER : GatheringWrite.exact((int) length);
        }
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
        ByteBuf exact = body;
        ContentEncoding.Growing grown = growing;
        if (exact != null) {
            // RFC 9113, section 8.1.1: more or fewer bytes than content-length make the request malformed
            int n = data.readableBytes();
            if (n > exact.writableBytes()) {
                dropBody();
                connection.reset(stream, Http2Error.PROTOCOL_ERROR);
                return flow;
            }
            exact.writeBytes(data, data.readerIndex(), n);
            if (end) {
                body = null;
                if (exact.isWritable()) {
                    server.options.budget().release(exact.capacity());
                    exact.release();
                    connection.reset(stream, Http2Error.PROTOCOL_ERROR);
                } else {
                    dispatch(exact, exact.capacity(), exact.capacity());
                }
            }
        } else if (grown != null) {
            try {
                grown.append(data, data.readableBytes());
            } catch (ServingException e) {
                refuse(HttpReply.error(e.remedy() != null ? 429 : 413, e.describe()));
                return flow;
            }
            if (end) {
                growing = null;
                int reserved = grown.reserved();
                ByteBuf whole = grown.take();
                dispatch(whole, whole.readableBytes(), reserved);
            }
        }
        return flow;
    }

    private void dispatch(ByteBuf complete, int bytesIn, long reserved) {
        ByteBuf plain = complete;
        long taken = reserved;
        HttpReply failure = null;
        if (bytesIn > 0 && encoding != ContentEncoding.IDENTITY) {
            try {
                plain = encoding.inflate(complete, server.options.maxBodyBytes(), server.options.budget());
                taken = plain.capacity();
                server.options.budget().release(reserved);
                complete.release();
            } catch (ServingException e) {
                int status = e.remedy() != null ? 429 : e.code() == ErrorCode.RESOURCE_EXHAUSTED ? 413 : 400;
                failure = HttpReply.error(status, e.describe());
            }
        }
        Http2Exchange ready = new Http2Exchange(
                connection, stream, headers, caller, line, NettyBuffers.region(plain), bytesIn, taken, arrivedNanos);
        exchange = ready;
        if (failure != null) {
            server.stats.requestRejected();
            server.stats.exchangeStarted();
            ready.reply(failure);
        } else {
            ready.dispatch();
        }
    }

    private void dropBody() {
        ByteBuf exact = body;
        if (exact != null) {
            body = null;
            server.options.budget().release(exact.capacity());
            exact.release();
        }
        ContentEncoding.Growing grown = growing;
        if (grown != null) {
            growing = null;
            grown.close();
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
}
