// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.http1;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.tensor.ByteBudget;
import io.nereid.transport.codec.ContentEncoding;
import io.nereid.transport.codec.FieldSyntax;
import io.netty.buffer.ByteBuf;

/**
 * Decodes a chunked request body (RFC 9112, section 7.1). Chunk extensions and trailers are checked, limited in length
 * and dropped. Every line must end with CRLF: a lenient reader here is a way to smuggle requests. Confined to its
 * connection's event loop.
 */
final class ChunkedBodyDecoder implements AutoCloseable {
    private enum State {
        SIZE,
        AFTER_SIZE,
        EXTENSION,
        SIZE_LF,
        DATA,
        DATA_CR,
        DATA_LF,
        TRAILER_NAME,
        TRAILER_VALUE,
        TRAILER_LF,
        LAST_LF,
        DONE
    }

    private static final int MAX_EXTENSION_BYTES = 1024;

    private final ContentEncoding.Growing body;
    private final int maxBodyBytes;
    private final int maxTrailerBytes;
    private State state = State.SIZE;
    private long size;
    /** The sizes of all chunks so far; each is at most 60 bits and the sum is checked, so it cannot overflow. */
    private long announced;

    private int digits;
    private int nameLength;

    /** Bytes of extensions and trailers so far, over the whole body, so that they cannot be sent without end. */
    private int others;

    ChunkedBodyDecoder(ByteBudget budget, int maxBodyBytes, int maxTrailerBytes) {
        this.body = new ContentEncoding.Growing(budget, maxBodyBytes);
        this.maxBodyBytes = maxBodyBytes;
        this.maxTrailerBytes = maxTrailerBytes;
    }

    /**
     * Decodes further input. Returns true when the body is complete; bytes after it are left in {@code in}.
     *
     * @throws ServingException INVALID_ARGUMENT when malformed, RESOURCE_EXHAUSTED when too large, and with a remedy when
     *     the budget or the memory is short
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
            case AFTER_SIZE -> {
                if (b == '\r') {
                    state = State.SIZE_LF;
                } else if (b == ';') {
                    state = State.EXTENSION;
                } else if (b != ' ' && b != '\t') {
                    throw malformed("chunk size");
                }
                other(MAX_EXTENSION_BYTES, "chunk extension");
            }
            case EXTENSION -> {
                if (b == '\r') {
                    state = State.SIZE_LF;
                } else if (isControl(b)) {
                    throw malformed("chunk extension");
                }
                other(MAX_EXTENSION_BYTES, "chunk extension");
            }
            case SIZE_LF -> {
                expect(b, '\n');
                announced += size;
                if (announced > maxBodyBytes) {
                    throw ServingException.of(
                            ErrorCode.RESOURCE_EXHAUSTED,
                            "the body is larger than the limit of " + maxBodyBytes + " bytes");
                }
                state = size == 0 ? State.TRAILER_NAME : State.DATA;
                nameLength = 0;
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
            case TRAILER_NAME -> {
                if (b == '\r' && nameLength == 0) {
                    state = State.LAST_LF;
                } else if (b == ':' && nameLength > 0) {
                    state = State.TRAILER_VALUE;
                    other(maxTrailerBytes, "trailer");
                } else if (FieldSyntax.isTokenByte(b)) {
                    nameLength++;
                    other(maxTrailerBytes, "trailer");
                } else {
                    throw malformed("trailer");
                }
            }
            case TRAILER_VALUE -> {
                if (b == '\r') {
                    state = State.TRAILER_LF;
                } else if (isControl(b)) {
                    throw malformed("trailer");
                } else {
                    other(maxTrailerBytes, "trailer");
                }
            }
            case TRAILER_LF -> {
                expect(b, '\n');
                state = State.TRAILER_NAME;
                nameLength = 0;
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
        } else if (b == ';') {
            state = State.EXTENSION;
        } else if (b == ' ' || b == '\t') {
            state = State.AFTER_SIZE;
        } else {
            throw malformed("chunk size");
        }
    }

    private static boolean isControl(byte b) {
        return b < ' ' && b != '\t' || b == 127;
    }

    /** Counts a byte of an extension or a trailer against the limit of the body. */
    private void other(int most, String what) {
        if (++others > most) {
            throw malformed(what);
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

    /** Bytes of the body so far. */
    int received() {
        return body.size();
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
