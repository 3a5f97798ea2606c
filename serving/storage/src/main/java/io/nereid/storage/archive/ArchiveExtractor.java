// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.archive;

import io.nereid.base.ServingException;
import io.nereid.storage.request.StorageOptions;
import java.io.BufferedInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.RandomAccessFile;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Enumeration;
import java.util.Locale;
import java.util.zip.GZIPInputStream;
import java.util.zip.ZipEntry;
import java.util.zip.ZipException;
import java.util.zip.ZipFile;
import org.apache.commons.compress.archivers.ArchiveException;
import org.apache.commons.compress.archivers.tar.TarArchiveEntry;
import org.apache.commons.compress.archivers.tar.TarConstants;

/**
 * Extracts one zip, tar or tar.gz archive into an {@link ExtractionDirectory}, which decides what is safe. Tar is read
 * with commons-compress, zip with the JDK, which keeps the directory of a zip as the bytes that it has in the file. No
 * entry is read as a whole. Confined to one thread.
 */
public final class ArchiveExtractor {
    private static final int BUFFER = 1 << 16;

    private final ExtractionDirectory tree;
    private final StorageOptions.Limits limits;
    private final String where;

    public ArchiveExtractor(ExtractionDirectory tree, StorageOptions.Limits limits, String where) {
        this.tree = tree;
        this.limits = limits;
        this.where = where;
    }

    /** Extracts an archive whose format follows from the name's extension. */
    public void archive(Path archive, String name) throws IOException {
        String lower = name.toLowerCase(Locale.ROOT);
        tree.packed(Files.size(archive));
        try {
            if (lower.endsWith(".zip")) {
                zip(archive);
            } else if (lower.endsWith(".tar")) {
                try (InputStream in = new BufferedInputStream(Files.newInputStream(archive), BUFFER)) {
                    tar(in);
                }
            } else {
                try (InputStream in =
                        new BufferedInputStream(new GZIPInputStream(Files.newInputStream(archive), BUFFER), BUFFER)) {
                    tar(in);
                }
            }
        } catch (UncheckedIOException e) {
            throw e.getCause();
        } catch (ArchiveException | ZipException | EOFException e) {
            throw ContentManifest.unsafe(
                    where, "it is damaged or its format does not match its name (" + e.getMessage() + ")");
        }
    }

    private void tar(InputStream in) throws IOException {
        TarEntryStream tar = new TarEntryStream(in, where);
        for (TarArchiveEntry entry = tar.next(); entry != null; entry = tar.next()) {
            String name = entry.getName();
            switch (entry.getLinkFlag()) {
                case TarConstants.LF_NORMAL, TarConstants.LF_OLDNORM, TarConstants.LF_CONTIG -> {
                    if (entry.isDirectory()) {
                        tree.directory(name);
                    } else {
                        boolean executable = entry.getMode() > 0 && (entry.getMode() & 0100) != 0;
                        tree.file(name, tar, entry.getSize(), executable);
                    }
                }
                case TarConstants.LF_DIR -> tree.directory(name);
                case TarConstants.LF_SYMLINK -> tree.link(name, entry.getLinkName());
                case TarConstants.LF_LINK -> tree.hardLink(name, entry.getLinkName());
                case TarConstants.LF_CHR, TarConstants.LF_BLK -> throw unsupported(name, "is a device");
                case TarConstants.LF_FIFO -> throw unsupported(name, "is a pipe");
                default ->
                    throw unsupported(
                            name,
                            "is of a kind that is not supported ('"
                                    + ExtractionDirectory.shown("" + (char) (entry.getLinkFlag() & 0xff)) + "')");
            }
        }
    }

    private ServingException unsupported(String name, String why) {
        return ContentManifest.unsafe(where, "'" + ExtractionDirectory.shown(name) + "' " + why);
    }

    private void zip(Path archive) throws IOException {
        checkDirectory(archive);
        try (ZipFile zip = new ZipFile(archive.toFile())) {
            if (zip.size() > limits.entries()) {
                throw tooMany(zip.size());
            }
            Enumeration<? extends ZipEntry> entries = zip.entries();
            while (entries.hasMoreElements()) {
                ZipEntry entry = entries.nextElement();
                if (entry.isDirectory()) {
                    tree.directory(entry.getName());
                    continue;
                }
                try (InputStream in = zip.getInputStream(entry)) {
                    if (in == null) {
                        throw new ZipException("an entry without content");
                    }
                    tree.file(entry.getName(), in, entry.getSize(), false);
                }
            }
        } catch (IllegalArgumentException e) {
            throw new ZipException("names that are not text");
        }
    }

    private ServingException tooMany(long entries) {
        return ContentManifest.unsafe(
                where, "it has " + entries + " entries; at most " + limits.entries() + " are taken");
    }

    /**
     * Checks the size of the zip's central directory before the JDK reads all of it into memory. Finds the
     * end-of-directory record in the last 65,557 bytes (22 bytes and a comment of at most 65,535), and the zip64 record
     * where the size does not fit 32 bits.
     */
    private void checkDirectory(Path archive) throws IOException {
        try (RandomAccessFile file = new RandomAccessFile(archive.toFile(), "r")) {
            long length = file.length();
            int tail = (int) Math.min(length, 65_557);
            byte[] end = new byte[tail];
            file.seek(length - tail);
            file.readFully(end);
            ByteBuffer view = ByteBuffer.wrap(end).order(ByteOrder.LITTLE_ENDIAN);
            int at = tail - 22;
            while (at >= 0 && view.getInt(at) != 0x06054b50) {
                at--;
            }
            if (at < 0) {
                throw new ZipException("no end of a zip");
            }
            long size = view.getInt(at + 12) & 0xffffffffL;
            if (size == 0xffffffffL && at >= 20) {
                long where64 = view.getInt(at - 20) == 0x07064b50 ? view.getLong(at - 12) : -1;
                if (where64 < 0 || where64 > length - 56) {
                    throw new ZipException("no zip64 end");
                }
                byte[] end64 = new byte[56];
                file.seek(where64);
                file.readFully(end64);
                size = ByteBuffer.wrap(end64).order(ByteOrder.LITTLE_ENDIAN).getLong(40);
            }
            if (size < 0 || size > limits.entries() * 512L) {
                throw ContentManifest.unsafe(
                        where, "its directory has " + size + " bytes, more than " + limits.entries() + " entries take");
            }
        }
    }
}
