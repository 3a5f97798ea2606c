// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.tensor.MemoryRegion;
import io.nereid.transport.api.GrpcCall;
import io.nereid.transport.api.GrpcMethod;
import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.UpstreamClient;
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
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.RejectedExecutionException;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Sends requests on to other servers over connections that are kept: HTTP/1.1 for exchanges, HTTP/2 without TLS for
 * gRPC calls. Thread-safe; what it tells its callers it tells on event loops.
 */
public final class Relay implements UpstreamClient {
    private static final Logger LOG = LoggerFactory.getLogger(Relay.class);
    private static final AsciiString TRAILERS = AsciiString.cached("trailers");
    private static final int RESOLVERS = 4;

    private final Options options;
    private final EventLoops loops;
    private final ExecutorService resolver = Threads.pool("nereid-resolve", RESOLVERS);
    private final Map<EventExecutor, LoopClient> clients = new HashMap<>();

    /** A relay with threads of its own, or those of the options. */
    public Relay(Options options) {
        this.options = options;
        EventLoops shared = options.loops();
        this.loops = shared != null ? shared : new EventLoops(0, true);
        ClientTls tls = new ClientTls(options.trust());
        for (EventExecutor loop : loops.group) {
            clients.put(loop, new LoopClient((EventLoop) loop, loops.epoll, loops.count, options, resolver, tls));
        }
    }

    /** The connections of a loop; of any one where the loop is null or not the relay's. */
    private LoopClient client(@Nullable EventLoop loop) {
        LoopClient own = loop == null ? null : clients.get(loop);
        return own != null ? own : Objects.requireNonNull(clients.get(loops.group.next()));
    }

    private static void run(LoopClient client, Runnable action) {
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

    private static LoopClient.Key key(Address address) {
        return new LoopClient.Key(bare(address.host()), address.port(), false);
    }

    @Override
    public void forward(HttpExchange exchange, Address address, String path, Terms terms) {
        Exchange known = exchange.origin() instanceof Exchange e ? e : null;
        LoopClient client = client(known == null ? null : known.loop());
        HttpHeaders headers = requestHeaders(exchange, known, address);
        for (Header added : terms.added()) {
            headers.remove(added.name());
        }
        terms.added().forEach(h -> headers.add(h.name().toLowerCase(Locale.ROOT), Http1Reply.clean(h.value())));
        MemoryRegion body = exchange.body();
        ForwardedExchange outgoing = new ForwardedExchange(
                client,
                key(address),
                exchange,
                target(path),
                headers,
                body.size() == 0 ? Unpooled.EMPTY_BUFFER : body.toByteBuf(0, body.size()),
                terms.timeout());
        exchange.onCancel(() ->
                run(client, () -> outgoing.left(ServingException.of(ErrorCode.CANCELLED, "the client has gone"))));
        try {
            run(client, outgoing::start);
        } catch (RejectedExecutionException e) {
            exchange.fail(ServingException.of(ErrorCode.UNAVAILABLE, "the server is stopping"));
        }
    }

    private static HttpHeaders requestHeaders(HttpExchange exchange, @Nullable Exchange known, Address address) {
        Hops hops = new Hops();
        HttpHeaders headers = Outgoing.newHeaders();
        exchange.headers((name, value) -> {
            if (name.equals("connection")) {
                hops.connection(value);
            }
        });
        exchange.headers((name, value) -> {
            // the body was inflated on its way in, and its length is set anew
            if (!hops.drops(name)
                    && !name.equals("content-length")
                    && !name.equals("content-encoding")
                    && !name.equals("expect")) {
                headers.add(name, value);
            }
        });
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

    /** A target that cannot end the request line before its time. */
    private static String target(String path) {
        for (int i = 0; i < path.length(); i++) {
            if (path.charAt(i) <= ' ' || path.charAt(i) >= 127) {
                throw ServingException.invalidArgument(
                        "'" + Http1Reply.clean(path) + "' is no target of a request",
                        "escape it with % and two hex digits");
            }
        }
        return path.startsWith("/") ? path : "/" + path;
    }

    @Override
    public GrpcMethod.GrpcListener forward(GrpcCall call, Address address, Terms terms) {
        GrpcServerCall known = call.origin() instanceof GrpcServerCall c ? c : null;
        EventLoop caller = known == null ? null : known.loop();
        LoopClient client = client(caller);
        Http2Headers headers = new DefaultHttp2Headers(false, 16);
        headers.method("POST").scheme("http").path(call.path());
        if (known != null) {
            for (Map.Entry<CharSequence, CharSequence> header : known.headers()) {
                metadata(headers, header.getKey().toString(), header.getValue());
            }
            headers.authority(known.headers().authority());
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
        for (Header added : terms.added()) {
            headers.remove(added.name().toLowerCase(Locale.ROOT));
        }
        terms.added().forEach(h -> headers.add(h.name().toLowerCase(Locale.ROOT), Http1Reply.clean(h.value())));
        long deadline = call.deadlineNanos();
        if (!terms.timeout().isZero()) {
            long own = options.clock().nanos() + terms.timeout().toNanos();
            deadline = deadline == Long.MAX_VALUE || own - deadline < 0 ? own : deadline;
        }
        GrpcForward forward = new GrpcForward(
                client, key(address), call, caller, headers, deadline, terms.timeout(), terms.mostBytes());
        run(client, forward::start);
        return forward;
    }

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
    public CompletionStage<Answer> send(String method, String url, List<Header> headers, byte[] body, Terms terms) {
        URI uri;
        try {
            uri = new URI(url);
        } catch (URISyntaxException e) {
            return CompletableFuture.failedFuture(ServingException.invalidArgument("'" + url + "' is no URL"));
        }
        boolean tls = "https".equalsIgnoreCase(uri.getScheme());
        String host = uri.getHost();
        if (host == null || !tls && !"http".equalsIgnoreCase(uri.getScheme())) {
            return CompletableFuture.failedFuture(ServingException.invalidArgument(
                    "'" + url + "' is no URL that can be asked", "write http://host:port/path or https://host/path"));
        }
        int port = uri.getPort() > 0 ? uri.getPort() : tls ? 443 : 80;
        String path = uri.getRawPath() == null || uri.getRawPath().isEmpty() ? "/" : uri.getRawPath();
        HttpHeaders all = Outgoing.newHeaders();
        headers.forEach(h -> all.add(h.name().toLowerCase(Locale.ROOT), Http1Reply.clean(h.value())));
        terms.added().forEach(h -> all.remove(h.name()));
        terms.added().forEach(h -> all.add(h.name().toLowerCase(Locale.ROOT), Http1Reply.clean(h.value())));
        all.remove("content-length");
        all.remove("transfer-encoding");
        if (!all.contains("host")) {
            all.set("host", uri.getPort() > 0 ? host + ":" + port : host);
        }
        LoopClient client = client(null);
        GatheredAnswer outgoing;
        try {
            outgoing = new GatheredAnswer(
                    client,
                    new LoopClient.Key(bare(host), port, tls),
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

    /** Closes every connection; requests under way fail as UNAVAILABLE. Not to be called on an event loop. */
    @Override
    public void close() {
        for (LoopClient client : clients.values()) {
            try {
                client.loop.submit(client::close).awaitUninterruptibly();
            } catch (RejectedExecutionException e) {
                LOG.debug("the loop has ended, and with it its connections", e);
            }
        }
        resolver.shutdown();
        if (options.loops() == null) {
            loops.close();
        }
    }

    /**
     * Whom connections with TLS trust. Immutable.
     *
     * @param certificates of authorities; empty for those that the JVM trusts
     * @param anybody whether nothing is checked
     */
    public record Trust(List<X509Certificate> certificates, boolean anybody) {
        /** The authorities that the JVM trusts. */
        public static final Trust JVM = new Trust(List.of(), false);

        /** Whoever answers. */
        public static final Trust ANYBODY = new Trust(List.of(), true);

        /** Keeps a copy. */
        public Trust {
            certificates = List.copyOf(certificates);
        }

        /**
         * The authorities of PEM text.
         *
         * @param where what the text is called in errors
         * @throws ServingException FAILED_PRECONDITION for a text without certificates
         */
        public static Trust of(String where, String pem) {
            return new Trust(new PemFile(where, pem.getBytes(StandardCharsets.ISO_8859_1)).certificates(), false);
        }
    }

    /**
     * How a relay works. Immutable.
     *
     * @param loops the threads that read and write sockets, best those of the server; closed by whoever made them. Null
     *     for threads of the relay's own
     * @param connectTimeout most time until a connection stands
     * @param idleTimeout how long a connection that nobody uses is kept
     * @param mostConnections HTTP/1.1 connections to one address; further requests wait in line, within their own
     *     timeout
     * @param clock the server's clock, by which deadlines of calls are told
     * @param trust whom https trusts
     */
    public record Options(
            @Nullable EventLoops loops,
            Duration connectTimeout,
            Duration idleTimeout,
            int mostConnections,
            Clock clock,
            Trust trust) {
        /** Threads of its own, ten seconds to connect, a minute idle, 256 connections to an address. */
        public static final Options DEFAULT =
                new Options(null, Duration.ofSeconds(10), Duration.ofMinutes(1), 256, Clock.system(), Trust.JVM);

        /** As these, with threads that others use as well. */
        public Options withLoops(EventLoops shared) {
            return new Options(shared, connectTimeout, idleTimeout, mostConnections, clock, trust);
        }

        /** As these, with others to trust. */
        public Options withTrust(Trust others) {
            return new Options(loops, connectTimeout, idleTimeout, mostConnections, clock, others);
        }
    }
}
