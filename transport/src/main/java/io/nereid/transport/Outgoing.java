// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
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
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** One request to another server, and what becomes of its answer. Confined to one event loop, that of its connection. */
abstract class Outgoing {
    private static final Set<String> IDEMPOTENT = Set.of("GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE");

    final LoopClient client;
    final LoopClient.Key key;
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

    /** Takes over the body. */
    Outgoing(
            LoopClient client,
            LoopClient.Key key,
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
        if (body.isReadable() || !method.equals("GET") && !method.equals("HEAD")) {
            headers.set(HttpHeaderNames.CONTENT_LENGTH, body.readableBytes());
        }
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
                "no complete answer from " + key + " after " + timeout.toMillis() + " ms",
                "allow more time, or see what keeps that server"));
    }

    final boolean over() {
        return over;
    }

    /** The request to write, with a count of the body of its own. */
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

    /** The request is about to be written. */
    final void assigned(UpstreamConnection to) {
        connection = to;
    }

    /** The head of the answer has come. */
    final void head(int status, HttpHeaders answerHeaders) {
        answered = true;
        if (!over) {
            onHead(status, answerHeaders);
        }
    }

    /** Part of the answer's body has come; the buffer stays the caller's. */
    final void data(ByteBuf bytes) {
        if (!over) {
            onData(bytes);
        }
    }

    /** The answer is complete. */
    final void end() {
        if (!over) {
            connection = null;
            finish();
            onEnd();
        }
    }

    /**
     * The connection was lost, or no sense can be made of the answer.
     *
     * @param written whether the whole request had left
     * @param kept whether the connection had served other requests before
     * @param untouched whether not a byte of an answer has come
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
                "the connection to " + key + " broke " + (answered ? "within" : "before") + " the answer: " + reason,
                answered || written ? null : "retry"));
    }

    /** Ends the request without, or within, its answer. */
    final void fail(ServingException e) {
        if (!over) {
            stop();
            onFailure(e, answered);
        }
    }

    /** Nobody waits for the answer any more. */
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

    /** Stops or goes on reading the answer. */
    final void reading(boolean on) {
        UpstreamConnection used = connection;
        if (used != null) {
            used.reading(on);
        }
    }

    abstract void onHead(int status, HttpHeaders answerHeaders);

    abstract void onData(ByteBuf bytes);

    abstract void onEnd();

    /** The one report of a failure; {@code begun} if the head had been told. */
    abstract void onFailure(ServingException e, boolean begun);
}
