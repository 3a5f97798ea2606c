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
 * The format of the store's files: a header, then records of marker, length, checksum (CRC-32C of length and payload)
 * and payload. A record is written and synced before the next one is started. So an invalid record before a valid one
 * is damage to acknowledged changes, while an invalid record at the end is a change that was never acknowledged and can
 * be truncated. Stateless.
 */
final class RecordFormat {
    /** Bytes of a record before its payload. */
    static final int OVERHEAD = 12;

    /** Bytes of the file's header. */
    static final int HEADER = 12;

    private static final byte[] MAGIC = "NEREIDST".getBytes(StandardCharsets.US_ASCII);
    private static final int FORMAT = 1;
    private static final int MARKER = 0xA5F00D5A;

    private RecordFormat() {}

    /** The header of a file. */
    static ByteBuffer header() {
        return ByteBuffer.allocate(HEADER).put(MAGIC).putInt(FORMAT).flip();
    }

    /** A record with this payload. */
    static ByteBuffer record(byte[] payload, int length) {
        ByteBuffer record = ByteBuffer.allocate(OVERHEAD + length);
        record.putInt(MARKER)
                .putInt(length)
                .putInt(checksum(payload, 0, length))
                .put(payload, 0, length);
        return record.flip();
    }

    /**
     * Reads all records of a file.
     *
     * @param tornEnd whether the last record may be incomplete, which is so for the newest log only
     * @param each receives the payloads
     * @return the end of the last valid record; 0 when the header is incomplete
     * @throws ServingException DATA_LOSS when the file is damaged
     */
    static int read(Path file, byte[] bytes, boolean tornEnd, Consumer<byte[]> each) {
        if (bytes.length < HEADER) {
            if (tornEnd) {
                return 0;
            }
            throw damaged(file, 0, "it is shorter than its header");
        }
        ByteBuffer in = ByteBuffer.wrap(bytes);
        byte[] magic = new byte[MAGIC.length];
        in.get(magic);
        int format = in.getInt();
        if (!java.util.Arrays.equals(magic, MAGIC)) {
            throw damaged(file, 0, "it does not begin with the store's signature");
        }
        if (format != FORMAT) {
            throw ServingException.of(
                    ErrorCode.FAILED_PRECONDITION,
                    "'" + file + "' has format " + format + "; this version reads format " + FORMAT,
                    "start the version of the server that wrote it");
        }
        int at = HEADER;
        while (at < bytes.length) {
            int length = length(bytes, at);
            if (length < 0) {
                if (!tornEnd || anyValid(bytes, at + 1)) {
                    throw damaged(file, at, "the checksum of a record does not match");
                }
                return at;
            }
            each.accept(java.util.Arrays.copyOfRange(bytes, at + OVERHEAD, at + OVERHEAD + length));
            at += OVERHEAD + length;
        }
        return at;
    }

    /** The payload length of the valid record that begins here, or -1. */
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

    /** Whether a valid record begins anywhere after an invalid one; if so, the invalid one had been acknowledged. */
    private static boolean anyValid(byte[] bytes, int from) {
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
                        + ", and it contains acknowledged changes there or after it",
                "no file was modified: restore the directory from a backup, or move '" + file.getParent()
                        + "' away to begin with an empty store and apply the resources again");
    }
}
