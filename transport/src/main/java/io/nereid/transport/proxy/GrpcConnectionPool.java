// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.proxy;

import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelInitializer;
import io.netty.handler.codec.http2.Http2FrameCodec;
import io.netty.handler.codec.http2.Http2FrameCodecBuilder;
import io.netty.handler.codec.http2.Http2GoAwayFrame;
import io.netty.handler.codec.http2.Http2MultiplexHandler;
import io.netty.handler.codec.http2.Http2Settings;
import io.netty.handler.codec.http2.Http2SettingsFrame;
import io.netty.util.ReferenceCountUtil;
import io.netty.util.concurrent.ScheduledFuture;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * The HTTP/2 connections of one event loop to one address. Calls share one connection; another one is opened when all
 * have as many streams as the upstream server allows. Confined to the event loop.
 */
final class GrpcConnectionPool {
    private static final int STREAM_WINDOW = 4 << 20;
    private static final int FRAME_SIZE = 1 << 20;
    private static final int MOST_STREAMS = 1000;

    private final EventLoopHttpClient client;
    final EventLoopHttpClient.Key key;
    private final List<Connection> connections = new ArrayList<>();
    private final ArrayDeque<GrpcProxyCall> waiting = new ArrayDeque<>();
    private boolean connecting;

    GrpcConnectionPool(EventLoopHttpClient client, EventLoopHttpClient.Key key) {
        this.client = client;
        this.key = key;
    }

    /** Opens a stream for the call as soon as a connection has capacity. */
    void start(GrpcProxyCall call) {
        for (Connection connection : connections) {
            if (connection.hasCapacity()) {
                connection.open(call);
                return;
            }
        }
        waiting.add(call);
        connectOne();
    }

    /** Removes a call from the queue for a connection. */
    void forget(GrpcProxyCall call) {
        waiting.remove(call);
    }

    private void connectOne() {
        if (connecting) {
            return;
        }
        connecting = true;
        Connection[] made = new Connection[1];
        client.connect(key, true, channel -> made[0] = new Connection(channel), (channel, reason) -> {
            if (channel != null) {
                return; // the connection is ready once the server's SETTINGS have arrived
            }
            connecting = false;
            failed("cannot connect to " + key + ": " + reason);
        });
    }

    private void failed(String reason) {
        for (GrpcProxyCall call : waiting.toArray(new GrpcProxyCall[0])) {
            waiting.remove(call);
            call.unconnected(reason);
        }
        if (connections.isEmpty()) {
            client.idle(this);
        }
    }

    private void serve(Connection connection) {
        while (!waiting.isEmpty() && connection.hasCapacity()) {
            connection.open(waiting.remove());
        }
        if (!waiting.isEmpty()) {
            connectOne();
        }
    }

    /** One connection. Confined to the event loop. */
    final class Connection extends ChannelInboundHandlerAdapter {
        private final Channel channel;
        private @Nullable ScheduledFuture<?> idle;
        private long most = MOST_STREAMS;
        private int streams;
        private boolean ready;
        private boolean leaving;

        Connection(Channel channel) {
            this.channel = channel;
            Http2FrameCodec codec = Http2FrameCodecBuilder.forClient()
                    .initialSettings(Http2Settings.defaultSettings()
                            .pushEnabled(false)
                            .initialWindowSize(STREAM_WINDOW)
                            .maxFrameSize(FRAME_SIZE)
                            .maxHeaderListSize(64 << 10))
                    .gracefulShutdownTimeoutMillis(0)
                    .build();
            channel.pipeline()
                    .addLast(codec, new Http2MultiplexHandler(new ChannelInitializer<Channel>() {
                        @Override
                        protected void initChannel(Channel pushed) {
                            pushed.close();
                        }
                    }))
                    .addLast(this);
            ScheduledFuture<?> late = client.loop.schedule(
                    () -> {
                        if (!ready) {
                            channel.close();
                        }
                    },
                    client.options().connectTimeout().toNanos(),
                    TimeUnit.NANOSECONDS);
            channel.closeFuture().addListener(f -> late.cancel(false));
        }

        /** Whether another stream may be opened. */
        boolean hasCapacity() {
            return ready && !leaving && streams < most && channel.isActive();
        }

        void open(GrpcProxyCall call) {
            streams++;
            if (idle != null) {
                idle.cancel(false);
                idle = null;
            }
            call.open(channel, this);
        }

        /** Called when a stream has ended. */
        void ended() {
            streams--;
            if (leaving && streams == 0) {
                channel.close();
            } else if (!waiting.isEmpty() && hasCapacity()) {
                serve(this);
            } else if (streams == 0) {
                idle = client.loop.schedule(
                        () -> channel.close(), client.options().idleTimeout().toNanos(), TimeUnit.NANOSECONDS);
            }
        }

        /** Opens no further streams, and closes the connection after the last one: the server has sent GOAWAY. */
        void leave() {
            leaving = true;
            if (streams == 0) {
                channel.close();
            }
        }

        @Override
        public void channelRead(ChannelHandlerContext ctx, Object message) {
            try {
                if (message instanceof Http2SettingsFrame settings) {
                    Long streamsAllowed = settings.settings().maxConcurrentStreams();
                    if (streamsAllowed != null) {
                        most = Math.min(streamsAllowed, MOST_STREAMS);
                    }
                    if (!ready) {
                        ready = true;
                        connecting = false;
                        connections.add(this);
                        serve(this);
                    }
                } else if (message instanceof Http2GoAwayFrame) {
                    leave();
                }
            } finally {
                ReferenceCountUtil.release(message);
            }
        }

        @Override
        public void channelInactive(ChannelHandlerContext ctx) {
            connections.remove(this);
            if (idle != null) {
                idle.cancel(false);
            }
            if (!ready) {
                connecting = false;
                failed("the connection to " + key + " was lost before the HTTP/2 handshake");
            } else if (!waiting.isEmpty()) {
                connectOne();
            } else if (connections.isEmpty() && !connecting) {
                client.idle(GrpcConnectionPool.this);
            }
        }

        @Override
        public void exceptionCaught(ChannelHandlerContext ctx, Throwable cause) {
            ctx.close();
        }
    }
}
