// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.exchange;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.access.Caller;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.NettyBuffers;
import io.nereid.transport.ServerContext;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.api.ResponseBody;
import io.nereid.transport.api.UpstreamClient.Header;
import io.nereid.transport.api.UpstreamResponse;
import io.nereid.transport.codec.GatheringWrite;
import io.nereid.transport.routing.RequestLine;
import io.netty.buffer.ByteBuf;
import io.netty.channel.EventLoop;
import io.netty.channel.local.LocalAddress;
import io.netty.util.concurrent.Future;
import io.netty.util.concurrent.GenericFutureListener;
import java.net.SocketAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.CompletableFuture;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/**
 * An exchange without a socket, between two parts of one process. Thread-safe, as described at {@link
 * AbstractHttpExchange}.
 */
public final class InProcessExchange extends AbstractHttpExchange {
    private static final LocalAddress HERE = new LocalAddress("in-process");

    private final EventLoop loop;
    private final List<Header> headers;
    private final CompletableFuture<UpstreamResponse> answer;

    InProcessExchange(
            ServerContext server,
            EventLoop loop,
            RequestLine line,
            List<Header> headers,
            MemoryRegion body,
            long bytesIn,
            long reserved,
            long arrivedNanos,
            CompletableFuture<UpstreamResponse> answer) {
        super(server, Caller.INTERNAL, line, body, bytesIn, reserved, arrivedNanos);
        this.loop = loop;
        this.headers = List.copyOf(headers);
        this.answer = answer;
    }

    /** The first value of a header, its name compared without case; null if absent. */
    static @Nullable String first(List<Header> headers, String lowerCaseName) {
        for (Header header : headers) {
            if (header.name().equalsIgnoreCase(lowerCaseName)) {
                return header.value();
            }
        }
        return null;
    }

    private static List<Header> headersOf(HttpReply reply) {
        String[] more = reply.headers();
        List<Header> all = new ArrayList<>(1 + more.length / 2);
        if (!reply.contentType().isEmpty()) {
            all.add(new Header("content-type", reply.contentType()));
        }
        for (int i = 0; i < more.length; i += 2) {
            all.add(new Header(more[i].toLowerCase(Locale.ROOT), more[i + 1]));
        }
        return List.copyOf(all);
    }

    private boolean bodiless(int status) {
        return status == 204 || status == 304 || method().equals("HEAD");
    }

    @Override
    public void send(HttpReply reply) {
        ResponseBody content = reply.content();
        MemoryRegion body = MemoryRegion.empty();
        if (bodiless(reply.status()) || content.length() == 0) {
            content.discard();
        } else {
            int copied = GatheringWrite.copied(content);
            body = joined(GatheringWrite.into(NettyBuffers.allocator().directBuffer(Math.max(16, copied)), content));
        }
        complete(new UpstreamResponse(reply.status(), headersOf(reply), body));
    }

    /** Joins buffers into one region; takes them over. */
    public static MemoryRegion joined(ByteBuf[] parts) {
        if (parts.length == 1 && parts[0].isDirect()) {
            return NettyBuffers.region(parts[0]);
        }
        long length = 0;
        for (ByteBuf part : parts) {
            length += part.readableBytes();
        }
        ByteBuf all = NettyBuffers.allocator().directBuffer(Math.max(16, Math.toIntExact(length)));
        for (ByteBuf part : parts) {
            all.writeBytes(part);
        }
        GatheringWrite.release(parts);
        return NettyBuffers.region(all);
    }

    private void complete(UpstreamResponse whole) {
        if (!answer.complete(whole)) {
            whole.body().release();
        }
    }

    @Override
    public AbstractResponseStream begin(HttpReply head) {
        Aggregating aggregating = new Aggregating(head.status(), headersOf(head));
        aggregating.send(head.content());
        return aggregating;
    }

    @Override
    boolean compresses() {
        return false;
    }

    @Override
    public void headers(BiConsumer<String, String> each) {
        for (Header header : headers) {
            each.accept(header.name().toLowerCase(Locale.ROOT), header.value());
        }
    }

    @Override
    public @Nullable String header(String lowerCaseName) {
        return first(headers, lowerCaseName);
    }

    @Override
    public EventLoop loop() {
        return loop;
    }

    @Override
    public SocketAddress remote() {
        return HERE;
    }

    @Override
    public @Nullable String peer() {
        return null;
    }

    @Override
    public String protocol() {
        return "local";
    }

    /** A streamed response that is aggregated. Threads as at {@link AbstractResponseStream}. */
    private final class Aggregating extends AbstractResponseStream {
        private final int status;
        private final List<Header> headers;
        private final List<ByteBuf> pieces = new ArrayList<>();
        private long length;
        private boolean over;

        Aggregating(int status, List<Header> headers) {
            super(InProcessExchange.this, status);
            this.status = status;
            this.headers = headers;
        }

        @Override
        public ByteBuf[] render(ResponseBody piece) {
            return GatheringWrite.into(
                    NettyBuffers.allocator().directBuffer(Math.max(16, GatheringWrite.copied(piece))), piece);
        }

        @Override
        public void write(ByteBuf[] parts, boolean more, GenericFutureListener<Future<Void>> written) {
            for (ByteBuf part : parts) {
                length += part.readableBytes();
            }
            if (over || answer.isDone()) {
                GatheringWrite.release(parts);
            } else {
                pieces.addAll(List.of(parts));
                if (length > Integer.MAX_VALUE - 64) {
                    fail(ServingException.of(
                            ErrorCode.RESOURCE_EXHAUSTED, "the response of " + line.path() + " is larger than 2 GiB"));
                }
            }
            loop.<Void>newSucceededFuture(null).addListener(written);
        }

        @Override
        public void finish() {
            if (over || answer.isDone()) {
                drop();
                return;
            }
            over = true;
            MemoryRegion body = pieces.isEmpty() ? MemoryRegion.empty() : joined(pieces.toArray(new ByteBuf[0]));
            pieces.clear();
            complete(new UpstreamResponse(status, headers, body));
        }

        @Override
        public void breakOff() {
            if (!over) {
                fail(ServingException.of(ErrorCode.UNAVAILABLE, "the response of " + line.path() + " was aborted"));
            }
        }

        @Override
        void dropped() {
            drop();
        }

        private void fail(ServingException e) {
            drop();
            answer.completeExceptionally(e);
        }

        private void drop() {
            over = true;
            pieces.forEach(ByteBuf::release);
            pieces.clear();
        }
    }
}
