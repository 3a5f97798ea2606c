// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway.activator;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.gateway.inprocess.BodyCopies;
import io.nereid.tensor.MemoryRegion;
import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.api.HttpRoute.HttpHandler;
import io.nereid.transport.api.HttpStatusCodes;
import io.nereid.transport.api.ResponseStream;
import io.nereid.transport.api.UpstreamClient.Header;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * An HTTP request at a {@link RevisionActivator}: the exchange as its handler sees it, which reports its end to the
 * activator. As thread-safe as the exchange.
 */
class RevisionHttpRequest extends RevisionRequest implements HttpExchange, Runnable {
    private static final Logger LOG = LoggerFactory.getLogger(RevisionHttpRequest.class);
    private static final String RETRY_AFTER = "retry-after";

    final HttpExchange exchange;
    private final HttpHandler handler;
    private volatile @Nullable Runnable onCancel;
    private PayloadListener.@Nullable Recorder recorder;

    @GuardedBy("this") private boolean disconnected;

    RevisionHttpRequest(RevisionActivator activator, HttpExchange exchange, HttpHandler handler) {
        super(activator, activator.context().clock.nanos());
        this.exchange = exchange;
        this.handler = handler;
        exchange.onCancel(this);
    }

    // ---- the request ----

    @Override
    void dispatch() {
        PayloadListener listener = listener();
        if (listener != null) {
            recorder = begin(listener);
        }
        List<MirrorTarget> mirrors = mirrors();
        MirroredRequest copy = mirrors.isEmpty() ? null : MirroredRequest.of(this, mirrors);
        try {
            run(handler);
        } catch (RuntimeException e) {
            // The transport replies, as it does for failures of its own routes.
            over(HttpStatusCodes.http(ServingException.from(e).code()));
            throw e;
        } finally {
            if (copy != null) {
                copy.send();
            }
        }
    }

    /** The listener of the revision; null for none. */
    @Nullable PayloadListener listener() {
        return activator.listener();
    }

    /** The targets of mirrored requests. */
    List<MirrorTarget> mirrors() {
        return activator.mirrors();
    }

    /** Runs the request with a handler, which subclasses may replace. */
    void run(HttpHandler routed) {
        routed.handle(this);
    }

    @Override
    void resume() {
        try {
            dispatch();
        } catch (ServingException e) {
            exchange.fail(e);
        } catch (RuntimeException e) {
            LOG.error("a request of revision {} failed", activator.revision(), e);
            exchange.fail(ServingException.from(e));
        }
    }

    @Override
    void rejected(ServingException e) {
        PayloadListener listener = listener();
        if (listener != null && recorder == null) {
            recorder = begin(listener);
        }
        reply(HttpReply.error(e));
    }

    @Override
    long bytes() {
        return exchange.body().size();
    }

    @Override
    long deadline() {
        return Long.MAX_VALUE;
    }

    /** Called when the client disconnects. */
    @Override
    public void run() {
        synchronized (this) {
            disconnected = true;
        }
        Runnable action = onCancel;
        if (action != null) {
            action.run();
        }
        over(499);
    }

    /** Releases further resources when the request has ended; called once. */
    void released() {}

    /** Ends the request for the activator and the listener. Only the first end counts. */
    private void over(int status) {
        if (end(status)) {
            released();
            PayloadListener.Recorder listening = recorder;
            if (listening != null) {
                listening.end(status == 499 ? 0 : status, 0);
            }
        }
    }

    // ---- listening ----

    private PayloadListener.@Nullable Recorder begin(PayloadListener listener) {
        PayloadListener.Recorder listening = listener.begin(new RequestHead(this));
        if (listening != null) {
            String type = exchange.header("content-type");
            listening.request(type == null ? "" : type, exchange.body().retain());
        }
        return listening;
    }

    private HttpReply recorded(HttpReply reply) {
        PayloadListener.Recorder listening = recorder;
        if (listening != null && !isEnded() && reply.content().length() > 0) {
            listening.response(reply.contentType(), BodyCopies.copy(reply.content()));
        }
        return reply;
    }

    // ---- the exchange ----

    @Override
    public final void reply(HttpReply reply) {
        HttpReply sent = reply.status() == 503 ? withRetryAfter(reply) : reply;
        recorded(sent);
        over(sent.status());
        exchange.reply(sent);
    }

    private HttpReply withRetryAfter(HttpReply reply) {
        String[] headers = reply.headers();
        for (int i = 0; i < headers.length; i += 2) {
            if (headers[i].equals(RETRY_AFTER)) {
                return reply;
            }
        }
        String[] more = Arrays.copyOf(headers, headers.length + 2);
        more[headers.length] = RETRY_AFTER;
        more[headers.length + 1] = Integer.toString(activator.retryAfterSeconds());
        return new HttpReply(reply.status(), reply.contentType(), more, reply.content());
    }

    @Override
    public final ResponseStream stream(HttpReply head) {
        recorded(head);
        return new Counted(exchange.stream(head), head);
    }

    @Override
    public void fail(ServingException e) {
        reply(HttpReply.error(e));
    }

    @Override
    public final void onCancel(Runnable action) {
        onCancel = action;
        boolean late;
        synchronized (this) {
            late = disconnected;
        }
        if (late) {
            action.run();
        }
    }

    @Override
    public final HttpExchange origin() {
        return exchange.origin();
    }

    @Override
    public final String method() {
        return exchange.method();
    }

    @Override
    public final String path() {
        return exchange.path();
    }

    @Override
    public final String query() {
        return exchange.query();
    }

    @Override
    public final String pathParameter(int index) {
        return exchange.pathParameter(index);
    }

    @Override
    public final @Nullable String queryParameter(String name) {
        return exchange.queryParameter(name);
    }

    @Override
    public final @Nullable String header(String lowerCaseName) {
        return exchange.header(lowerCaseName);
    }

    @Override
    public final void headers(BiConsumer<String, String> each) {
        exchange.headers(each);
    }

    @Override
    public final MemoryRegion body() {
        return exchange.body();
    }

    @Override
    public final long arrivedNanos() {
        return exchange.arrivedNanos();
    }

    @Override
    public final boolean inEventLoop() {
        return exchange.inEventLoop();
    }

    /** All headers as a list. */
    final List<Header> allHeaders() {
        List<Header> all = new ArrayList<>();
        exchange.headers((name, value) -> all.add(new Header(name, value)));
        return all;
    }

    /** The path with the query. */
    final String target() {
        String query = exchange.query();
        return query.isEmpty() ? exchange.path() : exchange.path() + "?" + query;
    }

    /** The request's head for a listener. Valid during a call. */
    private record RequestHead(RevisionHttpRequest request) implements PayloadListener.Head {
        @Override
        public String transport() {
            return "http";
        }

        @Override
        public String method() {
            return request.method();
        }

        @Override
        public String path() {
            return request.path();
        }

        @Override
        public @Nullable String header(String lowerCaseName) {
            return request.header(lowerCaseName);
        }

        @Override
        public List<Header> headers() {
            return request.allHeaders();
        }
    }

    /** A streamed reply, whose end is the end of the request. As thread-safe as the stream. */
    private final class Counted implements ResponseStream {
        private final ResponseStream stream;
        private final int status;
        private final String contentType;

        Counted(ResponseStream stream, HttpReply head) {
            this.stream = stream;
            this.status = head.status();
            this.contentType = head.contentType();
        }

        @Override
        public void send(io.nereid.transport.api.ResponseBody piece) {
            PayloadListener.Recorder listening = recorder;
            if (listening != null && !isEnded() && piece.length() > 0) {
                listening.response(contentType, BodyCopies.copy(piece));
            }
            stream.send(piece);
        }

        @Override
        public void end() {
            over(status);
            stream.end();
        }

        @Override
        public void abort() {
            over(HttpStatusCodes.http(ErrorCode.INTERNAL));
            stream.abort();
        }

        @Override
        public long unsentBytes() {
            return stream.unsentBytes();
        }
    }
}
