// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.archive;

import io.nereid.base.ServingException;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.zip.ZipException;
import org.apache.commons.compress.archivers.ArchiveException;
import org.apache.commons.compress.archivers.tar.TarArchiveEntry;
import org.apache.commons.compress.archivers.tar.TarArchiveInputStream;
import org.apache.commons.compress.archivers.tar.TarConstants;
import org.apache.commons.compress.archivers.tar.TarUtils;
import org.jspecify.annotations.Nullable;

/**
 * The entries of a tar archive in all formats of commons-compress: V7, ustar, GNU's long names, pax, star. The library
 * reads extended headers and maps of sparse files without a limit and calls itself for each header of an entry. This
 * class limits the bytes and the number of headers of one entry, verifies the checksum of every header, rejects sparse
 * files before their maps are read where possible, and detects an archive that ends within a header. Every fault of the
 * archive is an {@link ArchiveException}, {@link EOFException} or {@link ZipException}; an error of the disk is an
 * {@link UncheckedIOException}. Confined to one thread.
 */
final class TarEntryStream extends TarArchiveInputStream {
    /** The most bytes of all headers of one entry: names, links and attributes of any real file take far less. */
    static final int MOST_HEADER_BYTES = 4 << 20;
    /** The most headers of one entry: usually one, and at most three before it for name, link and attributes. */
    static final int MOST_HEADERS = 16;

    /** The position of the kind in a header. */
    private static final int KIND = 156;

    private final Source source;
    private final String where;
    private int headers;
    private boolean started;

    /**
     * Reads an archive.
     *
     * @param in the unpacked archive, which is closed with this stream
     * @param where without secrets, for messages
     */
    TarEntryStream(InputStream in, String where) {
        this(new Source(in, where), where);
    }

    private TarEntryStream(Source source, String where) {
        super(source, TarConstants.DEFAULT_BLKSIZE, TarConstants.DEFAULT_RCDSIZE, StandardCharsets.UTF_8.name(), true);
        this.source = source;
        this.where = where;
    }

    /** Skips what is left of the current entry and returns the next one, or null at the end. */
    @Nullable TarArchiveEntry next() throws IOException {
        try {
            if (getCurrentEntry() != null) {
                long unused = skip(Long.MAX_VALUE);
            }
            source.limit(MOST_HEADER_BYTES);
            TarArchiveEntry entry = getNextEntry();
            if (entry == null && !started) {
                throw new EOFException("no tar");
            }
            if (entry != null) {
                rejectSparse(entry);
            }
            return entry;
        } catch (ServingException | UncheckedIOException | EOFException | ZipException e) {
            throw e;
        } catch (IOException | RuntimeException e) {
            throw damaged(e);
        } finally {
            source.limit(Long.MAX_VALUE);
        }
    }

    private void rejectSparse(TarArchiveEntry entry) {
        if (entry.isSparse()
                || entry.getExtraPaxHeaders().keySet().stream().anyMatch(name -> name.startsWith("GNU.sparse."))) {
            throw sparse();
        }
    }

    private ServingException sparse() {
        return ContentManifest.unsafe(where, "it holds sparse files, which are not supported");
    }

    private static ArchiveException damaged(Exception e) {
        return new ArchiveException(String.valueOf(e.getMessage()), (Throwable) e);
    }

    /** The library calls this method once for each header of an entry, from within the call for the header before. */
    @Override
    public TarArchiveEntry getNextEntry() throws IOException {
        if (++headers > MOST_HEADERS) {
            throw ContentManifest.unsafe(where, "an entry has more than " + MOST_HEADERS + " headers");
        }
        try {
            return super.getNextEntry();
        } finally {
            headers--;
        }
    }

    @Override
    protected byte[] readRecord() throws IOException {
        byte[] block = super.readRecord();
        if (block == null) {
            if (getBytesRead() % getRecordSize() != 0) {
                throw new EOFException("a header is cut short");
            }
            return block;
        }
        if (isAtEOF() || isEOFRecord(block)) {
            started = true;
            return block;
        }
        if (!TarUtils.verifyCheckSum(block)) {
            throw new EOFException(started ? "a header is damaged" : "no tar");
        }
        started = true;
        if (block[KIND] == TarConstants.LF_GNUTYPE_SPARSE) {
            throw sparse();
        }
        return block;
    }

    @Override
    public int read(byte[] bytes, int from, int length) throws IOException {
        try {
            return super.read(bytes, from, length);
        } catch (ServingException | UncheckedIOException | EOFException | ZipException e) {
            throw e;
        } catch (IOException | RuntimeException e) {
            throw damaged(e);
        }
    }

    /** The unpacked archive: limits what one call of the library reads, and marks errors of the disk. */
    private static final class Source extends InputStream {
        private final InputStream in;
        private final String where;
        private long left = Long.MAX_VALUE;

        Source(InputStream in, String where) {
            this.in = in;
            this.where = where;
        }

        void limit(long bytes) {
            left = bytes;
        }

        @Override
        public int read() throws IOException {
            byte[] one = new byte[1];
            return read(one, 0, 1) < 0 ? -1 : one[0] & 0xff;
        }

        @Override
        public int read(byte[] bytes, int from, int length) throws IOException {
            if (left == 0 && length > 0) {
                throw ContentManifest.unsafe(
                        where, "an entry has headers of more than " + MOST_HEADER_BYTES + " bytes");
            }
            int n;
            try {
                n = in.read(bytes, from, (int) Math.min(length, left));
            } catch (ZipException | EOFException e) {
                throw e;
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
            left -= Math.max(0, n);
            return n;
        }

        @Override
        public int available() throws IOException {
            return in.available();
        }

        @Override
        public void close() throws IOException {
            in.close();
        }
    }
}
