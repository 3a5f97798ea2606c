// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.tensor.MemoryRegion;
import io.nereid.transport.api.GrpcMethod;
import io.nereid.transport.api.HttpRoute;
import io.nereid.transport.api.ProtocolCodec;
import io.nereid.transport.api.VirtualHosts;
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
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The server's sockets: HTTP/1.1, HTTP/2 and gRPC, with TLS or without, told apart by the first bytes of a connection,
 * on every address it listens on. Its life is {@link #start()}, at last {@link #announceDrain()} and {@link
 * #drain(Duration)}, then {@link #close()}. Thread-safe: its methods may be called from any thread but an event loop.
 */
public final class Server implements AutoCloseable, VirtualHosts.SiteFactory {
    private static final Logger LOG = LoggerFactory.getLogger(Server.class);

    /** How long requests that came by a port that has been closed may take. */
    private static final ServerContext.Drain DOOR_DRAIN = new ServerContext.Drain(600_000);

    private final ServerOptions options;
    private final ServerContext context;
    private final List<HttpRoute> routes = new ArrayList<>();
    private final RouteSite own;
    private final EventLoops loops;
    private final List<Channel> listeners = new ArrayList<>();
    private final TlsService tls = new TlsService();
    private final ChannelGroup connections = new DefaultChannelGroup(GlobalEventExecutor.INSTANCE, true);

    /**
     * A server that does not listen yet.
     *
     * @param codecs whose routes and methods it serves
     * @throws ServingException FAILED_PRECONDITION when two codecs serve the same route or method
     */
    public Server(ServerOptions options, List<ProtocolCodec> codecs) {
        this.options = options;
        this.context = new ServerContext(options);
        List<GrpcMethod> methods = new ArrayList<>();
        for (ProtocolCodec codec : codecs) {
            routes.addAll(codec.httpRoutes());
            methods.addAll(codec.grpcMethods());
        }
        EventLoops shared = options.loops();
        this.loops = shared != null ? shared : new EventLoops(options.eventLoops(), options.nativeTransport());
        this.own = new RouteSite(context, loops, routes, methods, "");
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
                bound.add((InetSocketAddress) future.channel().localAddress());
            } else {
                future.channel().closeFuture().addListener(f -> delete(path));
            }
        }
        return bound;
    }

    /** Where a socket in the file system is bound; what an ended server left there is removed. */
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
            LOG.debug("no socket to remove at {}", path);
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
        return bootstrap(listen, offered(listen), connections);
    }

    private Sites offered(ServerOptions.Listen listen) {
        if (listen.purpose() == ServerOptions.Purpose.ALL) {
            return new Sites(own, options.virtualHosts());
        }
        List<HttpRoute> metrics =
                routes.stream().filter(r -> r.template().equals("/metrics")).toList();
        return new Sites(new RouteSite(context, loops, metrics, List.of(), ""), VirtualHosts.NONE);
    }

    private ServerBootstrap bootstrap(ServerOptions.Listen listen, Sites sites, ChannelGroup accepted) {
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
                .childOption(ChannelOption.ALLOCATOR, MemoryRegion.allocator())
                .childOption(ChannelOption.WRITE_BUFFER_WATER_MARK, new WriteBufferWaterMark(512 << 10, 1 << 20))
                .childHandler(new ChannelInitializer<Channel>() {
                    @Override
                    protected void initChannel(Channel channel) {
                        accept(channel, sites, accepted, encryption);
                    }
                });
    }

    private void accept(Channel channel, Sites sites, ChannelGroup accepted, @Nullable TlsOptions encryption) {
        context.stats.connectionOpened();
        channel.closeFuture().addListener(f -> context.stats.connectionClosed());
        connections.add(channel);
        accepted.add(channel);
        ReadAllocator reads = new ReadAllocator();
        ProtocolDetector plain = pipelineHead(context, channel, sites, reads);
        if (encryption == null) {
            channel.pipeline().addLast(plain);
        } else {
            reads.indirect();
            channel.pipeline().addLast(tls.detector(context, encryption, plain));
        }
    }

    /** The first handler of a connection, which finds out its protocol. */
    static ProtocolDetector pipelineHead(ServerContext context, Channel channel, Sites sites, ReadAllocator reads) {
        channel.config().setRecvByteBufAllocator(reads);
        return new ProtocolDetector(
                () -> new Http1Connection(context, sites, reads),
                () -> H2Connection.create(context, sites, reads),
                context);
    }

    @Override
    public VirtualHosts.Site site(List<HttpRoute> siteRoutes, List<GrpcMethod> siteMethods, String prefix) {
        return new RouteSite(context, loops, siteRoutes, siteMethods, prefix);
    }

    /**
     * {@inheritDoc}
     *
     * <p>Not to be called on an event loop. Connections that were open when the listener is closed end after the
     * answers that they wait for, at the latest after ten minutes.
     */
    @Override
    public synchronized VirtualHosts.Listener listen(String address, int port, VirtualHosts.Site site) {
        if (!(site instanceof RouteSite routed)) {
            throw ServingException.of(
                    ErrorCode.INTERNAL,
                    "the site " + site.getClass().getSimpleName() + " was not made by a server's site factory");
        }
        return open(address, port, new Sites(routed, VirtualHosts.NONE));
    }

    /**
     * {@inheritDoc}
     *
     * <p>Not to be called on an event loop.
     */
    @Override
    public synchronized VirtualHosts.Listener listen(String address, int port, VirtualHosts hosts) {
        return open(address, port, new Sites(new RouteSite(context, loops, List.of(), List.of(), ""), hosts));
    }

    private VirtualHosts.Listener open(String address, int port, Sites sites) {
        ChannelGroup accepted = new DefaultChannelGroup(GlobalEventExecutor.INSTANCE, true);
        ServerOptions.Listen listen = new ServerOptions.Listen(address, port, ServerOptions.Purpose.ALL);
        ChannelFuture future = bootstrap(listen, sites, accepted).bind(address, port);
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
        return new Door(future.channel(), accepted);
    }

    /** A port of one site. Thread-safe. */
    private final class Door implements VirtualHosts.Listener {
        private final Channel channel;
        private final int port;
        private final ChannelGroup accepted;

        Door(Channel channel, ChannelGroup accepted) {
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
            channel.close().addListener(f -> accepted.forEach(c -> tell(c, DOOR_DRAIN)));
            synchronized (Server.this) {
                listeners.remove(channel);
            }
        }
    }

    private static void tell(Channel connection, ServerContext.Drain drain) {
        connection.eventLoop().execute(() -> connection.pipeline().fireUserEventTriggered(drain));
    }

    /** What has happened so far. */
    public TransportStats stats() {
        return context.stats;
    }

    /**
     * First step of stopping: everything is still served, health included, but HTTP/1.1 clients are told with each
     * answer to connect anew, and so get to servers that stay.
     */
    public void announceDrain() {
        context.draining = true;
    }

    /**
     * Second step of stopping: no new connections; HTTP/2 clients are sent GOAWAY, idle connections are closed, and
     * what is in flight gets up to {@code limit} to finish. Waits until all connections are gone or the time is up.
     *
     * @return whether every connection came to its end in time
     */
    public boolean drain(Duration limit) {
        announceDrain();
        long due = context.nanos() + limit.toNanos();
        stopListening();
        connections.forEach(c -> tell(c, new ServerContext.Drain(limit.toMillis())));
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

    private synchronized void stopListening() {
        for (Channel listener : listeners) {
            listener.close().awaitUninterruptibly();
        }
        listeners.clear();
    }

    /**
     * Closes every socket at once and ends the event loops. Handlers of exchanges in flight hear of the cancellation.
     */
    @Override
    public void close() {
        stopListening();
        for (Channel connection : connections) {
            // from the first handler, past those that would let their streams finish
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
    }
}
