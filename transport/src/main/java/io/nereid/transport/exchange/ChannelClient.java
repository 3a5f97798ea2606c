// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.exchange;

import io.nereid.transport.ServerContext;
import io.nereid.transport.api.access.ClientConnection;
import io.nereid.transport.tls.TlsContext;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.unix.DomainSocketChannel;
import io.netty.handler.ssl.SslHandler;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.net.UnixDomainSocketAddress;
import org.jspecify.annotations.Nullable;

/** The client at the other end of a channel. Confined to the channel's event loop. */
public final class ChannelClient implements ClientConnection {
    private final ServerContext server;
    private final ChannelHandlerContext context;
    private final @Nullable String peer;
    private final boolean unixSocket;
    private @Nullable Object remembered;

    public ChannelClient(ServerContext server, ChannelHandlerContext context) {
        this.server = server;
        this.context = context;
        this.peer = TlsContext.peer(context);
        this.unixSocket = context.channel() instanceof DomainSocketChannel
                || context.channel().localAddress() instanceof UnixDomainSocketAddress;
    }

    @Override
    public SocketAddress remote() {
        SocketAddress remote = context.channel().remoteAddress();
        return remote == null ? new InetSocketAddress(0) : remote;
    }

    @Override
    public boolean secure() {
        return context.pipeline().get(SslHandler.class) != null;
    }

    @Override
    public boolean unixSocket() {
        return unixSocket;
    }

    @Override
    public boolean serverIsLocal() {
        return server.local;
    }

    @Override
    public @Nullable String peer() {
        return peer;
    }

    @Override
    public @Nullable Object remembered() {
        return remembered;
    }

    @Override
    public void remember(@Nullable Object result) {
        remembered = result;
    }
}
