// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.store;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.function.Consumer;
import java.util.zip.CRC32C;

/**
 * The form of a file: a head, then frames of marker, length, checksum and payload. A frame is written and forced as a whole before
 * the next one is begun; so a damaged frame with a good one after it is damage to something that was acknowledged, and a
 * damaged one at the end is something that never was. Stateless.
 */
final class Frames {
    /** Bytes before a payload. */
    static final int OVERHEAD = 12;

    /** Bytes before the first frame. */
    static final int HEAD = 12;

    private static final byte[] MAGIC = "NEREIDST".getBytes(StandardCharsets.US_ASCII);
    private static final int FORMAT = 1;
    private static final int MARKER = 0xA5F00D5A;

    private Frames() {}

    /** The head of a file. */
    static ByteBuffer head() {
        return ByteBuffer.allocate(HEAD).put(MAGIC).putInt(FORMAT).flip();
    }

    /** A payload in its frame. */
    static ByteBuffer frame(byte[] payload, int length) {
        ByteBuffer frame = ByteBuffer.allocate(OVERHEAD + length);
        frame.putInt(MARKER).putInt(length).putInt(checksum(payload, 0, length)).put(payload, 0, length);
        return frame.flip();
    }

    /**
     * Tells every payload.
     *
     * @param tornEnd whether the last frame may be incomplete
     * @return where the last good frame ends; 0 when not even the head is complete
     * @throws ServingException DATA_LOSS when the file is damaged
     */
    static int read(Path file, byte[] bytes, boolean tornEnd, Consumer<byte[]> each) {
        if (bytes.length < HEAD) {
            if (tornEnd) {
                return 0;
            }
            throw damaged(file, 0, "it is shorter than its head");
        }
        ByteBuffer in = ByteBuffer.wrap(bytes);
        byte[] magic = new byte[MAGIC.length];
        in.get(magic);
        int format = in.getInt();
        if (!java.util.Arrays.equals(magic, MAGIC)) {
            throw damaged(file, 0, "it does not begin as a file of this store does");
        }
        if (format != FORMAT) {
            throw ServingException.of(
                    ErrorCode.FAILED_PRECONDITION,
                    "'" + file + "' has format " + format + "; this version reads format " + FORMAT,
                    "start the version of the server that wrote it");
        }
        int at = HEAD;
        while (at < bytes.length) {
            int length = length(bytes, at);
            if (length < 0) {
                if (!tornEnd || anyGood(bytes, at + 1)) {
                    throw damaged(file, at, "the checksum of a record does not fit");
                }
                return at;
            }
            each.accept(java.util.Arrays.copyOfRange(bytes, at + OVERHEAD, at + OVERHEAD + length));
            at += OVERHEAD + length;
        }
        return at;
    }

    /** The length of the good frame that begins here, or -1. */
    private static int length(byte[] bytes, int at) {
        if (bytes.length - at < OVERHEAD) {
            return -1;
        }
        ByteBuffer in = ByteBuffer.wrap(bytes, at, OVERHEAD);
        int marker = in.getInt();
        int length = in.getInt();
        int checksum = in.getInt();
        if (marker != MARKER || length < 0 || length > bytes.length - at - OVERHEAD) {
            return -1;
        }
        return checksum(bytes, at + OVERHEAD, length) == checksum ? length : -1;
    }

    private static boolean anyGood(byte[] bytes, int from) {
        for (int at = from; at <= bytes.length - OVERHEAD; at++) {
            if (bytes[at] == (byte) (MARKER >>> 24) && length(bytes, at) >= 0) {
                return true;
            }
        }
        return false;
    }

    private static int checksum(byte[] bytes, int offset, int length) {
        CRC32C crc = new CRC32C();
        crc.update(length >>> 24);
        crc.update(length >>> 16);
        crc.update(length >>> 8);
        crc.update(length);
        crc.update(bytes, offset, length);
        return (int) crc.getValue();
    }

    static ServingException damaged(Path file, int at, String how) {
        return ServingException.of(
                ErrorCode.DATA_LOSS,
                "'" + file + "' is damaged at byte " + at + ": " + how
                        + ", and changes that were acknowledged come after it or were in it",
                "nothing has been touched: put back a copy of the directory, or move '" + file.getParent()
                        + "' away to begin with an empty store and apply the resources again");
    }
}
