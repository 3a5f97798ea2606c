// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport;

import io.nereid.base.Threads;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.epoll.Epoll;
import io.netty.channel.epoll.EpollIoHandler;
import io.netty.channel.nio.NioIoHandler;
import java.util.concurrent.TimeUnit;

/**
 * The threads that read and write sockets, to be shared by a {@link Server} and a {@link Relay}: a request that is sent on
 * then changes no thread. Whoever makes them closes them, after all that use them. Thread-safe.
 */
public final class EventLoops implements AutoCloseable {
    final EventLoopGroup group;
    final boolean epoll;
    final int count;

    /**
     * Starts no thread before it is needed.
     *
     * @param count threads; 0 for a quarter of the cores, at least one
     * @param nativeTransport whether epoll is used where it is to be had
     */
    public EventLoops(int count, boolean nativeTransport) {
        this.epoll = nativeTransport && Epoll.isAvailable();
        this.count = count > 0 ? count : Math.max(1, Runtime.getRuntime().availableProcessors() / 4);
        this.group = new MultiThreadIoEventLoopGroup(
                this.count,
                Threads.named("nereid-io"),
                epoll ? EpollIoHandler.newFactory() : NioIoHandler.newFactory());
    }

    /** Ends the threads. Not to be called on one of them. */
    @Override
    public void close() {
        group.shutdownGracefully(0, 2, TimeUnit.SECONDS).awaitUninterruptibly();
    }
}
