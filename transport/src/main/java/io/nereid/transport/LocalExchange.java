// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.tensor.MemoryRegion;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.api.ResponseBody;
import io.nereid.transport.api.UpstreamClient.Answer;
import io.nereid.transport.api.UpstreamClient.Header;
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

/** An exchange without a socket, between two parts of one process. Thread-safe, as {@link Exchange} says. */
final class LocalExchange extends Exchange {
    private static final LocalAddress HERE = new LocalAddress("in-process");

    private final EventLoop loop;
    private final List<Header> headers;
    private final CompletableFuture<Answer> answer;

    LocalExchange(
            ServerContext server,
            EventLoop loop,
            RequestLine line,
            List<Header> headers,
            MemoryRegion body,
            long bytesIn,
            long reserved,
            long arrivedNanos,
            CompletableFuture<Answer> answer) {
        super(server, line, body, bytesIn, reserved, arrivedNanos);
        this.loop = loop;
        this.headers = List.copyOf(headers);
        this.answer = answer;
    }

    /** The first value of a header in any case, or null. */
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
    void send(HttpReply reply) {
        ResponseBody content = reply.content();
        MemoryRegion body = MemoryRegion.empty();
        if (bodiless(reply.status()) || content.length() == 0) {
            content.discard();
        } else {
            int copied = Gather.copied(content);
            body = joined(Gather.into(MemoryRegion.allocator().directBuffer(Math.max(16, copied)), content));
        }
        complete(new Answer(reply.status(), headersOf(reply), body));
    }

    /** The buffers as one region; takes them over. */
    static MemoryRegion joined(ByteBuf[] parts) {
        if (parts.length == 1 && parts[0].isDirect()) {
            return MemoryRegion.ofByteBuf(parts[0]);
        }
        long length = 0;
        for (ByteBuf part : parts) {
            length += part.readableBytes();
        }
        ByteBuf all = MemoryRegion.allocator().directBuffer(Math.max(16, Math.toIntExact(length)));
        for (ByteBuf part : parts) {
            all.writeBytes(part);
        }
        Gather.release(parts);
        return MemoryRegion.ofByteBuf(all);
    }

    private void complete(Answer whole) {
        if (!answer.complete(whole)) {
            whole.body().release();
        }
    }

    @Override
    ReplyStream begin(HttpReply head) {
        Gathering gathering = new Gathering(head.status(), headersOf(head));
        gathering.send(head.content());
        return gathering;
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
    EventLoop loop() {
        return loop;
    }

    @Override
    SocketAddress remote() {
        return HERE;
    }

    @Override
    @Nullable
    String peer() {
        return null;
    }

    @Override
    String protocol() {
        return "local";
    }

    /** A reply in pieces that becomes whole. As {@link ReplyStream} for threads. */
    private final class Gathering extends ReplyStream {
        private final int status;
        private final List<Header> headers;
        private final List<ByteBuf> pieces = new ArrayList<>();
        private long length;
        private boolean over;

        Gathering(int status, List<Header> headers) {
            super(LocalExchange.this, status);
            this.status = status;
            this.headers = headers;
        }

        @Override
        ByteBuf[] render(ResponseBody piece) {
            return Gather.into(MemoryRegion.allocator().directBuffer(Math.max(16, Gather.copied(piece))), piece);
        }

        @Override
        void write(ByteBuf[] parts, GenericFutureListener<Future<Void>> written) {
            for (ByteBuf part : parts) {
                length += part.readableBytes();
            }
            if (over || answer.isDone()) {
                Gather.release(parts);
            } else {
                pieces.addAll(List.of(parts));
                if (length > Integer.MAX_VALUE - 64) {
                    fail(ServingException.of(
                            ErrorCode.RESOURCE_EXHAUSTED, "the answer of " + line.path() + " is larger than 2 GiB"));
                }
            }
            loop.<Void>newSucceededFuture(null).addListener(written);
        }

        @Override
        void finish() {
            if (over || answer.isDone()) {
                drop();
                return;
            }
            over = true;
            MemoryRegion body = pieces.isEmpty() ? MemoryRegion.empty() : joined(pieces.toArray(new ByteBuf[0]));
            pieces.clear();
            complete(new Answer(status, headers, body));
        }

        @Override
        void breakOff() {
            if (!over) {
                fail(ServingException.of(ErrorCode.UNAVAILABLE, "the answer of " + line.path() + " broke off"));
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
