// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.proxy;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.transport.codec.FieldSyntax;
import io.nereid.transport.http1.Http1ResponseEncoder;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.handler.codec.http.DefaultFullHttpRequest;
import io.netty.handler.codec.http.DefaultHttpHeadersFactory;
import io.netty.handler.codec.http.EmptyHttpHeaders;
import io.netty.handler.codec.http.FullHttpRequest;
import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpHeaders;
import io.netty.handler.codec.http.HttpMethod;
import io.netty.handler.codec.http.HttpVersion;
import io.netty.util.concurrent.ScheduledFuture;
import java.time.Duration;
import java.util.Iterator;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * One HTTP/1.1 request to an upstream server. Subclasses receive the response. It ends exactly once: with a complete
 * response, a failure or a cancellation. Confined to the event loop of its connection.
 */
abstract class UpstreamRequest {
    private static final Set<String> IDEMPOTENT = Set.of("GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE");

    final EventLoopHttpClient client;
    final EventLoopHttpClient.Key key;
    final String method;
    private final String target;
    private final HttpHeaders headers;
    private final ByteBuf body;
    private final Duration timeout;
    private @Nullable ScheduledFuture<?> timer;
    private @Nullable UpstreamConnection connection;
    private boolean retried;
    private boolean answered;
    private boolean over;

    /**
     * Creates a request; takes over the body. Nothing that was received by another protocol or built by a handler is
     * written to a connection unless it is valid in HTTP/1.1.
     *
     * @throws ServingException INVALID_ARGUMENT for a method, a target or a header that could end its line, and with
     *     it begin another header or request; the body is released then
     */
    UpstreamRequest(
            EventLoopHttpClient client,
            EventLoopHttpClient.Key key,
            String method,
            String target,
            HttpHeaders headers,
            ByteBuf body,
            Duration timeout) {
        this.client = client;
        this.key = key;
        this.method = method;
        this.target = target;
        this.headers = headers;
        this.body = body;
        this.timeout = timeout;
        try {
            requireValid(method, target, headers);
        } catch (ServingException e) {
            body.release();
            throw e;
        }
        if (body.isReadable() || !method.equals("GET") && !method.equals("HEAD")) {
            headers.set(HttpHeaderNames.CONTENT_LENGTH, body.readableBytes());
        }
    }

    private static void requireValid(String method, String target, HttpHeaders headers) {
        if (!FieldSyntax.isToken(method)) {
            throw invalid("method", method, "a token, such as POST");
        }
        if (!FieldSyntax.isTarget(target)) {
            throw invalid("request target", target, "a path whose special characters are escaped with %");
        }
        Iterator<Map.Entry<CharSequence, CharSequence>> all = headers.iteratorCharSequence();
        while (all.hasNext()) {
            Map.Entry<CharSequence, CharSequence> header = all.next();
            requireValid(header.getKey(), header.getValue());
        }
    }

    /**
     * Checks a header that is to be sent to an upstream server.
     *
     * @throws ServingException INVALID_ARGUMENT
     */
    static void requireValid(CharSequence name, CharSequence value) {
        if (!FieldSyntax.isToken(name)) {
            throw invalid("header name", name, "a token, such as x-request-id");
        }
        if (!FieldSyntax.isText(value)) {
            throw invalid("value of the header " + name, value, "no control characters");
        }
    }

    static ServingException invalid(String what, CharSequence value, String expected) {
        return ServingException.invalidArgument("'" + Http1ResponseEncoder.clean(value.toString()) + "' is not a valid "
                + what + " for an upstream server (expected: " + expected + ")");
    }

    final void start() {
        if (!timeout.isZero()) {
            timer = client.loop.schedule(this::late, timeout.toNanos(), TimeUnit.NANOSECONDS);
        }
        client.start(this, false);
    }

    private void late() {
        fail(ServingException.of(
                ErrorCode.DEADLINE_EXCEEDED,
                "no complete response from " + key + " after " + timeout.toMillis() + " ms",
                "raise the timeout, or check why that server is slow"));
    }

    final boolean over() {
        return over;
    }

    /** The request to write; it holds a reference of its own to the body, so that it can be sent again. */
    final FullHttpRequest request() {
        return new DefaultFullHttpRequest(
                HttpVersion.HTTP_1_1,
                HttpMethod.valueOf(method),
                target,
                body.isReadable() ? body.retainedDuplicate() : Unpooled.EMPTY_BUFFER,
                headers,
                EmptyHttpHeaders.INSTANCE);
    }

    static HttpHeaders newHeaders() {
        return DefaultHttpHeadersFactory.headersFactory().withValidation(false).newHeaders();
    }

    /** Called before the request is written to {@code to}. */
    final void assigned(UpstreamConnection to) {
        connection = to;
    }

    /** Called with the head of the response. */
    final void head(int status, HttpHeaders answerHeaders) {
        answered = true;
        if (!over) {
            onHead(status, answerHeaders);
        }
    }

    /** Called with a part of the response's body; the caller keeps the buffer. */
    final void data(ByteBuf bytes) {
        if (!over) {
            onData(bytes);
        }
    }

    /** Called when the response is complete. */
    final void end() {
        if (!over) {
            connection = null;
            finish();
            onEnd();
        }
    }

    /**
     * Called when the connection was lost or the response is malformed. Retries once on a new connection if the server
     * may just have closed an idle one: a reused connection, no byte of a response, and a request that was not sent
     * completely or is idempotent (RFC 9110, section 9.2.2). Otherwise it fails.
     *
     * @param written whether the whole request was sent
     * @param kept whether the connection had served other requests before
     * @param untouched whether no byte of a response has arrived
     */
    final void lost(boolean written, boolean kept, boolean untouched, String reason) {
        connection = null;
        if (over) {
            return;
        }
        if (kept && untouched && !retried && (!written || IDEMPOTENT.contains(method))) {
            retried = true;
            client.start(this, true);
            return;
        }
        fail(ServingException.of(
                ErrorCode.UNAVAILABLE,
                "the connection to " + key + " was lost " + (answered ? "within" : "before") + " the response: "
                        + reason,
                answered || written ? null : "retry"));
    }

    /** Fails the request, before or within its response. */
    final void fail(ServingException e) {
        if (!over) {
            stop();
            onFailure(e, answered);
        }
    }

    /** Cancels the request: its response is no longer needed. */
    final void cancel() {
        if (!over) {
            stop();
        }
    }

    private void stop() {
        finish();
        UpstreamConnection used = connection;
        connection = null;
        if (used != null) {
            used.abandon();
        } else {
            client.forget(this);
        }
    }

    private void finish() {
        over = true;
        body.release();
        if (timer != null) {
            timer.cancel(false);
        }
    }

    /** Pauses or resumes reading the response. */
    final void reading(boolean on) {
        UpstreamConnection used = connection;
        if (used != null) {
            used.reading(on);
        }
    }

    abstract void onHead(int status, HttpHeaders answerHeaders);

    abstract void onData(ByteBuf bytes);

    abstract void onEnd();

    /** Called at most once, on a failure; {@code begun} if {@link #onHead} was called before. */
    abstract void onFailure(ServingException e, boolean begun);
}
