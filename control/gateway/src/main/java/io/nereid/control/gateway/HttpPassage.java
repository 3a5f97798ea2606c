// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
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
 * An HTTP request on its way through a gate: the exchange as its handler sees it, which tells the gate when it ends. As
 * thread-safe as the exchange.
 */
class HttpPassage extends Passage implements HttpExchange, Runnable {
    private static final Logger LOG = LoggerFactory.getLogger(HttpPassage.class);
    private static final String RETRY_AFTER = "retry-after";

    final HttpExchange exchange;
    private final HttpHandler handler;
    private volatile @Nullable Runnable onCancel;
    private PayloadTap.@Nullable Tapped tapped;
    private boolean gone;

    HttpPassage(RevisionGate gate, HttpExchange exchange, HttpHandler handler) {
        super(gate, gate.context().clock.nanos());
        this.exchange = exchange;
        this.handler = handler;
        exchange.onCancel(this);
    }

    // ---- the passage ----

    @Override
    void go() {
        PayloadTap tap = tap();
        if (tap != null) {
            tapped = begin(tap);
        }
        List<Mirror> mirrors = mirrors();
        MirroredRequest copy = mirrors.isEmpty() ? null : MirroredRequest.of(this, mirrors);
        try {
            run(handler);
        } catch (RuntimeException e) {
            // the transport answers as it answers its own routes' failures
            over(HttpStatusCodes.http(ServingException.from(e).code()));
            throw e;
        } finally {
            if (copy != null) {
                copy.send();
            }
        }
    }

    /** Who listens; null for nobody. */
    @Nullable
    PayloadTap tap() {
        return gate.tap();
    }

    /** Who gets a copy. */
    List<Mirror> mirrors() {
        return gate.mirrors();
    }

    /** Runs the request; its handler may be another one than the route's. */
    void run(HttpHandler routed) {
        routed.handle(this);
    }

    @Override
    void resume() {
        try {
            go();
        } catch (ServingException e) {
            exchange.fail(e);
        } catch (RuntimeException e) {
            LOG.error("a request of revision {} failed", gate.revision(), e);
            exchange.fail(ServingException.from(e));
        }
    }

    @Override
    void refused(ServingException e) {
        PayloadTap tap = tap();
        if (tap != null && tapped == null) {
            tapped = begin(tap);
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

    /** The client has gone away. */
    @Override
    public void run() {
        synchronized (this) {
            gone = true;
        }
        Runnable action = onCancel;
        if (action != null) {
            action.run();
        }
        over(499);
    }

    /** What else must be let go of when the request has ended; called once. */
    void released() {}

    /** Ends the request for gate and listener; only the first end counts. */
    private void over(int status) {
        if (end(status)) {
            released();
            PayloadTap.Tapped listening = tapped;
            if (listening != null) {
                listening.end(status == 499 ? 0 : status, 0);
            }
        }
    }

    // ---- listening ----

    private PayloadTap.@Nullable Tapped begin(PayloadTap tap) {
        PayloadTap.Tapped listening = tap.begin(new TappedHead(this));
        if (listening != null) {
            String type = exchange.header("content-type");
            listening.request(type == null ? "" : type, exchange.body().retain());
        }
        return listening;
    }

    private HttpReply heard(HttpReply reply) {
        PayloadTap.Tapped listening = tapped;
        if (listening != null && !isEnded() && reply.content().length() > 0) {
            listening.response(reply.contentType(), Bodies.copy(reply.content()));
        }
        return reply;
    }

    // ---- the exchange ----

    @Override
    public final void reply(HttpReply reply) {
        HttpReply sent = reply.status() == 503 ? withRetryAfter(reply) : reply;
        heard(sent);
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
        more[headers.length + 1] = Integer.toString(gate.retryAfterSeconds());
        return new HttpReply(reply.status(), reply.contentType(), more, reply.content());
    }

    @Override
    public final ResponseStream stream(HttpReply head) {
        heard(head);
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
            late = gone;
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

    /** All headers, as a list. */
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
    private record TappedHead(HttpPassage passage) implements PayloadTap.Head {
        @Override
        public String transport() {
            return "http";
        }

        @Override
        public String method() {
            return passage.method();
        }

        @Override
        public String path() {
            return passage.path();
        }

        @Override
        public @Nullable String header(String lowerCaseName) {
            return passage.header(lowerCaseName);
        }

        @Override
        public List<Header> headers() {
            return passage.allHeaders();
        }
    }

    /** A reply in pieces; its end is the request's. As thread-safe as the stream. */
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
            PayloadTap.Tapped listening = tapped;
            if (listening != null && !isEnded() && piece.length() > 0) {
                listening.response(contentType, Bodies.copy(piece));
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
