// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.http2;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;
import io.netty.handler.codec.ByteToMessageDecoder;
import io.netty.handler.codec.ByteToMessageDecoder.Cumulator;

/**
 * Joins the part of a frame that a read ended with and the bytes of the next read. While a large message arrives, nearly every
 * read ends within a frame, so that Netty's default copies all of it once more. A large read is appended as it is; a small one
 * is copied, since a buffer of its own for a few bytes would cost more memory than they are: a client that sends a frame byte by
 * byte must not make the server hold a buffer for each. Stateless.
 */
final class LargeReadCumulator implements Cumulator {
    static final LargeReadCumulator INSTANCE = new LargeReadCumulator();

    /** The length of the largest TLS record, and of the frames of most clients. */
    static final int LARGE = 16 << 10;

    private LargeReadCumulator() {}

    @Override
    public ByteBuf cumulate(ByteBufAllocator alloc, ByteBuf cumulation, ByteBuf in) {
        return (in.readableBytes() >= LARGE
                        ? ByteToMessageDecoder.COMPOSITE_CUMULATOR
                        : ByteToMessageDecoder.MERGE_CUMULATOR)
                .cumulate(alloc, cumulation, in);
    }
}
