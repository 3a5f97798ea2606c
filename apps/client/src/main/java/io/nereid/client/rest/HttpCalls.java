// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.client.rest;

import com.fasterxml.jackson.databind.JsonNode;
import io.nereid.base.ErrorCode;
import io.nereid.client.infer.InferenceException;
import io.nereid.client.protocol.CallContext;
import io.nereid.client.protocol.Futures;
import java.io.IOException;
import java.net.ConnectException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpConnectTimeoutException;
import java.net.http.HttpHeaders;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublisher;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodySubscribers;
import java.nio.ByteBuffer;
import java.nio.channels.UnresolvedAddressException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.Flow;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Function;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLException;
import org.jspecify.annotations.Nullable;

/** Requests to one server over HTTP/1.1, whose connections the JDK's client keeps and uses again. Thread-safe. */
public final class HttpCalls {
    private final String base;
    private final HttpClient http;
    private final HttpConnectionLimit limit;
    private final Set<CompletableFuture<?>> active = ConcurrentHashMap.newKeySet();

    /**
     * Makes the calls of a server.
     *
     * @param base its address, possibly with a path before the protocol's own
     * @param connections the most connections at a time
     */
    public HttpCalls(URI base, int connections, Duration connectTimeout, @Nullable SSLContext tls, Executor executor) {
        String text = base.toString();
        this.base = text.endsWith("/") ? text.substring(0, text.length() - 1) : text;
        this.limit = new HttpConnectionLimit(connections);
        HttpClient.Builder builder = HttpClient.newBuilder()
                .version(HttpClient.Version.HTTP_1_1)
                .followRedirects(HttpClient.Redirect.NEVER)
                .connectTimeout(connectTimeout)
                .executor(executor);
        if (tls != null) {
            builder.sslContext(tls);
        }
        this.http = builder.build();
    }

    /** Ends the requests in progress. The JDK's client closes its connections when it is no longer used. */
    void close() {
        active.forEach(request -> request.cancel(true));
    }

    /** Encodes a segment of a path. */
    static String segment(String text) {
        return URLEncoder.encode(text, StandardCharsets.UTF_8).replace("+", "%20");
    }

    CompletableFuture<HttpAnswer> get(String path, CallContext call) {
        return send("GET", path, Map.of(), List.of(), call);
    }

    CompletableFuture<HttpAnswer> postJson(String path, byte[] json, CallContext call) {
        return send("POST", path, Map.of("content-type", "application/json"), List.of(ByteBuffer.wrap(json)), call);
    }

    /** Sends a request. The future fails with {@link InferenceException} for other statuses than 200 to 299. */
    CompletableFuture<HttpAnswer> send(
            String method, String path, Map<String, String> headers, List<ByteBuffer> body, CallContext call) {
        HttpRequest request = request(method, path, headers, body, call);
        AtomicBoolean began = new AtomicBoolean();
        return exchange(
                request,
                info -> {
                    began.set(true);
                    return BodySubscribers.ofByteArray();
                },
                began,
                HttpCalls::reply);
    }

    private static HttpAnswer reply(HttpResponse<byte[]> response) {
        if (response.statusCode() / 100 != 2) {
            throw failure(response.statusCode(), response.headers(), response.body(), response.uri());
        }
        return new HttpAnswer(response.statusCode(), response.headers(), response.body());
    }

    /** Sends a request whose response is read line by line. */
    void lines(String path, byte[] json, CallContext call, LineSubscriber lines) {
        HttpRequest request = request(
                "POST",
                path,
                Map.of("content-type", "application/json", "accept", "text/event-stream"),
                List.of(ByteBuffer.wrap(json)),
                call);
        AtomicBoolean began = new AtomicBoolean();
        CompletableFuture<@Nullable Void> done = exchange(
                request,
                info -> {
                    began.set(true);
                    if (info.statusCode() / 100 != 2) {
                        return BodySubscribers.mapping(BodySubscribers.ofByteArray(), body -> {
                            throw new FailedResponse(failure(info.statusCode(), info.headers(), body, request.uri()));
                        });
                    }
                    return BodySubscribers.fromLineSubscriber(lines, ignored -> null, StandardCharsets.UTF_8, null);
                },
                began,
                response -> null);
        lines.onCancel(() -> done.cancel(true));
        Futures.whenDone(done, (nothing, e) -> {
            if (e != null) {
                lines.onError(failure(e, request, began.get()));
            }
        });
    }

    /** Carries an error of the server out of a body subscriber. */
    private static final class FailedResponse extends RuntimeException {
        private static final long serialVersionUID = 1L;

        FailedResponse(InferenceException failure) {
            super(null, failure, false, false);
        }
    }

    private HttpRequest request(
            String method, String path, Map<String, String> headers, List<ByteBuffer> body, CallContext call) {
        try {
            HttpRequest.Builder builder = HttpRequest.newBuilder(URI.create(base + path));
            headers.forEach(builder::setHeader);
            call.headers().forEach(builder::setHeader);
            return builder.method(method, publisher(method, body)).build();
        } catch (IllegalArgumentException e) {
            throw InferenceException.of(
                    ErrorCode.INVALID_ARGUMENT,
                    "the request to " + base + path + " cannot be made: " + e.getMessage(),
                    e);
        }
    }

    private static BodyPublisher publisher(String method, List<ByteBuffer> body) {
        if (method.equals("GET")) {
            return BodyPublishers.noBody();
        }
        return BodyPublishers.concat(body.stream().map(HttpCalls::publisher).toArray(BodyPublisher[]::new));
    }

    private static BodyPublisher publisher(ByteBuffer part) {
        if (part.hasArray()) {
            return BodyPublishers.ofByteArray(part.array(), part.arrayOffset() + part.position(), part.remaining());
        }
        byte[] copy = new byte[part.remaining()];
        part.get(part.position(), copy);
        return BodyPublishers.ofByteArray(copy);
    }

    @SuppressWarnings("CollectionUndefinedEquality") // futures are compared by identity
    private <B extends @Nullable Object, T extends @Nullable Object> CompletableFuture<T> exchange(
            HttpRequest request,
            HttpResponse.BodyHandler<B> handler,
            AtomicBoolean began,
            Function<HttpResponse<B>, T> read) {
        CompletableFuture<T> result = new CompletableFuture<>();
        active.add(result);
        Futures.whenDone(result, (v, e) -> active.remove(result));
        CompletableFuture<Void> permit = limit.acquire();
        Futures.whenDone(result, (v, e) -> permit.cancel(false));
        Futures.whenDone(permit, (nothing, refused) -> {
            if (refused == null) {
                begin(request, handler, began, read, result);
            }
        });
        return result;
    }

    private <B extends @Nullable Object, T extends @Nullable Object> void begin(
            HttpRequest request,
            HttpResponse.BodyHandler<B> handler,
            AtomicBoolean began,
            Function<HttpResponse<B>, T> read,
            CompletableFuture<T> result) {
        CompletableFuture<HttpResponse<B>> exchange;
        try {
            if (result.isDone()) {
                throw new CancellationException();
            }
            exchange = http.sendAsync(request, handler);
        } catch (RuntimeException e) {
            limit.release();
            result.completeExceptionally(failure(e, request, began.get()));
            return;
        }
        Futures.cancelWith(result, exchange);
        Futures.whenDone(exchange, (response, e) -> {
            limit.release();
            if (e != null) {
                result.completeExceptionally(failure(e, request, began.get()));
                return;
            }
            try {
                result.complete(read.apply(response));
            } catch (RuntimeException failed) {
                result.completeExceptionally(failed);
            }
        });
    }

    private static InferenceException failure(Throwable thrown, HttpRequest request, boolean began) {
        Throwable e = thrown instanceof CompletionException && thrown.getCause() != null ? thrown.getCause() : thrown;
        for (Throwable t = e; t != null; t = t.getCause()) {
            if (t instanceof InferenceException known) {
                return known;
            }
        }
        URI uri = request.uri();
        if (e instanceof CancellationException) {
            return InferenceException.of(ErrorCode.CANCELLED, "the request to " + uri + " was cancelled", e);
        }
        if (e instanceof ConnectException
                || e instanceof HttpConnectTimeoutException
                || e.getCause() instanceof UnresolvedAddressException) {
            boolean unknown = e.getCause() instanceof UnresolvedAddressException
                    || (e.getCause() != null && e.getCause().getCause() instanceof UnresolvedAddressException);
            String reason = unknown ? "the host is unknown" : reason(e);
            return InferenceException.connection("no connection to " + uri + ": " + reason, e, true);
        }
        if (e instanceof SSLException) {
            return InferenceException.connection("no TLS connection to " + uri + ": " + reason(e), e, false);
        }
        if (e instanceof IOException) {
            String when = began ? "during the response" : "before a response";
            return InferenceException.connection(
                    "the connection to " + uri + " was lost " + when + ": " + reason(e), e, !began);
        }
        return InferenceException.of(ErrorCode.INTERNAL, "the request to " + uri + " failed: " + reason(e), e);
    }

    private static String reason(Throwable e) {
        String message = e.getMessage();
        return message == null ? e.getClass().getSimpleName() : message;
    }

    private static InferenceException failure(int status, HttpHeaders headers, byte[] body, URI uri) {
        Duration wait = headers.firstValue("retry-after")
                .filter(text -> text.matches("\\d{1,9}"))
                .map(text -> Duration.ofSeconds(Long.parseLong(text)))
                .orElse(null);
        return InferenceException.http(status, "HTTP " + status + " from " + uri + ": " + message(body), wait);
    }

    /** The message of an error: the member error or detail of a JSON object, else the beginning of the body. */
    private static String message(byte[] body) {
        try {
            JsonNode root = Json.MAPPER.readTree(body);
            for (String member : List.of("error", "detail", "message")) {
                JsonNode text = root == null ? null : root.get(member);
                if (text != null) {
                    return text.isTextual() ? text.asText() : text.toString();
                }
            }
        } catch (IOException e) {
            // not JSON
        }
        String text = new String(body, StandardCharsets.UTF_8).strip();
        return text.isEmpty() ? "no message" : text.length() > 1000 ? text.substring(0, 1000) + "…" : text;
    }

    /** What receives the lines of a response. */
    interface LineSubscriber extends Flow.Subscriber<String> {
        /** How to end the request when the receiver wants no more. */
        void onCancel(Runnable cancel);
    }
}
