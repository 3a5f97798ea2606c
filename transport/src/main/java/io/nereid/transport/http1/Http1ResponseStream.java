// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.http1;

import io.nereid.tensor.NettyBuffers;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.api.ResponseBody;
import io.nereid.transport.codec.GatheringWrite;
import io.nereid.transport.exchange.AbstractResponseStream;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.util.concurrent.Future;
import io.netty.util.concurrent.GenericFutureListener;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * A streamed response over HTTP/1.1: each piece is a chunk. HTTP/1.0 does not have chunks; there the body ends where
 * the connection is closed. Threads as at {@link AbstractResponseStream}.
 */
final class Http1ResponseStream extends AbstractResponseStream {
    private static final byte[] END = "0\r\n\r\n".getBytes(StandardCharsets.US_ASCII);
    /** At least the bytes of a chunk's size line. */
    private static final int CHUNK_HEAD = 16;

    private final Http1Connection connection;
    private final Http1Exchange owner;
    private final boolean chunked;
    private final boolean keep;

    Http1ResponseStream(Http1Exchange owner, Http1Connection connection, int status, boolean chunked, boolean keep) {
        super(owner, status);
        this.owner = owner;
        this.connection = connection;
        this.chunked = chunked;
        this.keep = keep;
    }

    /** Sends the head, and the content of {@code reply} as the first piece. */
    void begin(HttpReply reply, byte[] dateLine, int keepAlive) {
        ByteBuf head = Http1ResponseEncoder.streamHead(reply, dateLine, keepAlive, chunked);
        put(new ByteBuf[] {head}, head.readableBytes());
        send(reply.content());
    }

    @Override
    public ByteBuf[] render(ResponseBody piece) {
        ByteBuf out = NettyBuffers.allocator().directBuffer(CHUNK_HEAD + 2 + GatheringWrite.copied(piece));
        if (!chunked) {
            return GatheringWrite.into(out, piece);
        }
        out.writeCharSequence(Long.toHexString(piece.length()), StandardCharsets.US_ASCII);
        out.writeShort('\r' << 8 | '\n');
        ByteBuf[] parts = GatheringWrite.into(out, piece);
        ByteBuf last = parts[parts.length - 1];
        if (last == out) {
            out.writeShort('\r' << 8 | '\n');
            return parts;
        }
        ByteBuf[] more = Arrays.copyOf(parts, parts.length + 1);
        more[parts.length] = Unpooled.copyShort('\r' << 8 | '\n');
        return more;
    }

    @Override
    public void write(ByteBuf[] parts, boolean more, GenericFutureListener<Future<Void>> written) {
        connection.streamed(owner, parts, more, written);
    }

    @Override
    public void finish() {
        boolean bodiless = !chunked || owner.method().equals("HEAD");
        ByteBuf end = bodiless ? Unpooled.EMPTY_BUFFER : Unpooled.wrappedBuffer(END);
        connection.answered(owner, new ByteBuf[] {end}, keep && !owner.server.draining, owner.server.nanos());
    }

    @Override
    public void breakOff() {
        connection.broken(owner);
    }
}
