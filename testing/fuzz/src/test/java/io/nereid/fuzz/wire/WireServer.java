// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.fuzz.wire;

import io.nereid.base.Clock;
import io.nereid.tensor.ByteBudget;
import io.nereid.tensor.NettyBuffers;
import io.nereid.transport.EventLoops;
import io.nereid.transport.ServerContext;
import io.nereid.transport.ServerOptions;
import io.nereid.transport.api.GrpcMethod;
import io.nereid.transport.api.HttpRoute;
import io.nereid.transport.api.VirtualHosts;
import io.nereid.transport.api.access.LocalAccessPolicy;
import io.nereid.transport.codec.BodyReceiveAllocator;
import io.nereid.transport.exchange.CompiledRoutes;
import io.nereid.transport.exchange.VirtualHostResolver;
import io.nereid.transport.server.Server;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.PoolArenaMetric;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelFuture;
import io.netty.channel.embedded.EmbeddedChannel;
import java.io.ByteArrayOutputStream;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.Set;

/**
 * The connection handlers of the real server without a socket: each call is one connection, which gets bytes and is then closed. The
 * clock stands still, so that equal requests get equal responses. After a connection every buffer is released and the budget of bytes
 * is unused. Confined to one thread.
 */
public final class WireServer {
    /** The largest body and message. */
    public static final int MOST_BYTES = 20_000;

    private static final EventLoops LOOPS = new EventLoops(1, false);
    private static final Clock STILL = new Clock() {
        @Override
        public long nanos() {
            return 1_000_000_000L;
        }

        @Override
        public long millis() {
            return 1_700_000_000_000L;
        }
    };

    private final ByteBudget budget = new ByteBudget(1 << 20);
    private final ServerContext context;
    private final CompiledRoutes site;

    public WireServer(List<HttpRoute> routes, List<GrpcMethod> methods) {
        ServerOptions options = ServerOptions.builder()
                .budget(budget)
                .maxBodyBytes(MOST_BYTES)
                .maxMessageBytes(MOST_BYTES)
                .clock(STILL)
                .access(new LocalAccessPolicy(true, Set.of()))
                .build();
        context = new ServerContext(options, Runnable::run);
        site = new CompiledRoutes(context, LOOPS, routes, methods, "");
    }

    /** What a new connection sends in response to bytes that arrive in these pieces. */
    public byte[] answers(List<byte[]> pieces) {
        long before = buffers();
        EmbeddedChannel channel = new EmbeddedChannel();
        channel.pipeline()
                .addLast(Server.pipelineHead(
                        context,
                        channel,
                        new VirtualHostResolver(site, VirtualHosts.NONE),
                        new BodyReceiveAllocator()));
        List<ByteBuf> sent = new ArrayList<>();
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        for (byte[] piece : pieces) {
            if (!channel.isOpen()) {
                break;
            }
            ByteBuf in = Unpooled.directBuffer(piece.length).writeBytes(piece);
            sent.add(in);
            channel.writeInbound(in);
        }
        channel.runPendingTasks();
        ByteBuf part;
        while ((part = channel.readOutbound()) != null) {
            byte[] bytes = new byte[part.readableBytes()];
            part.readBytes(bytes);
            part.release();
            out.writeBytes(bytes);
        }
        if (channel.pipeline().firstContext() != null) {
            ChannelFuture closed = channel.pipeline().firstContext().close();
            if (closed.cause() != null) {
                throw new AssertionError("the connection cannot be closed", closed.cause());
            }
        }
        channel.finishAndReleaseAll();
        for (ByteBuf in : sent) {
            if (in.refCnt() != 0) {
                throw new AssertionError("a received buffer is not released");
            }
        }
        if (budget.used() != 0) {
            throw new AssertionError(budget.used() + " bytes of the budget are not given back");
        }
        if (buffers() != before) {
            throw new AssertionError((buffers() - before) + " pooled buffers are not released");
        }
        return out.toByteArray();
    }

    /** Pooled buffers in use. The caches of threads are switched off in the settings of this module, so it is exact. */
    private static long buffers() {
        long count = 0;
        for (PoolArenaMetric arena : NettyBuffers.allocator().metric().directArenas()) {
            count += arena.numActiveAllocations();
        }
        return count;
    }

    /** Cuts bytes into pieces at places that follow from the bytes. */
    public static List<byte[]> cut(byte[] bytes) {
        Random random = new Random(Arrays.hashCode(bytes));
        int most = random.nextInt(4) == 0 ? 1 : 1 + random.nextInt(60);
        List<byte[]> pieces = new ArrayList<>();
        for (int at = 0; at < bytes.length; ) {
            int length = Math.min(bytes.length - at, 1 + random.nextInt(most));
            pieces.add(Arrays.copyOfRange(bytes, at, at + length));
            at += length;
        }
        return pieces;
    }

    /** Joins byte strings. */
    public static byte[] join(byte[]... parts) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        for (byte[] part : parts) {
            out.writeBytes(part);
        }
        return out.toByteArray();
    }
}
