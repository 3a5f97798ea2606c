// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport;

import io.nereid.tensor.MemoryRegion;
import io.nereid.transport.api.HttpReply;
import io.netty.buffer.ByteBuf;
import io.netty.channel.EventLoop;
import java.net.SocketAddress;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/** An exchange over HTTP/1.x. Thread-safe, as described at {@link Exchange}. */
final class Http1Exchange extends Exchange {
    private final Http1Connection connection;
    private final RequestHead head;

    Http1Exchange(
            ServerContext server,
            Http1Connection connection,
            RequestHead head,
            RequestLine line,
            MemoryRegion body,
            long bytesIn,
            long reserved,
            long arrivedNanos) {
        super(server, line, body, bytesIn, reserved, arrivedNanos);
        this.connection = connection;
        this.head = head;
    }

    @Override
    void send(HttpReply reply) {
        boolean keep = head.keepAlive() && !server.draining && !connection.draining();
        long now = server.nanos();
        ByteBuf[] parts = Http1Reply.render(
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
            Gather.release(parts);
        }
    }

    @Override
    ReplyStream begin(HttpReply reply) {
        boolean chunked = !head.needsKeepAliveHeader();
        boolean keep = chunked && head.keepAlive() && !server.draining && !connection.draining();
        Http1ReplyStream stream = new Http1ReplyStream(this, connection, reply.status(), chunked, keep);
        stream.begin(reply, server.dateLine(server.nanos()), keep ? 1 : 0);
        return stream;
    }

    @Override
    public void headers(BiConsumer<String, String> each) {
        head.headers(each);
    }

    @Override
    EventLoop loop() {
        return connection.loop();
    }

    @Override
    SocketAddress remote() {
        return connection.remote();
    }

    @Override
    boolean secure() {
        return connection.secure();
    }

    @Override
    @Nullable
    String peer() {
        return connection.peer();
    }

    @Override
    String protocol() {
        return "HTTP/1.1";
    }

    @Override
    public @Nullable String header(String lowerCaseName) {
        return head.header(lowerCaseName);
    }
}
