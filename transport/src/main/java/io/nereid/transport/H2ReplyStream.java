// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport;

import io.nereid.tensor.MemoryRegion;
import io.nereid.transport.api.ResponseBody;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelPromise;
import io.netty.handler.codec.http2.Http2Error;
import io.netty.handler.codec.http2.Http2Headers;
import io.netty.handler.codec.http2.Http2Stream;
import io.netty.util.concurrent.Future;
import io.netty.util.concurrent.GenericFutureListener;

/** A streamed response over HTTP/2: each piece is sent as DATA. Threads as at {@link ReplyStream}. */
final class H2ReplyStream extends ReplyStream {
    private final H2Connection connection;
    private final Http2Stream stream;
    private final Http2Headers head;
    private boolean begun;

    H2ReplyStream(H2Exchange owner, H2Connection connection, Http2Stream stream, int status, Http2Headers head) {
        super(owner, status);
        this.connection = connection;
        this.stream = stream;
        this.head = head;
    }

    @Override
    ByteBuf[] render(ResponseBody piece) {
        return Gather.into(MemoryRegion.allocator().directBuffer(Math.max(16, Gather.copied(piece))), piece);
    }

    @Override
    void write(ByteBuf[] parts, GenericFutureListener<Future<Void>> written) {
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
    void finish() {
        ChannelPromise written = connection.newPromise();
        connection.stopClientAfter(stream, written);
        connection.writeData(stream, new ByteBuf[] {Unpooled.EMPTY_BUFFER}, true, written);
        connection.flushSoon();
    }

    @Override
    void breakOff() {
        connection.reset(stream, Http2Error.INTERNAL_ERROR);
    }
}
