// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.exchange;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.access.Caller;
import io.nereid.base.access.Operation;
import io.nereid.tensor.ByteBudget;
import io.nereid.tensor.MemoryRegion;
import io.nereid.transport.AccessLog;
import io.nereid.transport.ServerContext;
import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.api.HttpRoute;
import io.nereid.transport.api.HttpStatusCodes;
import io.nereid.transport.api.ResponseBody;
import io.nereid.transport.api.ResponseStream;
import io.nereid.transport.codec.ContentEncoding;
import io.nereid.transport.routing.RequestLine;
import io.nereid.transport.routing.RouteTable;
import io.netty.channel.EventLoop;
import java.net.SocketAddress;
import java.util.Arrays;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicReferenceFieldUpdater;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One HTTP request and its response, independent of the protocol's version. Subclasses send the response.
 *
 * <p>Thread-safe: all fields but {@code end} are set before a handler gets the exchange. {@code end} is an atomic state
 * by which exactly one of the response and the client's disconnect wins; each of the budget's reservation, the body and
 * the access-log entry is then settled once.
 */
public abstract class AbstractHttpExchange implements HttpExchange {
    private static final Logger LOG = LoggerFactory.getLogger(AbstractHttpExchange.class);

    /** Larger responses are not compressed on an event loop. */
    private static final int MOST_COMPRESSED_HERE = 32 << 10;

    private static final Object REPLIED = new Object();
    private static final Object GONE = new Object();
    private static final AtomicReferenceFieldUpdater<AbstractHttpExchange, @Nullable Object> END =
            AtomicReferenceFieldUpdater.newUpdater(AbstractHttpExchange.class, Object.class, "end");

    public final ServerContext server;
    public final RequestLine line;
    private final Caller caller;
    private final MemoryRegion body;
    private final long bytesIn;
    private final long reserved;
    private final long arrivedNanos;

    /** Null or the action to run when the client disconnects; at last {@code REPLIED} or {@code GONE}. */
    private volatile @Nullable Object end;

    /** The streamed response, once it has begun. */
    private @Nullable AbstractResponseStream stream;

    /** Takes over the body and the {@code reserved} bytes that it holds in the budget. */
    public AbstractHttpExchange(
            ServerContext server,
            Caller caller,
            RequestLine line,
            MemoryRegion body,
            long bytesIn,
            long reserved,
            long arrivedNanos) {
        this.server = server;
        this.caller = caller;
        this.line = line;
        this.body = body;
        this.bytesIn = bytesIn;
        this.reserved = reserved;
        this.arrivedNanos = arrivedNanos;
    }

    /** Where the {@code reserved} bytes were reserved. */
    protected ByteBudget budget() {
        return server.options.budget();
    }

    /** Calls the route's handler, or sends the error of a request without a route. */
    public final void dispatch() {
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

    /** The response to a request without a route: 404, 405 with {@code allow}, or 400. */
    public static HttpReply missing(RouteTable.Match match) {
        if (match.status() == 405) {
            HttpReply plain = HttpReply.error(405, "Method Not Allowed");
            return new HttpReply(405, plain.contentType(), new String[] {"allow", match.text()}, plain.content());
        }
        return HttpReply.error(match.status(), match.text());
    }

    /**
     * The response to a request that access was denied to: in the form of the route's protocol, with the headers that
     * HTTP wants.
     */
    public static HttpReply denied(HttpRoute route, ServingException e) {
        HttpReply plain = route.handler().denied(e);
        HttpReply standard = HttpReply.error(e);
        return plain.headers().length > 0 || standard.headers().length == 0
                ? plain
                : new HttpReply(plain.status(), plain.contentType(), standard.headers(), plain.content());
    }

    /** The response to a body in an unsupported content encoding. */
    public static HttpReply unsupportedEncoding() {
        HttpReply plain = HttpReply.error(501, "Unsupported compression type");
        return new HttpReply(
                501, plain.contentType(), new String[] {"accept-encoding", ContentEncoding.SUPPORTED}, plain.content());
    }

    /** The status for a body that could not be received or decompressed. */
    public static int bodyStatus(ServingException e) {
        return switch (e.code()) {
            case INVALID_ARGUMENT -> 400;
            case RESOURCE_EXHAUSTED -> e.remedy() == null ? 413 : 429; // too large for ever, or now
            default -> HttpStatusCodes.http(e.code());
        };
    }

    @Override
    public final void reply(HttpReply plain) {
        HttpReply reply = readable(plain);
        AbstractResponseStream begun = stream;
        if (begun != null) {
            reply.content().discard();
            LOG.error("{} {} was answered twice; the first response is aborted", line.method(), line.path());
            begun.abort();
            return;
        }
        Object was = END.getAndSet(this, REPLIED);
        if (was == REPLIED) {
            reply.content().discard();
            LOG.error("{} {} was answered twice; the second response is dropped", line.method(), line.path());
            return;
        }
        server.stats.exchangeFinished();
        long bytesOut = reply.content().length();
        int status = reply.status();
        if (was == GONE) {
            status = 499; // "client closed request", as nginx logs it
            bytesOut = 0;
            reply.content().discard();
        }
        body.release();
        budget().release(reserved);
        if (was != GONE) {
            transmit(reply);
        }
        log(status, bytesOut);
    }

    /** Sends a response; compresses a large one on the executor instead of the event loop. */
    private void transmit(HttpReply reply) {
        ResponseBody content = reply.content();
        int length = content.textLength();
        if (length > MOST_COMPRESSED_HERE && inEventLoop() && encodingFor(reply) != ContentEncoding.IDENTITY) {
            // the array is the caller's again when reply() returns
            ResponseBody copy = new ResponseBody(Arrays.copyOf(content.text(), length), length);
            HttpReply copied = new HttpReply(reply.status(), reply.contentType(), reply.headers(), copy);
            try {
                server.codec.execute(() -> sendOrRefuse(copied));
                return;
            } catch (RejectedExecutionException e) {
                LOG.debug("the server is stopping: compresses on the event loop");
            }
        }
        sendOrRefuse(reply);
    }

    private void sendOrRefuse(HttpReply reply) {
        try {
            send(reply);
        } catch (ServingException | OutOfMemoryError e) {
            // no memory for the response: a short error takes its place, and the connection stays open
            reply.content().discard();
            send(HttpReply.error(server.published(e, line.method() + " " + line.path())));
        }
    }

    @Override
    public final ResponseStream stream(HttpReply plain) {
        HttpReply head = readable(plain);
        if (stream != null || end == REPLIED) {
            head.content().discard();
            throw new IllegalStateException(line.method() + " " + line.path() + " was answered twice");
        }
        AbstractResponseStream begun = begin(head);
        stream = begun;
        body.release();
        budget().release(reserved);
        return begun;
    }

    private HttpReply readable(HttpReply reply) {
        return server.crossOrigin.enabled() ? server.crossOrigin.readable(reply, header("origin")) : reply;
    }

    /** Records the end of a streamed response, complete or aborted. */
    final void streamed(int status, long bytesOut) {
        Object was = END.getAndSet(this, REPLIED);
        server.stats.exchangeFinished();
        log(was == GONE ? 499 : status, bytesOut);
    }

    /** Whether the client has disconnected. */
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
                    peer(),
                    caller.name(),
                    line.operation(),
                    line.match().model()));
        }
    }

    @Override
    public final void fail(ServingException e) {
        reply(HttpReply.error(
                e.code() == ErrorCode.INTERNAL ? server.published(e, line.method() + " " + line.path()) : e));
    }

    /** Records that the client has disconnected or will not read the response. Event loop only. */
    public final void gone() {
        // a handler may register its action at this moment: retry until one of the states is final
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
        // too late to register when the client has gone already: then the action runs at once, on the loop as promised
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

    /** The text of {@code content}, compressed. */
    public static ResponseBody compressed(ResponseBody content, ContentEncoding encoding) {
        byte[] bytes = encoding.deflate(content.text(), content.textLength());
        return new ResponseBody(bytes, bytes.length);
    }

    /**
     * The content encoding to send {@code reply} in. Compresses only text of a middle size: small ones gain nothing,
     * large ones would hold up the thread, and tensors hardly shrink. Errors and the answers of management calls are not
     * compressed: clients written for Triton accept encodings with every request and inflate inference responses alone.
     */
    public final ContentEncoding encodingFor(HttpReply reply) {
        ResponseBody content = reply.content();
        int length = content.textLength();
        if (length < ContentEncoding.MIN_COMPRESSED
                || length > ContentEncoding.MAX_COMPRESSED
                || content.tensorCount() > 0
                || reply.status() >= 300
                || !server.options.compressReplies()
                || !compresses()) {
            return ContentEncoding.IDENTITY;
        }
        for (int i = 0; i < reply.headers().length; i += 2) {
            if (reply.headers()[i].equals("content-encoding")) {
                return ContentEncoding.IDENTITY;
            }
        }
        ContentEncoding accepted = ContentEncoding.accepted(header("accept-encoding"));
        return accepted == ContentEncoding.IDENTITY || inflated() ? accepted : ContentEncoding.IDENTITY;
    }

    /** Whether clients that accept an encoding can be expected to inflate the response of this call. */
    private boolean inflated() {
        Operation operation = line.operation();
        return operation == Operation.INFERENCE
                || operation == Operation.METRICS
                || operation == Operation.CONTROL
                || operation == Operation.CONTROL_READ;
    }

    /** Whether responses may be compressed when the client accepts it. */
    boolean compresses() {
        return true;
    }

    /** Begins a streamed response with its head and its first piece, which this takes over. */
    public abstract AbstractResponseStream begin(HttpReply head);

    /** Encodes the response on the calling thread and writes it on the event loop. */
    public abstract void send(HttpReply reply);

    public abstract EventLoop loop();

    public abstract SocketAddress remote();

    /** Whether the connection is encrypted. Event loop only. */
    public boolean secure() {
        return false;
    }

    public abstract @Nullable String peer();

    public abstract String protocol();

    @Override
    public final Caller caller() {
        return caller;
    }

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
