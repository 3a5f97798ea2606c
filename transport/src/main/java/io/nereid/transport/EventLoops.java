// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport;

import io.nereid.base.Threads;
import io.nereid.transport.proxy.PooledUpstreamClient;
import io.nereid.transport.server.Server;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.epoll.Epoll;
import io.netty.channel.epoll.EpollIoHandler;
import io.netty.channel.nio.NioIoHandler;
import java.util.concurrent.TimeUnit;

/**
 * The event-loop threads that read and write sockets. Sharing them between a {@link Server} and a {@link
 * PooledUpstreamClient} lets a proxied request stay on one thread. The creator closes them, after the server and the
 * client that use them. Thread-safe.
 */
public final class EventLoops implements AutoCloseable {
    public final EventLoopGroup group;
    public final boolean epoll;
    public final int count;

    /**
     * Creates the group; a thread starts when it is first needed.
     *
     * @param count threads; 0 for a quarter of the cores, at least one
     * @param nativeTransport whether to use epoll where it is available
     */
    public EventLoops(int count, boolean nativeTransport) {
        this.epoll = nativeTransport && Epoll.isAvailable();
        this.count = count > 0 ? count : Math.max(1, Runtime.getRuntime().availableProcessors() / 4);
        this.group = new MultiThreadIoEventLoopGroup(
                this.count,
                Threads.named("nereid-io"),
                epoll ? EpollIoHandler.newFactory() : NioIoHandler.newFactory());
    }

    /** Ends the threads. Must not be called on one of them. */
    @Override
    public void close() {
        group.shutdownGracefully(0, 2, TimeUnit.SECONDS).awaitUninterruptibly();
    }
}
