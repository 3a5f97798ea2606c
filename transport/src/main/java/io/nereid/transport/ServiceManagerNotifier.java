// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport;

import io.nereid.base.Threads;
import io.netty.bootstrap.Bootstrap;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.channel.epoll.Epoll;
import io.netty.channel.epoll.EpollDomainDatagramChannel;
import io.netty.channel.epoll.EpollIoHandler;
import io.netty.channel.unix.DomainSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Notifies the service manager of what this process does, in the protocol of systemd's {@code sd_notify(3)}: datagrams to the
 * socket that the variable {@code NOTIFY_SOCKET} names. The JDK has no datagrams for such sockets; Netty's native transport
 * has. Thread-safe; a failure is logged, and changes nothing else.
 *
 * <pre>{@code
 * ServiceManagerNotifier notifier = new ServiceManagerNotifier(System.getenv("NOTIFY_SOCKET"));
 * notifier.send("READY=1");
 * notifier.send("STOPPING=1");
 * }</pre>
 */
public final class ServiceManagerNotifier {
    private static final Logger LOG = LoggerFactory.getLogger(ServiceManagerNotifier.class);
    private static final long LIMIT_MILLIS = 5_000;

    private final String socket;

    /**
     * @param socket the path of the socket; {@code @} at its beginning stands for Linux's abstract names. Null or empty for
     *     a process without such a manager: nothing is sent
     */
    public ServiceManagerNotifier(@Nullable String socket) {
        this.socket = socket == null ? "" : socket;
    }

    /**
     * Sends a state, and waits until it is sent.
     *
     * @param state such as {@code READY=1}, {@code STOPPING=1} or {@code STATUS=loading models}; several are lines
     * @return whether it was sent
     */
    public boolean send(String state) {
        if (socket.isEmpty()) {
            return false;
        }
        if (!Epoll.isAvailable()) {
            LOG.warn("the service manager is not notified of {}: the native transport is not available", state);
            return false;
        }
        String path = socket.startsWith("@") ? "\0" + socket.substring(1) : socket;
        EventLoopGroup group =
                new MultiThreadIoEventLoopGroup(1, Threads.named("service-manager"), EpollIoHandler.newFactory());
        try {
            Channel channel = new Bootstrap()
                    .group(group)
                    .channel(EpollDomainDatagramChannel.class)
                    .handler(new Silent())
                    .connect(new DomainSocketAddress(path))
                    .syncUninterruptibly()
                    .channel();
            channel.writeAndFlush(Unpooled.copiedBuffer(state, StandardCharsets.UTF_8))
                    .syncUninterruptibly();
            channel.close().syncUninterruptibly();
            return true;
        } catch (Exception e) {
            LOG.warn("the service manager at {} is not notified of {}", socket, state, e);
            return false;
        } finally {
            var unused = group.shutdownGracefully(0, LIMIT_MILLIS, TimeUnit.MILLISECONDS);
        }
    }

    /** The manager does not answer. */
    private static final class Silent extends SimpleChannelInboundHandler<Object> {
        @Override
        protected void channelRead0(ChannelHandlerContext context, Object message) {
            // There is nothing to read.
        }
    }
}
