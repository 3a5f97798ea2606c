// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.endpoint.Content;
import io.nereid.endpoint.HttpExchange;
import io.nereid.endpoint.HttpReply;
import io.nereid.endpoint.HttpRoute;
import io.nereid.endpoint.HttpStream;
import io.nereid.tensor.MemoryRegion;
import io.netty.channel.EventLoop;
import java.net.SocketAddress;
import java.util.concurrent.atomic.AtomicReferenceFieldUpdater;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One HTTP exchange, whatever the protocol's version. Thread-safe: everything but {@code end} is fixed before a handler
 * sees it, and {@code end} decides between a reply and the client's leaving.
 */
abstract class Exchange implements HttpExchange {
    private static final Logger LOG = LoggerFactory.getLogger(Exchange.class);
    private static final Object REPLIED = new Object();
    private static final Object GONE = new Object();
    private static final AtomicReferenceFieldUpdater<Exchange, @Nullable Object> END =
            AtomicReferenceFieldUpdater.newUpdater(Exchange.class, Object.class, "end");

    final ServerContext server;
    final RequestLine line;
    private final MemoryRegion body;
    private final long bytesIn;
    private final long reserved;
    private final long arrivedNanos;

    /** Null or the action to run when the client leaves; then {@code REPLIED} or {@code GONE}. */
    private volatile @Nullable Object end;

    /** The reply in pieces, once it has begun. */
    private @Nullable ReplyStream stream;

    /** Takes over the body and the {@code reserved} bytes of the budget. */
    Exchange(
            ServerContext server, RequestLine line, MemoryRegion body, long bytesIn, long reserved, long arrivedNanos) {
        this.server = server;
        this.line = line;
        this.body = body;
        this.bytesIn = bytesIn;
        this.reserved = reserved;
        this.arrivedNanos = arrivedNanos;
    }

    /** Calls the route's handler, or answers for the route that is missing. */
    final void dispatch() {
        server.stats.exchangeStarted();
        RouteTable.Match match = line.match();
        HttpRoute route = match.route();
        if (route == null) {
            reply(missing(match));
            return;
        }
        try {
            route.handler().handle(this);
        } catch (Throwable t) {
            if (end == REPLIED || stream != null) {
                LOG.error("{} {} threw after its reply", line.method(), line.path(), t);
            } else {
                reply(HttpReply.error(server.published(t, line.method() + " " + line.path())));
            }
        }
    }

    /** The answer to a request that no route takes. */
    static HttpReply missing(RouteTable.Match match) {
        if (match.status() == 405) {
            HttpReply plain = HttpReply.error(405, "Method Not Allowed");
            return new HttpReply(405, plain.contentType(), new String[] {"allow", match.text()}, plain.content());
        }
        return HttpReply.error(match.status(), match.text());
    }

    /** The answer to a body in an encoding that is not understood. */
    static HttpReply unsupportedEncoding() {
        HttpReply plain = HttpReply.error(501, "Unsupported compression type");
        return new HttpReply(
                501, plain.contentType(), new String[] {"accept-encoding", Encoding.SUPPORTED}, plain.content());
    }

    @Override
    public final void reply(HttpReply reply) {
        ReplyStream begun = stream;
        if (begun != null) {
            reply.content().discard();
            LOG.error("{} {} was answered twice; the first answer is broken off", line.method(), line.path());
            begun.abort();
            return;
        }
        Object was = END.getAndSet(this, REPLIED);
        if (was == REPLIED) {
            reply.content().discard();
            LOG.error("{} {} was answered twice; the second answer is dropped", line.method(), line.path());
            return;
        }
        server.stats.exchangeFinished();
        long bytesOut = reply.content().length();
        int status = reply.status();
        if (was == GONE) {
            status = 499;
            bytesOut = 0;
            reply.content().discard();
        }
        body.release();
        server.options.budget().release(reserved);
        if (was != GONE) {
            send(reply);
        }
        log(status, bytesOut);
    }

    @Override
    public final HttpStream stream(HttpReply head) {
        if (stream != null || end == REPLIED) {
            head.content().discard();
            throw new IllegalStateException(line.method() + " " + line.path() + " was answered twice");
        }
        ReplyStream begun = begin(head);
        stream = begun;
        body.release();
        server.options.budget().release(reserved);
        return begun;
    }

    /** The reply in pieces is complete, or will never be. */
    final void streamed(int status, long bytesOut) {
        Object was = END.getAndSet(this, REPLIED);
        server.stats.exchangeFinished();
        log(was == GONE ? 499 : status, bytesOut);
    }

    /** Whether the client has left. */
    final boolean isGone() {
        return end == GONE;
    }

    private void log(int status, long bytesOut) {
        AccessLog log = server.options.accessLog();
        if (log != null) {
            log.finished(new AccessLog.Entry(
                    protocol(),
                    line.method(),
                    line.sent(),
                    status,
                    bytesIn,
                    bytesOut,
                    server.nanos() - arrivedNanos,
                    remote(),
                    header("x-request-id"),
                    peer()));
        }
    }

    @Override
    public final void fail(ServingException e) {
        reply(HttpReply.error(
                e.code() == ErrorCode.INTERNAL ? server.published(e, line.method() + " " + line.path()) : e));
    }

    /** The client has left, or will not read the reply. Event loop only. */
    final void gone() {
        Object was = end;
        while (was != REPLIED && was != GONE) {
            if (END.compareAndSet(this, was, GONE)) {
                if (was != null) {
                    run((Runnable) was);
                }
                return;
            }
            was = end;
        }
    }

    @Override
    public final void onCancel(Runnable action) {
        if (!END.compareAndSet(this, null, action) && end == GONE) {
            loop().execute(() -> run(action));
        }
    }

    private void run(Runnable action) {
        try {
            action.run();
        } catch (RuntimeException e) {
            LOG.error("cancel action of {} {} failed", line.method(), line.path(), e);
        }
    }

    /** The content to send: compressed when the client asks for it and it is worth it. */
    static Content compressed(Content content, Encoding encoding) {
        byte[] bytes = encoding.deflate(content.text(), content.textLength());
        return new Content(bytes, bytes.length);
    }

    /** The encoding in which to send {@code reply}. */
    final Encoding encodingFor(HttpReply reply) {
        Content content = reply.content();
        int length = content.textLength();
        if (length < Encoding.MIN_COMPRESSED
                || length > Encoding.MAX_COMPRESSED
                || content.tensorCount() > 0
                || !server.options.compressReplies()
                || !compresses()) {
            return Encoding.IDENTITY;
        }
        for (int i = 0; i < reply.headers().length; i += 2) {
            if (reply.headers()[i].equals("content-encoding")) {
                return Encoding.IDENTITY;
            }
        }
        return Encoding.accepted(header("accept-encoding"));
    }

    /** Whether the client gets compressed replies if it asks for them. */
    boolean compresses() {
        return true;
    }

    /** Begins a reply in pieces: its head and its first piece, which this takes over. */
    abstract ReplyStream begin(HttpReply head);

    /** Encodes the reply on the calling thread and sends it from the event loop. */
    abstract void send(HttpReply reply);

    abstract EventLoop loop();

    abstract SocketAddress remote();

    /** Whether the connection is encrypted. Event loop only. */
    boolean secure() {
        return false;
    }

    abstract @Nullable String peer();

    abstract String protocol();

    @Override
    public final boolean inEventLoop() {
        return loop().inEventLoop();
    }

    @Override
    public final String method() {
        return line.method();
    }

    @Override
    public final String path() {
        return line.path();
    }

    @Override
    public final String pathParameter(int index) {
        return line.match().parameters()[index];
    }

    @Override
    public final String query() {
        String query = line.query();
        return query == null ? "" : query;
    }

    @Override
    public final @Nullable String queryParameter(String name) {
        return line.queryParameter(name);
    }

    @Override
    public final MemoryRegion body() {
        return body;
    }

    @Override
    public final long arrivedNanos() {
        return arrivedNanos;
    }
}
