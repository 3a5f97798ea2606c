// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.server;

import io.nereid.transport.ServerContext;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.util.concurrent.ScheduledFuture;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The handler of a listening socket. Closes connections beyond the {@link ConnectionLimit} at once. When the process
 * has no file descriptor left it closes new connections at once as well, with the descriptor that it keeps for this:
 * otherwise they would wait in the backlog of the socket, where a client cannot tell them from those of a slow server.
 * Confined to the event loop of the socket.
 */
final class AcceptHandler extends ChannelInboundHandlerAdapter {
    private static final Logger LOG = LoggerFactory.getLogger(AcceptHandler.class);
    private static final Path NOTHING = Path.of("/dev/null");
    private static final long SHED_MILLIS = 100;
    private static final long LOG_NANOS = TimeUnit.MINUTES.toNanos(1);

    private final ServerContext server;
    private final ConnectionLimit limit;

    /** The descriptor that is given up to accept the connections to close; null while it is. */
    private @Nullable FileChannel reserve;

    private boolean shedding;
    /** Whether a connection was closed since the last error. */
    private boolean shed;

    private @Nullable ScheduledFuture<?> timer;
    private long loggedNanos;
    private boolean logged;

    AcceptHandler(ServerContext server, ConnectionLimit limit) {
        this.server = server;
        this.limit = limit;
    }

    @Override
    public void handlerAdded(ChannelHandlerContext ctx) {
        reserve();
    }

    @Override
    public void channelRead(ChannelHandlerContext ctx, Object message) {
        Channel accepted = (Channel) message;
        if (shedding || !limit.tryOpen()) {
            server.stats.connectionRefused();
            accepted.unsafe().closeForcibly();
            if (shedding) {
                shed = true;
            } else {
                log("there are " + limit.most + " connections, the limit");
            }
            return;
        }
        accepted.closeFuture().addListener(f -> limit.closed());
        ctx.fireChannelRead(accepted);
    }

    @Override
    public void exceptionCaught(ChannelHandlerContext ctx, Throwable cause) {
        String text = cause.getMessage();
        if (!(cause instanceof IOException) || text == null || !text.contains("Too many open files")) {
            ctx.fireExceptionCaught(cause);
            return;
        }
        FileChannel given = reserve;
        reserve = null;
        shedding = true;
        if (given != null) {
            close(given);
            // the socket reports the connections that wait only to a new read
            ctx.channel().config().setAutoRead(false);
            ctx.channel().eventLoop().execute(() -> ctx.channel().config().setAutoRead(true));
        } else if (!shed) {
            // another thread has taken the descriptor; otherwise the error came after the connections that waited
            ctx.channel().config().setAutoRead(false);
        }
        shed = false;
        if (timer == null) {
            timer = ctx.channel().eventLoop().schedule(() -> resume(ctx.channel()), SHED_MILLIS, TimeUnit.MILLISECONDS);
        }
        if (given != null) {
            // only now: the first record of a process makes Java's logging open files of its own
            log("the process has no file descriptor left");
        }
    }

    /** Accepts connections again, if a descriptor can be put aside. */
    private void resume(Channel listener) {
        timer = null;
        if (!listener.isOpen()) {
            return;
        }
        if (reserve == null) {
            reserve();
        }
        shedding = reserve == null;
        if (shedding) {
            timer = listener.eventLoop().schedule(() -> resume(listener), SHED_MILLIS, TimeUnit.MILLISECONDS);
        }
        listener.config().setAutoRead(true);
    }

    private void reserve() {
        try {
            reserve = FileChannel.open(NOTHING, StandardOpenOption.READ);
        } catch (IOException e) {
            LOG.debug("cannot put a file descriptor aside", e);
        }
    }

    private static void close(FileChannel file) {
        try {
            file.close();
        } catch (IOException e) {
            LOG.debug("cannot close {}", NOTHING, e);
        }
    }

    /** Logs a refusal, at most once a minute. */
    private void log(String reason) {
        long now = server.nanos();
        if (!logged || now - loggedNanos >= LOG_NANOS) {
            logged = true;
            loggedNanos = now;
            LOG.warn(
                    "new connections are closed: {} (open: {}); raise ulimit -n or --max-connections, or find the"
                            + " clients that keep connections open",
                    reason,
                    server.stats.connections());
        }
    }

    @Override
    public void handlerRemoved(ChannelHandlerContext ctx) {
        if (timer != null) {
            timer.cancel(false);
        }
        FileChannel kept = reserve;
        reserve = null;
        if (kept != null) {
            close(kept);
        }
    }
}
