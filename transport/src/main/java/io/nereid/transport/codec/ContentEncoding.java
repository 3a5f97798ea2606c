// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.codec;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.tensor.ByteBudget;
import io.netty.buffer.ByteBuf;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Locale;
import java.util.zip.CRC32;
import java.util.zip.DataFormatException;
import java.util.zip.Deflater;
import java.util.zip.Inflater;
import org.jspecify.annotations.Nullable;

/**
 * The supported content encodings of HTTP and gRPC: parsing of the headers, decompression within limits, compression.
 * Immutable.
 */
public enum ContentEncoding {
    IDENTITY("identity"),
    GZIP("gzip"),
    DEFLATE("deflate");

    /** The {@code accept-encoding} value sent with the rejection of another encoding. */
    public static final String SUPPORTED = "gzip, deflate";

    /** Bodies below this many bytes are not worth compressing; those above the other would hold up an event loop. */
    public static final int MIN_COMPRESSED = 1 << 10;

    public static final int MAX_COMPRESSED = 1 << 20;

    private static final int GZIP_HEAD = 10;

    /** Deflate's largest possible ratio. */
    private static final long MOST_RATIO = 1032;

    /** The most bytes that are allocated for a result because its size is claimed; it then doubles. */
    private static final long MOST_HINT = 8 << 20;

    public final String token;

    ContentEncoding(String token) {
        this.token = token;
    }

    /** The encoding of a {@code content-encoding} or {@code grpc-encoding} value; null when it is not supported. */
    public static @Nullable ContentEncoding of(@Nullable String value) {
        if (value == null) {
            return IDENTITY;
        }
        return switch (value.strip().toLowerCase(Locale.ROOT)) {
            case "", "identity" -> IDENTITY;
            case "gzip", "x-gzip" -> GZIP;
            case "deflate" -> DEFLATE;
            default -> null;
        };
    }

    /** The best supported encoding of an {@code accept-encoding} value; identity when it names no other one. */
    public static ContentEncoding accepted(@Nullable String value) {
        if (value == null) {
            return IDENTITY;
        }
        double gzip = -1;
        double deflate = -1;
        double identity = -1;
        double any = -1;
        for (String part : value.toLowerCase(Locale.ROOT).split(",", -1)) {
            int semicolon = part.indexOf(';');
            String name = (semicolon < 0 ? part : part.substring(0, semicolon)).strip();
            double q = semicolon < 0 ? 1 : quality(part.substring(semicolon + 1).strip());
            switch (name) {
                case "gzip", "x-gzip" -> gzip = q;
                case "deflate" -> deflate = q;
                case "identity" -> identity = q;
                case "*" -> any = q;
                default -> {}
            }
        }
        gzip = gzip < 0 ? any : gzip;
        deflate = deflate < 0 ? any : deflate;
        if (gzip > 0 && gzip >= deflate && gzip >= identity) {
            return GZIP;
        }
        return deflate > 0 && deflate >= identity ? DEFLATE : IDENTITY;
    }

    private static double quality(String parameter) {
        if (!parameter.startsWith("q=")) {
            return 1;
        }
        try {
            return Double.parseDouble(parameter.substring(2).strip());
        } catch (NumberFormatException e) {
            return 0;
        }
    }

    /**
     * Decompresses the readable bytes of {@code in}, which stay unchanged, into a buffer whose capacity is reserved in
     * the budget. The output is limited while it is written, so that a small body cannot expand without bound. gzip
     * allows several members in a row; {@code deflate} is accepted with and without the zlib header, as clients send
     * both.
     *
     * @throws ServingException INVALID_ARGUMENT when the bytes are not of this encoding; RESOURCE_EXHAUSTED when the
     *     result is larger than {@code limit} or than what the budget has left
     */
    public ByteBuf inflate(ByteBuf in, int limit, ByteBudget budget) {
        boolean raw = this == GZIP || !hasZlibHead(in);
        Inflater inflater = new Inflater(raw);
        Growing out = new Growing(budget, limit);
        try {
            int at = in.readerIndex();
            int end = in.writerIndex();
            do {
                if (this == GZIP) {
                    at = skipGzipHead(in, at, end);
                }
                int before = out.size();
                inflater.reset();
                inflater.setInput(in.nioBuffer(at, end - at));
                while (!inflater.finished()) {
                    out.ensureWritable(this == GZIP && before == 0 ? hint(in) : 2L * in.readableBytes());
                    if (inflater.inflate(out.free()) == 0) {
                        if (inflater.needsInput() || inflater.needsDictionary()) {
                            throw ServingException.invalidArgument("the " + token + " body is truncated");
                        }
                    }
                    out.advance();
                }
                at += (int) inflater.getBytesRead();
                if (this == GZIP) {
                    at = checkTrailer(in, at, end, out.view(before));
                }
            } while (this == GZIP && at < end);
            return out.take();
        } catch (DataFormatException e) {
            throw ServingException.invalidArgument("the body is not valid " + token);
        } finally {
            inflater.end();
            out.close();
        }
    }

    /** The size in the gzip trailer; capped, as the client may have made it up. */
    private static long hint(ByteBuf in) {
        long claimed = in.getUnsignedIntLE(in.writerIndex() - 4);
        return Math.min(claimed + 1, Math.min(MOST_HINT, MOST_RATIO * in.readableBytes()));
    }

    private static boolean hasZlibHead(ByteBuf in) {
        if (in.readableBytes() < 2) {
            return true;
        }
        int b0 = in.getUnsignedByte(in.readerIndex());
        int b1 = in.getUnsignedByte(in.readerIndex() + 1);
        return (b0 & 15) == 8 && (b0 << 8 | b1) % 31 == 0;
    }

    private static int skipGzipHead(ByteBuf in, int start, int end) {
        if (end - start < GZIP_HEAD + 8
                || in.getUnsignedShort(start) != 0x1f8b
                || in.getByte(start + 2) != 8
                || (in.getByte(start + 3) & 0xe0) != 0) {
            throw ServingException.invalidArgument("the body is not valid gzip");
        }
        // RFC 1952: optional extra field (4), file name (8), comment (16) and header checksum (2)
        int flags = in.getByte(start + 3);
        int at = start + GZIP_HEAD;
        if ((flags & 4) != 0) {
            at += 2 + (at + 2 <= end ? in.getUnsignedShortLE(at) : end);
        }
        for (int text = flags & 0x18; text != 0 && at < end; text &= text - 1) {
            int zero = in.indexOf(at, end, (byte) 0);
            at = zero < 0 ? end : zero + 1;
        }
        if ((flags & 2) != 0) {
            at += 2;
        }
        if (at >= end) {
            throw ServingException.invalidArgument("the gzip body is truncated");
        }
        return at;
    }

    private static int checkTrailer(ByteBuf in, int at, int end, ByteBuffer out) {
        if (end - at < 8) {
            throw ServingException.invalidArgument("the gzip body is truncated");
        }
        int size = out.remaining();
        CRC32 crc = new CRC32();
        crc.update(out);
        if (in.getIntLE(at) != (int) crc.getValue() || in.getIntLE(at + 4) != size) {
            throw ServingException.invalidArgument("the checksum of the gzip body is wrong");
        }
        return at + 8;
    }

    /** Compresses a text at the fastest level. */
    public byte[] deflate(byte[] text, int length) {
        boolean gzip = this == GZIP;
        Deflater deflater = new Deflater(Deflater.BEST_SPEED, gzip);
        try {
            deflater.setInput(text, 0, length);
            deflater.finish();
            byte[] out = new byte[length / 2 + 64];
            int n = 0;
            if (gzip) {
                out[0] = 0x1f;
                out[1] = (byte) 0x8b;
                out[2] = 8;
                out[9] = (byte) 0xff;
                n = GZIP_HEAD;
            }
            while (!deflater.finished()) {
                if (out.length - n < 16) {
                    out = Arrays.copyOf(out, out.length * 2);
                }
                n += deflater.deflate(out, n, out.length - n);
            }
            out = Arrays.copyOf(out, gzip ? n + 8 : n);
            if (gzip) {
                CRC32 crc = new CRC32();
                crc.update(text, 0, length);
                littleEndian(out, n, (int) crc.getValue());
                littleEndian(out, n + 4, length);
            }
            return out;
        } finally {
            deflater.end();
        }
    }

    private static void littleEndian(byte[] b, int at, int value) {
        b[at] = (byte) value;
        b[at + 1] = (byte) (value >> 8);
        b[at + 2] = (byte) (value >> 16);
        b[at + 3] = (byte) (value >> 24);
    }

    /** A direct buffer that grows up to a limit; its capacity is reserved in the budget. Confined to one thread. */
    public static final class Growing implements AutoCloseable {
        private final ByteBudget budget;
        private final int limit;
        private @Nullable ByteBuf buf;
        private @Nullable ByteBuffer free;

        public Growing(ByteBudget budget, int limit) {
            this.budget = budget;
            this.limit = limit;
        }

        /** Bytes written. */
        public int size() {
            return buf == null ? 0 : buf.writerIndex();
        }

        /** Bytes reserved in the budget. */
        public int reserved() {
            return buf == null ? 0 : buf.capacity();
        }

        /**
         * Ensures space for at least one more byte; grows to {@code desired} bytes in all where the limit allows it.
         */
        void ensureWritable(long desired) {
            int size = size();
            if (size < reserved()) {
                return;
            }
            // one byte more than the limit, so that a result of exactly the limit is distinguished from a larger one
            long most = (long) limit + 1;
            if (size >= most) {
                throw tooLarge();
            }
            int capacity = (int) Math.min(most, Math.max(Math.max(4096, desired), 2L * size));
            if (!budget.tryReserve(capacity)) {
                throw ServingException.of(
                        ErrorCode.RESOURCE_EXHAUSTED,
                        "cannot accept a body of more than " + size + " bytes: the server's limit of " + budget.limit()
                                + " bytes of requests in flight is reached",
                        "retry later");
            }
            ByteBuf bigger;
            try {
                bigger = GatheringWrite.exact(capacity);
            } catch (ServingException | Error e) {
                budget.release(capacity);
                throw e;
            }
            ByteBuf old = buf;
            buf = bigger;
            if (old != null) {
                bigger.writeBytes(old, 0, size);
                budget.release(old.capacity());
                old.release();
            }
        }

        private ServingException tooLarge() {
            return ServingException.of(
                    ErrorCode.RESOURCE_EXHAUSTED, "the body is larger than the limit of " + limit + " bytes");
        }

        /** The free part, to be written at its position; {@link #advance()} then adopts what was written. */
        ByteBuffer free() {
            ByteBuf b = java.util.Objects.requireNonNull(buf);
            ByteBuffer r = b.nioBuffer(b.writerIndex(), b.capacity() - b.writerIndex());
            free = r;
            return r;
        }

        void advance() {
            ByteBuf b = java.util.Objects.requireNonNull(buf);
            ByteBuffer r = java.util.Objects.requireNonNull(free);
            b.writerIndex(b.writerIndex() + r.position());
            if (b.writerIndex() > limit) {
                throw tooLarge();
            }
        }

        /** Appends {@code length} bytes of {@code in} and advances its reader index. */
        public void append(ByteBuf in, int length) {
            int left = length;
            while (left > 0) {
                ensureWritable((long) size() + left);
                ByteBuf b = java.util.Objects.requireNonNull(buf);
                int n = Math.min(left, b.capacity() - b.writerIndex());
                b.writeBytes(in, n);
                left -= n;
                if (b.writerIndex() > limit) {
                    throw tooLarge();
                }
            }
        }

        /** The bytes written from {@code from} on. */
        ByteBuffer view(int from) {
            ByteBuf b = buf;
            return b == null ? ByteBuffer.allocate(0) : b.nioBuffer(from, b.writerIndex() - from);
        }

        /** Hands the buffer over to the caller, together with its reservation in the budget. */
        public ByteBuf take() {
            ByteBuf b = buf;
            buf = null;
            return b == null ? io.netty.buffer.Unpooled.EMPTY_BUFFER : b;
        }

        @Override
        public void close() {
            ByteBuf b = buf;
            if (b != null) {
                buf = null;
                budget.release(b.capacity());
                b.release();
            }
        }
    }
}
