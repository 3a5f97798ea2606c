// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.server;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.tensor.NettyBuffers;
import io.nereid.transport.EventLoops;
import io.nereid.transport.ServerContext;
import io.nereid.transport.ServerOptions;
import io.nereid.transport.TransportStats;
import io.nereid.transport.api.GrpcMethod;
import io.nereid.transport.api.HttpRoute;
import io.nereid.transport.api.ProtocolCodec;
import io.nereid.transport.api.VirtualHosts;
import io.nereid.transport.codec.BodyReceiveAllocator;
import io.nereid.transport.exchange.CompiledRoutes;
import io.nereid.transport.exchange.VirtualHostResolver;
import io.nereid.transport.http1.Http1Connection;
import io.nereid.transport.http2.Http2ServerConnection;
import io.nereid.transport.tls.TlsOptions;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.ServerChannel;
import io.netty.channel.WriteBufferWaterMark;
import io.netty.channel.epoll.EpollServerDomainSocketChannel;
import io.netty.channel.epoll.EpollServerSocketChannel;
import io.netty.channel.group.ChannelGroup;
import io.netty.channel.group.DefaultChannelGroup;
import io.netty.channel.socket.nio.NioServerDomainSocketChannel;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.channel.unix.DomainSocketAddress;
import io.netty.util.concurrent.GlobalEventExecutor;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.net.UnixDomainSocketAddress;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The listening server: HTTP/1.1, HTTP/2 and gRPC on every address, with TLS or without. The protocol of a connection
 * is detected from its first bytes. Life cycle: {@link #start()}; on shutdown {@link #announceDrain()}, {@link
 * #drain(Duration)} and {@link #close()}. Thread-safe: methods may be called on any thread but an event loop.
 *
 * <pre>{@code
 * ServerOptions options = ServerOptions.builder().listen("0.0.0.0", 8080).build();
 * Server server = new Server(options, List.of(codec));
 * List<InetSocketAddress> bound = server.start();
 * ...
 * server.announceDrain();
 * server.drain(Duration.ofSeconds(30));
 * server.close();
 * }</pre>
 */
public final class Server implements AutoCloseable, VirtualHosts.VirtualHostFactory {
    private static final Logger LOG = LoggerFactory.getLogger(Server.class);

    /** The time limit for requests in flight when a single listener is closed. */
    private static final ServerContext.Drain LISTENER_DRAIN = new ServerContext.Drain(600_000);

    private static final int METRICS_CONNECTIONS = 16;
    private static final long DRAIN_LOOK_MILLIS = 20;

    private final ServerOptions options;
    private final ServerContext context;
    private final List<HttpRoute> routes = new ArrayList<>();
    private final CompiledRoutes own;
    private final EventLoops loops;

    /** The executor for decompression and compression if none was given. */
    private final @Nullable ExecutorService ownCodec;

    @GuardedBy("this") private final List<Channel> listeners = new ArrayList<>();

    private final ConnectionLimit limit;

    /** The limit of the addresses for metrics, which stay reachable when clients hold all other connections. */
    private final ConnectionLimit metricsLimit = new ConnectionLimit(METRICS_CONNECTIONS);

    private final TlsContexts tls = new TlsContexts();
    private final ChannelGroup connections = new DefaultChannelGroup(GlobalEventExecutor.INSTANCE, true);

    /**
     * Creates a server that does not listen yet.
     *
     * @param codecs the protocols, whose routes and gRPC methods it serves
     * @throws ServingException FAILED_PRECONDITION when two codecs serve the same route or method, INVALID_ARGUMENT for
     *     a limit of connections that is negative or larger than the limit on file descriptors
     */
    public Server(ServerOptions options, List<ProtocolCodec> codecs) {
        this.options = options;
        Executor executor = options.codecExecutor();
        if (executor == null) {
            this.ownCodec =
                    Threads.pool("codec", Math.max(1, Runtime.getRuntime().availableProcessors() / 2));
            executor = ownCodec;
        } else {
            this.ownCodec = null;
        }
        this.context = new ServerContext(options, executor);
        this.limit = new ConnectionLimit(options.maxConnections());
        List<GrpcMethod> methods = new ArrayList<>();
        for (ProtocolCodec codec : codecs) {
            routes.addAll(codec.httpRoutes());
            methods.addAll(codec.grpcMethods());
        }
        EventLoops shared = options.loops();
        this.loops = shared != null ? shared : new EventLoops(options.eventLoops(), options.nativeTransport());
        this.own = new CompiledRoutes(context, loops, routes, methods, "");
        LOG.debug("{} routes, {} event loops, epoll {}", routes.size(), loops.count, loops.epoll);
    }

    /**
     * Starts to listen.
     *
     * @return the bound addresses in the order of the options, with the ports that were given for port 0
     * @throws ServingException FAILED_PRECONDITION when an address cannot be bound, or a certificate or its key cannot
     *     be used; the server is closed then
     */
    public synchronized List<InetSocketAddress> start() {
        List<InetSocketAddress> bound = new ArrayList<>();
        try {
            tls.start(options.listen());
        } catch (ServingException e) {
            close();
            throw e;
        }
        for (ServerOptions.Listen listen : options.listen()) {
            Path path = listen.path();
            ChannelFuture future = path == null
                    ? bootstrap(listen).bind(listen.host(), listen.port())
                    : bootstrap(listen).bind(socket(path));
            future.awaitUninterruptibly();
            Throwable cause = future.cause();
            if (cause != null) {
                close();
                throw ServingException.wrap(
                        ErrorCode.FAILED_PRECONDITION,
                        "cannot listen on " + listen.host() + (path == null ? ":" + listen.port() : "") + ": "
                                + reason(cause),
                        path == null
                                ? "stop the process that uses the port, or choose another one; port 0 takes any free"
                                        + " one"
                                : "choose a path of at most 107 characters in a directory that the server can write",
                        cause);
            }
            listeners.add(future.channel());
            if (path == null) {
                InetSocketAddress address = (InetSocketAddress) future.channel().localAddress();
                bound.add(address);
                noteAddress(address);
            } else {
                future.channel().closeFuture().addListener(f -> delete(path));
            }
        }
        return bound;
    }

    /** Whether every address that the server listens on is a loopback address or a Unix domain socket. */
    public boolean isLocal() {
        return context.local;
    }

    /** From the first address on that other machines can reach, no caller counts as a user of this machine. */
    private void noteAddress(InetSocketAddress address) {
        if (!address.getAddress().isLoopbackAddress()) {
            context.local = false;
        }
    }

    /** The address of a Unix domain socket; removes a socket that an earlier process has left there. */
    private SocketAddress socket(Path path) {
        delete(path);
        return loops.epoll ? new DomainSocketAddress(path.toString()) : UnixDomainSocketAddress.of(path);
    }

    private static void delete(Path path) {
        try {
            // Only a socket, which is neither file, directory nor link.
            if (Files.readAttributes(path, BasicFileAttributes.class, LinkOption.NOFOLLOW_LINKS)
                    .isOther()) {
                Files.delete(path);
            }
        } catch (IOException e) {
            LOG.debug("there was no stale socket at {}", path);
        }
    }

    private Class<? extends ServerChannel> channel(boolean path) {
        if (path) {
            return loops.epoll ? EpollServerDomainSocketChannel.class : NioServerDomainSocketChannel.class;
        }
        return loops.epoll ? EpollServerSocketChannel.class : NioServerSocketChannel.class;
    }

    private static String reason(Throwable cause) {
        if (cause instanceof java.net.BindException) {
            return "the port is in use or not allowed";
        }
        if (cause instanceof java.net.UnknownHostException
                || cause instanceof java.nio.channels.UnresolvedAddressException) {
            return "unknown host";
        }
        String message = cause.getMessage();
        return message == null ? cause.getClass().getSimpleName() : message;
    }

    private ServerBootstrap bootstrap(ServerOptions.Listen listen) {
        return bootstrap(listen, offered(listen), connections, false);
    }

    /** What an address serves: everything, or the metrics alone. */
    private VirtualHostResolver offered(ServerOptions.Listen listen) {
        if (listen.purpose() == ServerOptions.Purpose.ALL) {
            return new VirtualHostResolver(own, options.virtualHosts());
        }
        List<HttpRoute> metrics =
                routes.stream().filter(r -> r.template().equals("/metrics")).toList();
        return new VirtualHostResolver(new CompiledRoutes(context, loops, metrics, List.of(), ""), VirtualHosts.NONE);
    }

    private ServerBootstrap bootstrap(
            ServerOptions.Listen listen, VirtualHostResolver sites, ChannelGroup accepted, boolean plainText) {
        TlsOptions encryption = listen.tls();
        ServerBootstrap bootstrap = new ServerBootstrap();
        if (listen.path() == null) {
            bootstrap
                    .option(ChannelOption.SO_REUSEADDR, true)
                    .childOption(ChannelOption.TCP_NODELAY, true)
                    .childOption(ChannelOption.SO_KEEPALIVE, true);
        }
        return bootstrap
                .group(loops.group)
                .channel(channel(listen.path() != null))
                .option(ChannelOption.SO_BACKLOG, 1024)
                .childOption(ChannelOption.ALLOCATOR, NettyBuffers.allocator())
                .childOption(ChannelOption.WRITE_BUFFER_WATER_MARK, new WriteBufferWaterMark(512 << 10, 1 << 20))
                .handler(new AcceptHandler(
                        context, listen.purpose() == ServerOptions.Purpose.METRICS ? metricsLimit : limit))
                .childHandler(new ChannelInitializer<Channel>() {
                    @Override
                    protected void initChannel(Channel channel) {
                        accept(channel, sites, accepted, encryption, plainText);
                    }
                });
    }

    private void accept(
            Channel channel,
            VirtualHostResolver sites,
            ChannelGroup accepted,
            @Nullable TlsOptions encryption,
            boolean plainText) {
        context.stats.connectionOpened();
        channel.closeFuture().addListener(f -> context.stats.connectionClosed());
        connections.add(channel);
        accepted.add(channel);
        BodyReceiveAllocator reads = new BodyReceiveAllocator();
        ProtocolDetector plain = pipelineHead(context, channel, sites, reads);
        if (encryption == null) {
            channel.pipeline().addLast(plain);
        } else {
            reads.indirect();
            channel.pipeline().addLast(tls.detector(context, encryption, plain, plainText));
        }
    }

    /** The first handler of a connection, which detects its protocol. */
    public static ProtocolDetector pipelineHead(
            ServerContext context, Channel channel, VirtualHostResolver sites, BodyReceiveAllocator reads) {
        channel.config().setRecvByteBufAllocator(reads);
        return new ProtocolDetector(
                () -> new Http1Connection(context, sites, reads),
                () -> Http2ServerConnection.create(context, sites, reads),
                context);
    }

    @Override
    public VirtualHosts.VirtualHost virtualHost(
            List<HttpRoute> siteRoutes, List<GrpcMethod> siteMethods, String prefix) {
        return new CompiledRoutes(context, loops, siteRoutes, siteMethods, prefix);
    }

    /**
     * {@inheritDoc}
     *
     * <p>Must not be called on an event loop. When the listener is closed, its open connections finish their requests
     * in flight, for at most ten minutes.
     */
    @Override
    public synchronized VirtualHosts.Listener listen(String address, int port, VirtualHosts.VirtualHost site) {
        return listen(address, port, site, null);
    }

    /**
     * Adds an address that serves both TLS and plain text; a client that begins with a handshake gets TLS.
     *
     * @param encryption the certificate; null for plain text only
     */
    public synchronized VirtualHosts.Listener listen(
            String address, int port, VirtualHosts.VirtualHost site, @Nullable TlsOptions encryption) {
        if (!(site instanceof CompiledRoutes routed)) {
            throw ServingException.of(
                    ErrorCode.INTERNAL,
                    "the site " + site.getClass().getSimpleName() + " was not made by a server's site factory");
        }
        return open(address, port, new VirtualHostResolver(routed, VirtualHosts.NONE), encryption);
    }

    /**
     * {@inheritDoc}
     *
     * <p>Must not be called on an event loop.
     */
    @Override
    public synchronized VirtualHosts.Listener listen(String address, int port, VirtualHosts hosts) {
        return open(
                address,
                port,
                new VirtualHostResolver(new CompiledRoutes(context, loops, List.of(), List.of(), ""), hosts),
                null);
    }

    @GuardedBy("this") private VirtualHosts.Listener open(
            String address, int port, VirtualHostResolver sites, @Nullable TlsOptions encryption) {
        ChannelGroup accepted = new DefaultChannelGroup(GlobalEventExecutor.INSTANCE, true);
        ServerOptions.Listen listen = new ServerOptions.Listen(address, port, ServerOptions.Purpose.ALL, encryption);
        tls.start(List.of(listen));
        ChannelFuture future = bootstrap(listen, sites, accepted, true).bind(address, port);
        future.awaitUninterruptibly();
        Throwable cause = future.cause();
        if (cause != null) {
            throw ServingException.wrap(
                    ErrorCode.UNAVAILABLE,
                    "cannot listen on " + address + ":" + port + ": " + reason(cause),
                    "choose another port; 0 takes any free one",
                    cause);
        }
        listeners.add(future.channel());
        noteAddress((InetSocketAddress) future.channel().localAddress());
        return new AddedListener(future.channel(), accepted);
    }

    /** A listener that was added while the server runs. Thread-safe. */
    private final class AddedListener implements VirtualHosts.Listener {
        private final Channel channel;
        private final int port;
        private final ChannelGroup accepted;

        AddedListener(Channel channel, ChannelGroup accepted) {
            this.channel = channel;
            this.port = ((InetSocketAddress) channel.localAddress()).getPort();
            this.accepted = accepted;
        }

        @Override
        public int port() {
            return port;
        }

        @Override
        public void close() {
            channel.close().addListener(f -> accepted.forEach(c -> drain(c, LISTENER_DRAIN)));
            synchronized (Server.this) {
                listeners.remove(channel);
            }
        }
    }

    private static void drain(Channel connection, ServerContext.Drain drain) {
        connection.eventLoop().execute(() -> connection.pipeline().fireUserEventTriggered(drain));
    }

    /** The most connections that the server accepts. */
    public int maxConnections() {
        return limit.most;
    }

    /** The counters of connections and requests. */
    public TransportStats stats() {
        return context.stats;
    }

    /**
     * First step of a shutdown: everything is still served, health included, but HTTP/1.1 responses carry
     * {@code connection: close}, so that clients reconnect, through their load balancer, to servers that stay.
     */
    public void announceDrain() {
        context.draining = true;
    }

    /**
     * Second step of a shutdown: stops listening, sends GOAWAY to HTTP/2 clients, closes idle connections, and gives
     * the requests in flight up to {@code limit} to finish. Waits until all connections are closed or the time is over.
     *
     * @return whether every connection was closed in time
     */
    public boolean drain(Duration limit) {
        announceDrain();
        long due = context.nanos() + limit.toNanos();
        stopListening();
        connections.forEach(c -> drain(c, new ServerContext.Drain(limit.toMillis())));
        CountDownLatch gone = new CountDownLatch(1);
        connections.newCloseFuture().addListener(f -> gone.countDown());
        boolean done = false;
        try {
            done = gone.await(due - context.nanos(), TimeUnit.NANOSECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        return done;
    }

    /**
     * Both steps of a shutdown, with time between them in which everything is served as before: load balancers see in it that
     * the server is not ready, and the requests that they still send are served.
     *
     * @param open the longest time in which the ports stay open
     * @param needed whether they must stay open still
     * @param limit the longest time for all of it
     * @return whether every connection was closed in time
     */
    public boolean drain(Duration open, BooleanSupplier needed, Duration limit) {
        long start = context.nanos();
        announceDrain();
        long nanos = Math.min(open.toNanos(), limit.toNanos());
        CountDownLatch never = new CountDownLatch(1);
        try {
            while (needed.getAsBoolean() && context.nanos() - start < nanos) {
                boolean unused = never.await(DRAIN_LOOK_MILLIS, TimeUnit.MILLISECONDS);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        return drain(limit.minusNanos(context.nanos() - start));
    }

    private synchronized void stopListening() {
        for (Channel listener : listeners) {
            listener.close().awaitUninterruptibly();
        }
        listeners.clear();
    }

    /**
     * Closes every socket at once and ends the event loops. Handlers of exchanges in flight are notified of the
     * cancellation.
     */
    @Override
    public void close() {
        stopListening();
        for (Channel connection : connections) {
            // close at the head of the pipeline: passed through the HTTP/2 handler, it would wait for open streams
            ChannelHandlerContext first = connection.pipeline().firstContext();
            if (first == null) {
                connection.close();
            } else {
                first.close();
            }
        }
        connections.newCloseFuture().awaitUninterruptibly(2, TimeUnit.SECONDS);
        if (options.loops() == null) {
            loops.close();
        }
        tls.close();
        if (ownCodec != null) {
            ownCodec.shutdown();
        }
    }
}
