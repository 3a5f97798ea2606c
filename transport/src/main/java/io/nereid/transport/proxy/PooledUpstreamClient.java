// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.proxy;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.NettyBuffers;
import io.nereid.transport.EventLoops;
import io.nereid.transport.api.ForwardOptions;
import io.nereid.transport.api.GrpcCall;
import io.nereid.transport.api.GrpcMethod;
import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.UpstreamClient;
import io.nereid.transport.api.UpstreamResponse;
import io.nereid.transport.codec.FieldSyntax;
import io.nereid.transport.exchange.AbstractHttpExchange;
import io.nereid.transport.http1.Http1ResponseEncoder;
import io.nereid.transport.http2.GrpcServerCall;
import io.nereid.transport.tls.PemFile;
import io.netty.buffer.Unpooled;
import io.netty.channel.EventLoop;
import io.netty.handler.codec.http.HttpHeaders;
import io.netty.handler.codec.http2.DefaultHttp2Headers;
import io.netty.handler.codec.http2.Http2Headers;
import io.netty.util.AsciiString;
import io.netty.util.concurrent.EventExecutor;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.URISyntaxException;
import java.nio.charset.StandardCharsets;
import java.security.cert.X509Certificate;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.RejectedExecutionException;
import javax.net.ssl.SSLContext;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A reverse proxy and HTTP client with connection pools: forwards exchanges over HTTP/1.1 and gRPC calls over HTTP/2
 * without TLS to upstream servers, and sends requests and unary gRPC calls of its own, with TLS or without. Each event loop has its own pools, so that a
 * forwarded request usually stays on the loop of its client's connection and no pool needs a lock. Thread-safe; callers
 * are notified on event loops.
 *
 * <pre>{@code
 * PooledUpstreamClient client = new PooledUpstreamClient(PooledUpstreamClient.Options.DEFAULT.withLoops(loops));
 * client.forward(exchange, address, "/v2/models/iris/infer", options);
 * }</pre>
 */
public final class PooledUpstreamClient implements UpstreamClient {
    private static final Logger LOG = LoggerFactory.getLogger(PooledUpstreamClient.class);
    private static final AsciiString TRAILERS = AsciiString.cached("trailers");
    /** Threads for name resolution, which blocks. */
    private static final int RESOLVERS = 4;

    private final Options options;
    private final EventLoops loops;
    private final ExecutorService resolver = Threads.pool("nereid-resolve", RESOLVERS);
    private final Map<EventExecutor, EventLoopHttpClient> clients = new HashMap<>();

    /** Creates a client with the event loops of the options, or with its own. */
    public PooledUpstreamClient(Options options) {
        this.options = options;
        EventLoops shared = options.loops();
        this.loops = shared != null ? shared : new EventLoops(0, true);
        UpstreamTls tls = new UpstreamTls(options.trust());
        for (EventExecutor loop : loops.group) {
            clients.put(
                    loop, new EventLoopHttpClient((EventLoop) loop, loops.epoll, loops.count, options, resolver, tls));
        }
    }

    /** The client of an event loop; that of any loop when {@code loop} is null or not one of ours. */
    private EventLoopHttpClient client(@Nullable EventLoop loop) {
        EventLoopHttpClient own = loop == null ? null : clients.get(loop);
        return own != null ? own : Objects.requireNonNull(clients.get(loops.group.next()));
    }

    private static void run(EventLoopHttpClient client, Runnable action) {
        if (client.loop.inEventLoop()) {
            action.run();
        } else {
            client.loop.execute(action);
        }
    }

    private static String bare(String host) {
        return host.startsWith("[") && host.endsWith("]") ? host.substring(1, host.length() - 1) : host;
    }

    private static String authority(Address address) {
        String host = bare(address.host());
        return (host.indexOf(':') >= 0 ? "[" + host + "]" : host) + ":" + address.port();
    }

    private static EventLoopHttpClient.Key key(Address address) {
        return new EventLoopHttpClient.Key(bare(address.host()), address.port(), false);
    }

    @Override
    public void forward(HttpExchange exchange, Address address, String path, ForwardOptions terms) {
        AbstractHttpExchange known = exchange.origin() instanceof AbstractHttpExchange e ? e : null;
        EventLoopHttpClient client = client(known == null ? null : known.loop());
        HttpHeaders headers = requestHeaders(exchange, known, address);
        for (Header added : terms.headers()) {
            headers.remove(added.name());
        }
        terms.headers()
                .forEach(h -> headers.add(h.name().toLowerCase(Locale.ROOT), Http1ResponseEncoder.clean(h.value())));
        MemoryRegion body = exchange.body();
        ProxyExchange outgoing = new ProxyExchange(
                client,
                key(address),
                exchange,
                target(path),
                headers,
                body.size() == 0 ? Unpooled.EMPTY_BUFFER : NettyBuffers.buffer(body, 0, body.size()),
                terms.timeout());
        exchange.onCancel(() ->
                run(client, () -> outgoing.left(ServingException.of(ErrorCode.CANCELLED, "the client has gone"))));
        try {
            run(client, outgoing::start);
        } catch (RejectedExecutionException e) {
            exchange.fail(ServingException.of(ErrorCode.UNAVAILABLE, "the server is stopping"));
        }
    }

    /**
     * The headers to forward: without those of the connection, with {@code x-forwarded-*} where the client sent none.
     */
    private static HttpHeaders requestHeaders(
            HttpExchange exchange, @Nullable AbstractHttpExchange known, Address address) {
        HopByHopHeaders hops = new HopByHopHeaders();
        HttpHeaders headers = UpstreamRequest.newHeaders();
        List<String> cookies = new ArrayList<>(0);
        exchange.headers((name, value) -> {
            if (name.equals("connection")) {
                hops.connection(value);
            }
        });
        exchange.headers((name, value) -> {
            // the body has been decompressed on arrival, so its length is set anew
            if (name.equals("cookie") && !hops.drops(name)) {
                cookies.add(value);
            } else if (!hops.drops(name)
                    && !name.equals("content-length")
                    && !name.equals("content-encoding")
                    && !name.equals("expect")) {
                headers.add(name, value);
            }
        });
        if (!cookies.isEmpty()) {
            // HTTP/2 may split what must be one line in HTTP/1.1 (RFC 9113, section 8.2.3)
            headers.set("cookie", String.join("; ", cookies));
        }
        String host = exchange.header("host");
        if (!headers.contains("host")) {
            headers.set("host", host == null || host.isEmpty() ? authority(address) : host);
        }
        if (host != null && !host.isEmpty() && !headers.contains("x-forwarded-host")) {
            headers.set("x-forwarded-host", host);
        }
        if (known != null) {
            if (!headers.contains("x-forwarded-for")
                    && known.remote() instanceof InetSocketAddress from
                    && from.getAddress() != null) {
                headers.set("x-forwarded-for", from.getAddress().getHostAddress());
            }
            if (!headers.contains("x-forwarded-proto")) {
                headers.set("x-forwarded-proto", known.secure() ? "https" : "http");
            }
        }
        return headers;
    }

    /** A path as the target of a request; whether it is valid is checked with the whole request. */
    private static String target(String path) {
        return path.startsWith("/") ? path : "/" + path;
    }

    @Override
    public GrpcMethod.GrpcListener forward(GrpcCall call, Address address, ForwardOptions terms) {
        GrpcServerCall known = call.origin() instanceof GrpcServerCall c ? c : null;
        EventLoop caller = known == null ? null : known.loop();
        EventLoopHttpClient client = client(caller);
        Http2Headers headers = new DefaultHttp2Headers(false, 16);
        headers.method("POST").scheme("http").path(call.path());
        if (known != null) {
            for (Map.Entry<CharSequence, CharSequence> header : known.headers()) {
                metadata(headers, header.getKey().toString(), header.getValue());
            }
            CharSequence named = known.headers().authority();
            if (named == null) {
                named = known.headers().get("host");
            }
            if (named != null) {
                headers.authority(named);
            }
            if (!headers.contains("x-forwarded-for")
                    && known.remote() instanceof InetSocketAddress from
                    && from.getAddress() != null) {
                headers.set("x-forwarded-for", from.getAddress().getHostAddress());
            }
        } else {
            call.metadata((name, value) -> metadata(headers, name, value));
        }
        if (headers.authority() == null) {
            headers.authority(authority(address));
        }
        headers.set("content-type", "application/grpc").set("te", TRAILERS);
        for (Header added : terms.headers()) {
            headers.remove(added.name().toLowerCase(Locale.ROOT));
        }
        terms.headers()
                .forEach(h -> headers.add(h.name().toLowerCase(Locale.ROOT), Http1ResponseEncoder.clean(h.value())));
        requireValid(headers);
        long deadline = call.deadlineNanos();
        if (!terms.timeout().isZero()) {
            long own = options.clock().nanos() + terms.timeout().toNanos();
            deadline = deadline == Long.MAX_VALUE || own - deadline < 0 ? own : deadline;
        }
        GrpcProxyCall forward = new GrpcProxyCall(
                client, key(address), call, caller, headers, deadline, terms.timeout(), terms.maxBytes());
        run(client, forward::start);
        return forward;
    }

    /**
     * Makes a unary gRPC call over HTTP/2, with TLS for an https URL. Calls of an event loop share a connection.
     *
     * @param url the server, {@code http://host:port} or {@code https://host:port}
     * @param method the method, {@code /package.Service/Method}
     * @param metadata names in lower case
     * @param message the request; taken over on success and on failure
     * @param terms the time limit, the largest response and more metadata
     * @return the response, which the caller owns; fails with the status code and message of the call. Cancelling the
     *     future cancels the call
     */
    public CompletionStage<MemoryRegion> call(
            String url, String method, List<Header> metadata, MemoryRegion message, ForwardOptions terms) {
        UnaryClientCall call =
                new UnaryClientCall(method, metadata, options.clock().nanos());
        try {
            URI uri = server(url);
            EventLoopHttpClient.Key key = key(uri);
            Http2Headers headers = new DefaultHttp2Headers(false, 16);
            headers.method("POST").scheme(key.tls() ? "https" : "http").path(method);
            headers.authority(authority(new Address(key.host(), key.port())));
            metadata.forEach(
                    h -> metadata(headers, h.name().toLowerCase(Locale.ROOT), Http1ResponseEncoder.clean(h.value())));
            headers.set("content-type", "application/grpc").set("te", TRAILERS);
            terms.headers()
                    .forEach(
                            h -> headers.set(h.name().toLowerCase(Locale.ROOT), Http1ResponseEncoder.clean(h.value())));
            requireValid(headers);
            long deadline = terms.timeout().isZero()
                    ? Long.MAX_VALUE
                    : options.clock().nanos() + terms.timeout().toNanos();
            EventLoopHttpClient client = client(null);
            GrpcProxyCall sent =
                    new GrpcProxyCall(client, key, call, null, headers, deadline, terms.timeout(), terms.maxBytes());
            call.response.whenComplete((answer, thrown) -> {
                if (call.response.isCancelled()) {
                    sent.onCancel();
                }
            });
            run(client, () -> {
                sent.onMessage(message);
                message.release();
                sent.onHalfClose();
                sent.start();
            });
        } catch (ServingException e) {
            message.release();
            call.fail(e);
        } catch (RejectedExecutionException e) {
            message.release();
            call.fail(ServingException.of(ErrorCode.UNAVAILABLE, "the client is closed"));
        }
        return call.response;
    }

    /** Reads the URL of a server, or of something on it. */
    private static URI server(String url) {
        URI uri;
        try {
            uri = new URI(url);
        } catch (URISyntaxException e) {
            throw ServingException.invalidArgument("'" + url + "' is not a URL");
        }
        boolean http = "http".equalsIgnoreCase(uri.getScheme()) || "https".equalsIgnoreCase(uri.getScheme());
        if (uri.getHost() == null || !http) {
            throw ServingException.invalidArgument(
                    "'" + url + "' is not an http or https URL", "write http://host:port/path or https://host/path");
        }
        return uri;
    }

    private static EventLoopHttpClient.Key key(URI uri) {
        boolean tls = "https".equalsIgnoreCase(uri.getScheme());
        int port = uri.getPort() > 0 ? uri.getPort() : tls ? 443 : 80;
        return new EventLoopHttpClient.Key(bare(uri.getHost()), port, tls);
    }

    /** Checks the head of a call, as {@link UpstreamRequest} does for requests over HTTP/1.1. */
    private static void requireValid(Http2Headers headers) {
        for (Map.Entry<CharSequence, CharSequence> header : headers) {
            CharSequence name = header.getKey();
            if (name.length() == 0 || name.charAt(0) != ':') {
                UpstreamRequest.requireValid(name, header.getValue());
            }
        }
        CharSequence path = headers.path();
        if (!FieldSyntax.isTarget(path)) {
            throw UpstreamRequest.invalid("gRPC method", path, "/package.Service/Method");
        }
        CharSequence authority = headers.authority();
        if (!FieldSyntax.isHost(authority)) {
            throw UpstreamRequest.invalid("authority", authority, "a host name or address, and a port");
        }
    }

    /** Copies metadata, without the headers that belong to the transport: the proxy sends its own. */
    private static void metadata(Http2Headers to, String name, CharSequence value) {
        boolean transport = switch (name) {
            case "content-type", "te", "grpc-timeout", "grpc-encoding", "grpc-accept-encoding", "host", "connection" ->
                true;
            default -> name.startsWith(":");
        };
        if (!transport) {
            to.add(name, value);
        }
    }

    @Override
    public CompletionStage<UpstreamResponse> send(
            String method, String url, List<Header> headers, byte[] body, ForwardOptions terms) {
        URI uri;
        try {
            uri = server(url);
        } catch (ServingException e) {
            return CompletableFuture.failedFuture(e);
        }
        EventLoopHttpClient.Key key = key(uri);
        String path = uri.getRawPath() == null || uri.getRawPath().isEmpty() ? "/" : uri.getRawPath();
        HttpHeaders all = UpstreamRequest.newHeaders();
        headers.forEach(h -> all.add(h.name().toLowerCase(Locale.ROOT), Http1ResponseEncoder.clean(h.value())));
        terms.headers().forEach(h -> all.remove(h.name()));
        terms.headers().forEach(h -> all.add(h.name().toLowerCase(Locale.ROOT), Http1ResponseEncoder.clean(h.value())));
        all.remove("content-length");
        all.remove("transfer-encoding");
        if (!all.contains("host")) {
            all.set("host", uri.getPort() > 0 ? uri.getHost() + ":" + uri.getPort() : uri.getHost());
        }
        EventLoopHttpClient client = client(null);
        AggregatedUpstreamRequest outgoing;
        try {
            outgoing = new AggregatedUpstreamRequest(
                    client,
                    key,
                    method,
                    target(uri.getRawQuery() == null ? path : path + "?" + uri.getRawQuery()),
                    all,
                    body.length == 0 ? Unpooled.EMPTY_BUFFER : Unpooled.wrappedBuffer(body),
                    terms);
            outgoing.answer.whenComplete((a, thrown) -> {
                if (outgoing.answer.isCancelled()) {
                    run(client, outgoing::left);
                }
            });
            run(client, outgoing::start);
        } catch (ServingException e) {
            return CompletableFuture.failedFuture(e);
        } catch (RejectedExecutionException e) {
            return CompletableFuture.failedFuture(ServingException.of(ErrorCode.UNAVAILABLE, "the server is stopping"));
        }
        return outgoing.answer;
    }

    /** Closes every connection; requests in flight fail with UNAVAILABLE. Must not be called on an event loop. */
    @Override
    public void close() {
        for (EventLoopHttpClient client : clients.values()) {
            try {
                client.loop.submit(client::close).awaitUninterruptibly();
            } catch (RejectedExecutionException e) {
                LOG.debug("the event loop has already ended and closed its connections", e);
            }
        }
        resolver.shutdown();
        if (options.loops() == null) {
            loops.close();
        }
    }

    /**
     * The verification of upstream servers' certificates. Immutable.
     *
     * @param certificates the trusted certificate authorities; empty for those of the JVM
     * @param unverified whether certificates and host names are not verified at all
     * @param context what decides instead, and has the certificate of the client if there is one; null for the above
     */
    public record Trust(
            List<X509Certificate> certificates,
            boolean unverified,
            @Nullable SSLContext context) {
        /** Trusts the authorities of the JVM. */
        public static final Trust JVM = new Trust(List.of(), false);

        /** Trusts every server, without verification. */
        public static final Trust ANY_CERTIFICATE = new Trust(List.of(), true);

        /** Keeps a copy. */
        public Trust {
            certificates = List.copyOf(certificates);
        }

        /** Trusts these authorities, or every server. */
        public Trust(List<X509Certificate> certificates, boolean unverified) {
            this(certificates, unverified, null);
        }

        /** Trusts what a context trusts, and shows its certificate. */
        public static Trust of(SSLContext context) {
            return new Trust(List.of(), false, context);
        }

        /**
         * Trusts the authorities in a PEM text.
         *
         * @param where the name of the text in error messages
         * @throws ServingException FAILED_PRECONDITION for a text without certificates
         */
        public static Trust of(String where, String pem) {
            return new Trust(new PemFile(where, pem.getBytes(StandardCharsets.ISO_8859_1)).certificates(), false);
        }
    }

    /**
     * The options of a client. Immutable.
     *
     * @param loops the event loops to use, best those of the server; closed by their creator. Null to create own ones
     * @param connectTimeout the time limit for establishing a connection
     * @param idleTimeout how long an unused connection is kept open
     * @param mostConnections the most HTTP/1.1 connections to one address; further requests are queued, within their
     *     own timeout
     * @param clock the server's clock, by which deadlines of calls are measured
     * @param trust which certificates https accepts
     */
    public record Options(
            @Nullable EventLoops loops,
            Duration connectTimeout,
            Duration idleTimeout,
            int mostConnections,
            Clock clock,
            Trust trust) {
        /** Own event loops, ten seconds to connect, a minute idle, 256 connections to an address. */
        public static final Options DEFAULT =
                new Options(null, Duration.ofSeconds(10), Duration.ofMinutes(1), 256, Clock.system(), Trust.JVM);

        /** These options with shared event loops. */
        public Options withLoops(EventLoops shared) {
            return new Options(shared, connectTimeout, idleTimeout, mostConnections, clock, trust);
        }

        /** These options with other trusted certificates. */
        public Options withTrust(Trust others) {
            return new Options(loops, connectTimeout, idleTimeout, mostConnections, clock, others);
        }
    }
}
