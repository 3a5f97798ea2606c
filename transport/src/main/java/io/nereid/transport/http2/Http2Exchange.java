// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.http2;

import io.nereid.base.access.Caller;
import io.nereid.tensor.ByteBudget;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.NettyBuffers;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.api.ResponseBody;
import io.nereid.transport.codec.ContentEncoding;
import io.nereid.transport.codec.GatheringWrite;
import io.nereid.transport.exchange.AbstractHttpExchange;
import io.nereid.transport.exchange.AbstractResponseStream;
import io.nereid.transport.http1.Http1ResponseEncoder;
import io.nereid.transport.routing.RequestLine;
import io.netty.buffer.ByteBuf;
import io.netty.channel.ChannelPromise;
import io.netty.channel.EventLoop;
import io.netty.handler.codec.http2.DefaultHttp2Headers;
import io.netty.handler.codec.http2.Http2Headers;
import io.netty.handler.codec.http2.Http2Stream;
import java.net.SocketAddress;
import java.util.Map;
import java.util.concurrent.RejectedExecutionException;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/** An exchange over HTTP/2. Thread-safe, as described at {@link AbstractHttpExchange}. */
final class Http2Exchange extends AbstractHttpExchange {
    private static final ByteBuf[] NOTHING = {};

    private final Http2ServerConnection connection;
    private final Http2Stream stream;
    private final Http2Headers headers;

    Http2Exchange(
            Http2ServerConnection connection,
            Http2Stream stream,
            Http2Headers headers,
            Caller caller,
            RequestLine line,
            MemoryRegion body,
            long bytesIn,
            long reserved,
            long arrivedNanos) {
        super(connection.server, caller, line, body, bytesIn, reserved, arrivedNanos);
        this.connection = connection;
        this.stream = stream;
        this.headers = headers;
    }

    private static void setType(Http2Headers head, String type) {
        if (!type.isEmpty()) {
            head.set("content-type", Http1ResponseEncoder.clean(type));
            if (Http1ResponseEncoder.isText(type)) {
                head.set("x-content-type-options", "nosniff");
            }
        }
    }

    @Override
    protected ByteBudget budget() {
        return connection.budget;
    }

    @Override
    public void send(HttpReply reply) {
        Http2Headers head = new DefaultHttp2Headers(false, 8);
        int status = reply.status();
        head.status(Integer.toString(status));
        setType(head, reply.contentType());
        ContentEncoding encoding = encodingFor(reply);
        ResponseBody content = reply.content();
        if (encoding != ContentEncoding.IDENTITY) {
            content = compressed(content, encoding);
            head.set("content-encoding", encoding.token);
            head.set("vary", "accept-encoding");
        }
        String[] more = reply.headers();
        for (int i = 0; i < more.length; i += 2) {
            head.add(Http1ResponseEncoder.clean(more[i]), Http1ResponseEncoder.clean(more[i + 1]));
        }
        long length = content.length();
        boolean bodiless = status == 204 || status == 304;
        boolean described = (status == 304 || method().equals("HEAD")) && head.contains("content-length");
        if (!bodiless && !described) {
            head.set("content-length", Long.toString(length));
        }
        if (!head.contains("date")) {
            head.set("date", server.date(server.nanos()));
        }
        ByteBuf[] parts = NOTHING;
        if (length == 0 || bodiless || method().equals("HEAD")) {
            content.discard();
        } else {
            int copied = GatheringWrite.copied(content);
            parts = GatheringWrite.into(NettyBuffers.allocator().directBuffer(Math.max(16, copied)), content);
        }
        EventLoop loop = loop();
        if (loop.inEventLoop()) {
            write(head, parts);
            return;
        }
        ByteBuf[] ready = parts;
        try {
            loop.execute(() -> write(head, ready));
        } catch (RejectedExecutionException e) {
            GatheringWrite.release(ready);
        }
    }

    @Override
    public AbstractResponseStream begin(HttpReply reply) {
        Http2Headers head = new DefaultHttp2Headers(false, 8);
        head.status(Integer.toString(reply.status()));
        setType(head, reply.contentType());
        String[] more = reply.headers();
        for (int i = 0; i < more.length; i += 2) {
            head.add(Http1ResponseEncoder.clean(more[i]), Http1ResponseEncoder.clean(more[i + 1]));
        }
        if (!head.contains("date")) {
            head.set("date", server.date(server.nanos()));
        }
        Http2ResponseStream begun = new Http2ResponseStream(this, connection, stream, reply.status(), head);
        begun.put(NOTHING, 0);
        begun.send(reply.content());
        return begun;
    }

    @Override
    public void headers(BiConsumer<String, String> each) {
        for (Map.Entry<CharSequence, CharSequence> header : headers) {
            if (header.getKey().length() > 0 && header.getKey().charAt(0) != ':') {
                each.accept(header.getKey().toString(), header.getValue().toString());
            }
        }
    }

    private void write(Http2Headers head, ByteBuf[] parts) {
        if (parts.length == 0) {
            connection.writeEnd(stream, head);
        } else {
            connection.writeHeaders(stream, head, false);
            ChannelPromise written = connection.newPromise();
            connection.stopClientAfter(stream, written);
            connection.writeData(stream, parts, true, written);
        }
        connection.flushSoon();
    }

    @Override
    public EventLoop loop() {
        return connection.loop();
    }

    @Override
    public SocketAddress remote() {
        return connection.client().remote();
    }

    @Override
    public boolean secure() {
        return connection.client().secure();
    }

    @Override
    public @Nullable String peer() {
        return connection.client().peer();
    }

    @Override
    public String protocol() {
        return "HTTP/2";
    }

    @Override
    public @Nullable String header(String lowerCaseName) {
        CharSequence value = headers.get(lowerCaseName.equals("host") ? ":authority" : lowerCaseName);
        return value == null ? null : value.toString();
    }
}
