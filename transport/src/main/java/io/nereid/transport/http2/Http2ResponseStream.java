// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.http2;

import io.nereid.tensor.NettyBuffers;
import io.nereid.transport.api.ResponseBody;
import io.nereid.transport.codec.GatheringWrite;
import io.nereid.transport.exchange.AbstractResponseStream;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelPromise;
import io.netty.handler.codec.http2.Http2Error;
import io.netty.handler.codec.http2.Http2Headers;
import io.netty.handler.codec.http2.Http2Stream;
import io.netty.util.concurrent.Future;
import io.netty.util.concurrent.GenericFutureListener;

/** A streamed response over HTTP/2: each piece is sent as DATA. Threads as at {@link AbstractResponseStream}. */
final class Http2ResponseStream extends AbstractResponseStream {
    private final Http2ServerConnection connection;
    private final Http2Stream stream;
    private final Http2Headers head;
    private boolean begun;

    Http2ResponseStream(
            Http2Exchange owner, Http2ServerConnection connection, Http2Stream stream, int status, Http2Headers head) {
        super(owner, status);
        this.connection = connection;
        this.stream = stream;
        this.head = head;
    }

    @Override
    public ByteBuf[] render(ResponseBody piece) {
        return GatheringWrite.into(
                NettyBuffers.allocator().directBuffer(Math.max(16, GatheringWrite.copied(piece))), piece);
    }

    @Override
    public void write(ByteBuf[] parts, boolean more, GenericFutureListener<Future<Void>> written) {
        if (!begun) {
            begun = true;
            connection.writeHeaders(stream, head, false);
        }
        if (parts.length > 0) {
            ChannelPromise last = connection.newPromise();
            last.addListener(written);
            connection.writeData(stream, parts, false, last);
        }
        connection.flushSoon();
    }

    @Override
    public void finish() {
        ChannelPromise written = connection.newPromise();
        connection.stopClientAfter(stream, written);
        connection.writeData(stream, new ByteBuf[] {Unpooled.EMPTY_BUFFER}, true, written);
        connection.flushSoon();
    }

    @Override
    public void breakOff() {
        connection.reset(stream, Http2Error.INTERNAL_ERROR);
    }
}
