// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.http1;

import io.nereid.tensor.MemoryRegion;
import io.nereid.transport.ServerContext;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.codec.GatheringWrite;
import io.nereid.transport.exchange.AbstractHttpExchange;
import io.nereid.transport.exchange.AbstractResponseStream;
import io.nereid.transport.routing.RequestLine;
import io.netty.buffer.ByteBuf;
import io.netty.channel.EventLoop;
import java.net.SocketAddress;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/** An exchange over HTTP/1.x. Thread-safe, as described at {@link AbstractHttpExchange}. */
final class Http1Exchange extends AbstractHttpExchange {
    private final Http1Connection connection;
    private final Http1RequestHead head;

    Http1Exchange(
            ServerContext server,
            Http1Connection connection,
            Http1RequestHead head,
            RequestLine line,
            MemoryRegion body,
            long bytesIn,
            long reserved,
            long arrivedNanos) {
        super(server, connection.caller(), line, body, bytesIn, reserved, arrivedNanos);
        this.connection = connection;
        this.head = head;
    }

    @Override
    public void send(HttpReply reply) {
        boolean keep = head.keepAlive() && !server.draining && !connection.draining();
        long now = server.nanos();
        ByteBuf[] parts = Http1ResponseEncoder.render(
                reply,
                encodingFor(reply),
                server.dateLine(now),
                !keep ? 0 : head.needsKeepAliveHeader() ? 2 : 1,
                line.method().equals("HEAD"));
        EventLoop loop = loop();
        if (loop.inEventLoop()) {
            connection.answered(this, parts, keep, now);
            return;
        }
        try {
            loop.execute(() -> connection.answered(this, parts, keep, now));
        } catch (java.util.concurrent.RejectedExecutionException e) {
            GatheringWrite.release(parts);
        }
    }

    @Override
    public AbstractResponseStream begin(HttpReply reply) {
        boolean chunked = !head.needsKeepAliveHeader();
        boolean keep = chunked && head.keepAlive() && !server.draining && !connection.draining();
        Http1ResponseStream stream = new Http1ResponseStream(this, connection, reply.status(), chunked, keep);
        stream.begin(reply, server.dateLine(server.nanos()), keep ? 1 : 0);
        return stream;
    }

    @Override
    public void headers(BiConsumer<String, String> each) {
        head.headers(each);
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
        return "HTTP/1.1";
    }

    @Override
    public @Nullable String header(String lowerCaseName) {
        return head.header(lowerCaseName);
    }
}
