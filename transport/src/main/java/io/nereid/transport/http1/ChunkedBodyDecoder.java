// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.http1;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.tensor.ByteBudget;
import io.nereid.transport.codec.ContentEncoding;
import io.netty.buffer.ByteBuf;

/**
 * Decodes a chunked request body (RFC 9112, section 7.1). Chunk extensions and trailers are checked, limited in length
 * and dropped. Every line must end with CRLF: a lenient reader here is a way to smuggle requests. Confined to its
 * connection's event loop.
 */
final class ChunkedBodyDecoder implements AutoCloseable {
    private enum State {
        SIZE,
        EXTENSION,
        SIZE_LF,
        DATA,
        DATA_CR,
        DATA_LF,
        TRAILER,
        TRAILER_LF,
        LAST_LF,
        DONE
    }

    private static final int MAX_EXTENSION_BYTES = 1024;

    private final ContentEncoding.Growing body;
    private final int maxTrailerBytes;
    private State state = State.SIZE;
    private long size;
    private int digits;
    private int lineLength;

    /** Bytes of extensions and trailers so far, over the whole body, so that they cannot be sent without end. */
    private int others;

    ChunkedBodyDecoder(ByteBudget budget, int maxBodyBytes, int maxTrailerBytes) {
        this.body = new ContentEncoding.Growing(budget, maxBodyBytes);
        this.maxTrailerBytes = maxTrailerBytes;
    }

    /**
     * Decodes further input. Returns true when the body is complete; bytes after it are left in {@code in}.
     *
     * @throws ServingException INVALID_ARGUMENT when malformed, RESOURCE_EXHAUSTED when too large
     */
    boolean read(ByteBuf in) {
        while (in.isReadable() && state != State.DONE) {
            if (state == State.DATA) {
                int n = (int) Math.min(size, in.readableBytes());
                body.append(in, n);
                size -= n;
                if (size == 0) {
                    state = State.DATA_CR;
                }
                continue;
            }
            step(in.readByte());
        }
        return state == State.DONE;
    }

    private void step(byte b) {
        switch (state) {
            case SIZE -> sizeByte(b);
            case EXTENSION -> {
                if (b == '\r') {
                    state = State.SIZE_LF;
                } else if (b < ' ' && b != '\t' || b == 127 || ++others > MAX_EXTENSION_BYTES) {
                    throw malformed("chunk extension");
                }
            }
            case SIZE_LF -> {
                expect(b, '\n');
                state = size == 0 ? State.TRAILER : State.DATA;
                lineLength = 0;
            }
            case DATA_CR -> {
                expect(b, '\r');
                state = State.DATA_LF;
            }
            case DATA_LF -> {
                expect(b, '\n');
                state = State.SIZE;
                digits = 0;
            }
            case TRAILER -> {
                if (b == '\r') {
                    state = lineLength == 0 ? State.LAST_LF : State.TRAILER_LF;
                } else if (b < ' ' && b != '\t' || b == 127 || ++others > maxTrailerBytes) {
                    throw malformed("trailer");
                } else {
                    lineLength++;
                }
            }
            case TRAILER_LF -> {
                expect(b, '\n');
                state = State.TRAILER;
                lineLength = 0;
            }
            case LAST_LF -> {
                expect(b, '\n');
                state = State.DONE;
            }
            case DATA, DONE -> throw new IllegalStateException(state.toString());
        }
    }

    private void sizeByte(byte b) {
        int digit = Character.digit(b, 16);
        if (digit >= 0) {
            if (++digits > 15) { // 60 bits: the value cannot overflow a long
                throw ServingException.of(ErrorCode.RESOURCE_EXHAUSTED, "the size of a chunk is too large");
            }
            size = digits == 1 ? digit : size << 4 | digit;
        } else if (digits == 0) {
            throw malformed("chunk size");
        } else if (b == '\r') {
            state = State.SIZE_LF;
        } else if (b == ';' || b == ' ' || b == '\t') {
            state = State.EXTENSION;
        } else {
            throw malformed("chunk size");
        }
    }

    private static void expect(byte b, char expected) {
        if (b != expected) {
            throw malformed("chunk");
        }
    }

    private static ServingException malformed(String what) {
        return ServingException.invalidArgument("malformed " + what + " in a chunked body");
    }

    /** Bytes reserved in the budget so far. */
    int reserved() {
        return body.reserved();
    }

    /** Hands the body over to the caller, together with its reservation in the budget. */
    ByteBuf take() {
        return body.take();
    }

    @Override
    public void close() {
        body.close();
    }
}
