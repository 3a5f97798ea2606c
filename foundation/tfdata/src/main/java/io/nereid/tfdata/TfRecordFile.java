// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.tfdata;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.Closeable;
import java.io.Flushable;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;

/**
 * TFRecord files: a sequence of records, each with its length (8 bytes), a masked CRC-32C of the length, the bytes,
 * and a masked CRC-32C of the bytes, all little-endian. Stateless.
 *
 * <pre>{@code
 * try (TfRecordFile.Writer out = new TfRecordFile.Writer(file)) {
 *     out.write(record);
 * }
 * List<byte[]> records = TfRecordFile.readAll(file, 1_000);
 * }</pre>
 */
public final class TfRecordFile {
    private static final int MASK = 0xA282EAD8;

    private TfRecordFile() {}

    /**
     * Reads all records of a file.
     *
     * @param most the highest number of records that is accepted
     * @throws ServingException INVALID_ARGUMENT for more records; otherwise as {@link Reader#next}
     */
    public static List<byte[]> readAll(Path file, int most) {
        List<byte[]> records = new ArrayList<>();
        try (Reader reader = new Reader(file)) {
            for (byte[] record = reader.next(); record != null; record = reader.next()) {
                if (records.size() == most) {
                    throw ServingException.invalidArgument(
                            "more than " + most + " records in " + file + " (expected: at most " + most + ")");
                }
                records.add(record);
            }
        }
        return records;
    }

    private static int masked(CRC32C crc, byte[] bytes, int offset, int length) {
        crc.reset();
        crc.update(bytes, offset, length);
        return Integer.rotateRight((int) crc.getValue(), 15) + MASK;
    }

    /** Reads one file from its beginning. Confined to one thread. */
    public static final class Reader implements Closeable {
        private final String where;
        private final InputStream in;
        private final CRC32C crc = new CRC32C();
        private final byte[] head = new byte[12];
        private final long size;
        private long at;
        private long count;

        /**
         * Opens a file.
         *
         * @throws ServingException NOT_FOUND when the file does not exist or cannot be read
         */
        public Reader(Path file) {
            where = file.toString();
            try {
                size = Files.size(file);
                in = new BufferedInputStream(Files.newInputStream(file), 1 << 16);
            } catch (IOException e) {
                throw ServingException.wrap(ErrorCode.NOT_FOUND, "cannot read " + where + ": " + e, e);
            }
        }

        /**
         * Reads the next record; null at the end of the file.
         *
         * @throws ServingException DATA_LOSS for a truncated or damaged file; the message names the record and the
         *     byte
         */
        public byte @Nullable [] next() {
            try {
                int got = in.readNBytes(head, 0, 12);
                if (got == 0) {
                    return null;
                }
                if (got < 12) {
                    throw bad("the file ends inside a record's length");
                }
                ByteBuffer fields = ByteBuffer.wrap(head).order(ByteOrder.LITTLE_ENDIAN);
                if (masked(crc, head, 0, 8) != fields.getInt(8)) {
                    throw bad("the checksum of the record's length does not match");
                }
                long length = fields.getLong(0);
                if (length < 0 || length > size - at - 16) {
                    throw bad("the file ends inside a record of " + Long.toUnsignedString(length) + " bytes");
                }
                if (length > Integer.MAX_VALUE - 16) {
                    throw bad("a record of " + length + " bytes (expected: less than 2 GiB)");
                }
                byte[] record = in.readNBytes((int) length);
                if (record.length < length || in.readNBytes(head, 0, 4) < 4) {
                    throw bad("the file ends inside a record of " + length + " bytes");
                }
                if (masked(crc, record, 0, record.length) != fields.getInt(0)) {
                    throw bad("the checksum of the record's bytes does not match");
                }
                at += length + 16;
                count++;
                return record;
            } catch (IOException e) {
                throw ServingException.wrap(ErrorCode.UNAVAILABLE, "cannot read " + where + ": " + e, e);
            }
        }

        private ServingException bad(String what) {
            return ServingException.of(
                    ErrorCode.DATA_LOSS,
                    where + " is damaged at record " + count + " (byte " + at + "): " + what,
                    "the file must be an uncompressed TFRecord file; copy or write it again");
        }

        @Override
        public void close() {
            try {
                in.close();
            } catch (IOException e) {
                throw ServingException.wrap(ErrorCode.UNKNOWN, "cannot close " + where + ": " + e, e);
            }
        }
    }

    /** Writes records to a file. Confined to one thread. */
    public static final class Writer implements Closeable, Flushable {
        private final OutputStream out;
        private final CRC32C crc = new CRC32C();
        private final byte[] head = new byte[12];
        private final ByteBuffer fields = ByteBuffer.wrap(head).order(ByteOrder.LITTLE_ENDIAN);
        private long bytes;

        /** Opens a file; without options it is created or truncated. */
        public Writer(Path file, OpenOption... options) throws IOException {
            this(Files.newOutputStream(file, options));
        }

        /** Writes to a stream, which {@link #close} closes. */
        public Writer(OutputStream out) {
            this.out = new BufferedOutputStream(out, 1 << 16);
        }

        /** Appends a record. */
        public void write(byte[] record) throws IOException {
            write(record, 0, record.length);
        }

        /** Appends a record from a part of an array. */
        public void write(byte[] array, int offset, int length) throws IOException {
            fields.putLong(0, length);
            fields.putInt(8, masked(crc, head, 0, 8));
            out.write(head, 0, 12);
            out.write(array, offset, length);
            fields.putInt(0, masked(crc, array, offset, length));
            out.write(head, 0, 4);
            bytes += length + 16L;
        }

        /** The number of bytes written so far. */
        public long bytes() {
            return bytes;
        }

        @Override
        public void flush() throws IOException {
            out.flush();
        }

        @Override
        public void close() throws IOException {
            out.close();
        }
    }
}
