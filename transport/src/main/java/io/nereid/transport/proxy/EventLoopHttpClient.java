// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.proxy;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.tensor.NettyBuffers;
import io.netty.bootstrap.Bootstrap;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.EventLoop;
import io.netty.channel.epoll.EpollSocketChannel;
import io.netty.channel.socket.nio.NioSocketChannel;
import io.netty.handler.codec.http.HttpClientCodec;
import io.netty.handler.codec.http.HttpDecoderConfig;
import io.netty.util.NetUtil;
import java.net.ConnectException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.UnknownHostException;
import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.RejectedExecutionException;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import javax.net.ssl.SSLException;
import org.jspecify.annotations.Nullable;

/**
 * The client side of one event loop: its connection pools to upstream servers, HTTP/1.1 and HTTP/2 apart. Confined to
 * the event loop, but for final fields.
 */
final class EventLoopHttpClient {
    private static final int MAX_LINE = 16 << 10;
    private static final int MAX_HEADERS = 256 << 10;
    private static final int MAX_PIECE = 256 << 10;

    final EventLoop loop;
    private final boolean epoll;
    private final PooledUpstreamClient.Options options;
    private final int most;
    private final ExecutorService resolver;
    private final UpstreamTls tls;
    private final Map<Key, Pool> pools = new HashMap<>();
    private final Map<Key, GrpcConnectionPool> calls = new HashMap<>();
    private final Set<Channel> channels = new HashSet<>();
    private boolean closed;

    /** The key of a pool: address, and whether to use TLS. Immutable. */
    record Key(String host, int port, boolean tls) {
        @Override
        public String toString() {
            return host + ":" + port;
        }
    }

    EventLoopHttpClient(
            EventLoop loop,
            boolean epoll,
            int loops,
            PooledUpstreamClient.Options options,
            ExecutorService resolver,
            UpstreamTls tls) {
        this.tls = tls;
        this.loop = loop;
        this.epoll = epoll;
        this.options = options;
        this.most = Math.max(1, options.mostConnections() / loops);
        this.resolver = resolver;
    }

    PooledUpstreamClient.Options options() {
        return options;
    }

    /** Sends a request as soon as a connection is available; on a new connection if {@code fresh}, as for a retry. */
    void start(UpstreamRequest request, boolean fresh) {
        if (closed) {
            request.fail(ServingException.of(ErrorCode.UNAVAILABLE, "the server is stopping"));
            return;
        }
        pools.computeIfAbsent(request.key, Pool::new).start(request, fresh);
    }

    /** Removes a request from the queue for a connection. */
    void forget(UpstreamRequest request) {
        Pool pool = pools.get(request.key);
        if (pool != null) {
            pool.waiting.remove(request);
        }
    }

    /** The HTTP/2 connections to an address. */
    GrpcConnectionPool calls(Key key) {
        return calls.computeIfAbsent(key, k -> new GrpcConnectionPool(this, k));
    }

    void idle(GrpcConnectionPool unused) {
        calls.remove(unused.key, unused);
    }

    /** Closes every connection. */
    void close() {
        closed = true;
        for (Channel channel : Set.copyOf(channels)) {
            channel.close();
        }
        for (Pool pool : Set.copyOf(pools.values())) {
            for (UpstreamRequest request : pool.waiting.toArray(new UpstreamRequest[0])) {
                request.fail(ServingException.of(ErrorCode.UNAVAILABLE, "the server is stopping"));
            }
        }
    }

    boolean closed() {
        return closed;
    }

    /**
     * Connects; then calls {@code then} with the channel, or with null and the reason of the failure.
     *
     * @param http2 whether the connection is for HTTP/2, which TLS negotiates
     */
    void connect(Key key, boolean http2, Consumer<Channel> init, BiConsumer<@Nullable Channel, String> then) {
        byte[] literal = NetUtil.createByteArrayFromIpAddressString(key.host());
        if (literal != null) {
            try {
                connect(
                        new InetSocketAddress(InetAddress.getByAddress(key.host(), literal), key.port()),
                        key,
                        http2,
                        init,
                        then);
            } catch (UnknownHostException e) {
                then.accept(null, "unknown host");
            }
            return;
        }
        try {
            resolver.execute(() -> {
                InetSocketAddress found = new InetSocketAddress(key.host(), key.port());
                loop.execute(() -> connect(found, key, http2, init, then));
            });
        } catch (RejectedExecutionException e) {
            then.accept(null, "the server is stopping");
        }
    }

    private void connect(
            InetSocketAddress to,
            Key key,
            boolean http2,
            Consumer<Channel> init,
            BiConsumer<@Nullable Channel, String> then) {
        if (to.isUnresolved()) {
            then.accept(null, "unknown host");
            return;
        }
        if (closed) {
            then.accept(null, "the server is stopping");
            return;
        }
        ChannelFuture connecting = new Bootstrap()
                .group(loop)
                .channel(epoll ? EpollSocketChannel.class : NioSocketChannel.class)
                .option(ChannelOption.TCP_NODELAY, true)
                .option(ChannelOption.SO_KEEPALIVE, true)
                .option(ChannelOption.ALLOCATOR, NettyBuffers.allocator())
                .option(
                        ChannelOption.CONNECT_TIMEOUT_MILLIS,
                        Math.toIntExact(options.connectTimeout().toMillis()))
                .handler(new ChannelInitializer<Channel>() {
                    @Override
                    protected void initChannel(Channel channel) throws SSLException {
                        channels.add(channel);
                        channel.closeFuture().addListener(f -> channels.remove(channel));
                        if (key.tls()) {
                            channel.pipeline().addLast(tls.handler(channel.alloc(), key.host(), key.port(), http2));
                        }
                        init.accept(channel);
                    }
                })
                .connect(to);
        connecting.addListener(f -> {
            if (f.isSuccess()) {
                then.accept(connecting.channel(), "");
            } else {
                String text = f.cause().getMessage();
                then.accept(null, text == null ? f.cause().getClass().getSimpleName() : text);
            }
        });
    }

    /** The HTTP/1.1 connections to one address, and the requests that wait for one. Confined to the event loop. */
    final class Pool {
        private final Key key;
        private final ArrayDeque<UpstreamConnection> idle = new ArrayDeque<>();
        private final ArrayDeque<UpstreamRequest> waiting = new ArrayDeque<>();
        private int open;
        private int connecting;

        Pool(Key key) {
            this.key = key;
        }

        void start(UpstreamRequest request, boolean fresh) {
            UpstreamConnection ready = fresh ? null : idle.pollFirst();
            while (ready != null && !ready.channel.isActive()) {
                ready = idle.pollFirst();
            }
            if (ready != null) {
                ready.send(request);
                return;
            }
            waiting.add(request);
            if (open >= most) {
                UpstreamConnection oldest = idle.pollLast();
                if (oldest != null) {
                    oldest.channel.close(); // frees a place for the new one
                }
                return;
            }
            connectOne();
        }

        private void connectOne() {
            open++;
            connecting++;
            UpstreamConnection[] made = new UpstreamConnection[1];
            connect(
                    key,
                    false,
                    channel -> {
                        made[0] = new UpstreamConnection(this, channel);
                        HttpDecoderConfig config = new HttpDecoderConfig()
                                .setMaxInitialLineLength(MAX_LINE)
                                .setMaxHeaderSize(MAX_HEADERS)
                                .setMaxChunkSize(MAX_PIECE)
                                .setChunkedSupported(true);
                        channel.pipeline().addLast(new HttpClientCodec(config, false, false), made[0]);
                    },
                    (channel, reason) -> {
                        connecting--;
                        if (channel == null) {
                            // the channel was never active, so channelInactive does not report it
                            closed();
                            UpstreamRequest first = waiting.poll();
                            if (first != null) {
                                first.fail(ServingException.wrap(
                                        ErrorCode.UNAVAILABLE,
                                        "cannot connect to " + key + ": " + reason,
                                        "check that the server runs and listens there",
                                        new ConnectException(reason)));
                            }
                            more();
                        } else {
                            release(made[0]);
                        }
                    });
        }

        /** Gives a free connection to the next waiting request, or keeps it in the pool. */
        void release(UpstreamConnection connection) {
            if (!connection.channel.isActive()) {
                return;
            }
            UpstreamRequest next = waiting.poll();
            if (next != null) {
                connection.send(next);
            } else if (closed) {
                connection.channel.close();
            } else {
                idle.addFirst(connection);
                connection.rest(options.idleTimeout().toNanos());
            }
        }

        void closed(UpstreamConnection connection) {
            idle.remove(connection);
            closed();
            more();
        }

        private void closed() {
            open--;
            if (open == 0 && waiting.isEmpty()) {
                pools.remove(key, this);
            }
        }

        /** Opens another connection if more requests wait than connections are being opened. */
        private void more() {
            if (waiting.size() > connecting && open < most && !closed) {
                pools.putIfAbsent(key, this);
                connectOne();
            }
        }
    }
}
