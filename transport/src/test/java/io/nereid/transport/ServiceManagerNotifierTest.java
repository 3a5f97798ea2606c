// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.netty.bootstrap.Bootstrap;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.channel.epoll.Epoll;
import io.netty.channel.epoll.EpollDomainDatagramChannel;
import io.netty.channel.epoll.EpollIoHandler;
import io.netty.channel.unix.DomainDatagramPacket;
import io.netty.channel.unix.DomainSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The notifications over a real datagram socket. */
class ServiceManagerNotifierTest {
    @TempDir
    Path disk;

    private final LinkedBlockingQueue<String> received = new LinkedBlockingQueue<>();

    private void receives(String address, String socket) throws Exception {
        MultiThreadIoEventLoopGroup group = new MultiThreadIoEventLoopGroup(1, EpollIoHandler.newFactory());
        try {
            Channel manager = new Bootstrap()
                    .group(group)
                    .channel(EpollDomainDatagramChannel.class)
                    .handler(new SimpleChannelInboundHandler<DomainDatagramPacket>() {
                        @Override
                        protected void channelRead0(ChannelHandlerContext context, DomainDatagramPacket packet) {
                            received.add(packet.content().toString(StandardCharsets.UTF_8));
                        }
                    })
                    .bind(new DomainSocketAddress(address))
                    .sync()
                    .channel();
            ServiceManagerNotifier notifier = new ServiceManagerNotifier(socket);
            assertThat(notifier.send("READY=1\nSTATUS=3 models")).isTrue();
            assertThat(received.poll(60, TimeUnit.SECONDS)).isEqualTo("READY=1\nSTATUS=3 models");
            assertThat(notifier.send("STOPPING=1")).isTrue();
            assertThat(received.poll(60, TimeUnit.SECONDS)).isEqualTo("STOPPING=1");
            manager.close().sync();
        } finally {
            group.shutdownGracefully(0, 2, TimeUnit.SECONDS).sync();
        }
    }

    @Test
    void statesReachASocketOfAPathAndOneWithAnAbstractName() throws Exception {
        assumeTrue(Epoll.isAvailable(), "NOT TESTED: the native transport is not available");
        String path = disk.resolve("notify").toString();
        receives(path, path);
        String name = "nereid-test-" + ProcessHandle.current().pid();
        receives("\0" + name, "@" + name);
    }

    @Test
    void withoutAManagerNothingIsSentAndAnAbsentOneIsNotAnError() {
        assertThat(new ServiceManagerNotifier(null).send("READY=1")).isFalse();
        assertThat(new ServiceManagerNotifier("").send("READY=1")).isFalse();
        assertThat(new ServiceManagerNotifier(disk.resolve("absent").toString()).send("READY=1"))
                .isFalse();
    }
}
