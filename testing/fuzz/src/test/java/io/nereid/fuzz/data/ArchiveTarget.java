// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.fuzz.data;

import io.nereid.fuzz.FuzzTarget;
import io.nereid.fuzz.InputFile;
import io.nereid.storage.archive.ArchiveExtractor;
import io.nereid.storage.archive.ContentManifest;
import io.nereid.storage.archive.ExtractionDirectory;
import io.nereid.storage.cache.CacheFileSystem;
import io.nereid.storage.cache.CacheReservation;
import io.nereid.storage.object.GlobFilter;
import io.nereid.storage.request.StorageOptions;
import io.nereid.storage.spi.CancellationToken;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import java.util.zip.GZIPOutputStream;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;

/**
 * An archive of a model: nothing is written outside the target folder, no link leads out of it, and no more bytes are written than
 * are allowed. Confined to one thread.
 */
public final class ArchiveTarget implements FuzzTarget {
    private static final StorageOptions.Limits LIMITS = new StorageOptions.Limits(50, 1 << 20, 100);
    private final String name;
    private final InputFile file;
    private final Path parent;

    /** @param name the name of the archive, which decides its format */
    public ArchiveTarget(String name) {
        this.name = name;
        this.file = new InputFile(name);
        this.parent = file.folder();
    }

    @Override
    public void read(byte[] input) throws IOException {
        Path archive = file.with(input);
        Path tree = Files.createDirectory(parent.resolve("tree"));
        try {
            ExtractionDirectory into = new ExtractionDirectory(
                    tree,
                    "file:///" + name,
                    LIMITS,
                    new CacheFileSystem(),
                    CacheReservation.ENDLESS,
                    input.length,
                    new CancellationToken(),
                    new ContentManifest(),
                    new GlobFilter(List.of(), List.of()),
                    null);
            try {
                new ArchiveExtractor(into, LIMITS, "file:///" + name).archive(archive, name);
                into.finish();
            } finally {
                check(tree);
            }
        } finally {
            CacheFileSystem.delete(tree);
        }
    }

    private void check(Path tree) throws IOException {
        try (Stream<Path> beside = Files.list(parent)) {
            if (beside.count() != 2) {
                throw new AssertionError("a file lies outside the folder of the archive");
            }
        }
        long bytes = 0;
        try (Stream<Path> all = Files.walk(tree)) {
            for (Path path : all.toList()) {
                if (Files.isSymbolicLink(path)) {
                    Path target =
                            path.resolveSibling(Files.readSymbolicLink(path)).normalize();
                    if (!target.startsWith(tree)) {
                        throw new AssertionError("the link " + path + " leads out of the folder, to " + target);
                    }
                } else if (Files.isRegularFile(path)) {
                    bytes += Files.size(path);
                }
            }
        }
        if (bytes > LIMITS.bytes()) {
            throw new AssertionError(bytes + " bytes are extracted, more than are allowed");
        }
    }

    @Override
    public List<byte[]> seeds() {
        try {
            return switch (name) {
                case "a.zip" -> List.of(zip());
                case "a.tar" -> List.of(tar());
                default -> List.of(gzip(tar()));
            };
        } catch (IOException e) {
            throw new java.io.UncheckedIOException(e);
        }
    }

    private static byte[] zip() throws IOException {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        try (ZipOutputStream zip = new ZipOutputStream(out)) {
            zip.putNextEntry(new ZipEntry("1/"));
            zip.putNextEntry(new ZipEntry("1/model.bin"));
            zip.write("hello hello hello".getBytes(StandardCharsets.US_ASCII));
            zip.putNextEntry(new ZipEntry("config.pbtxt"));
        }
        return out.toByteArray();
    }

    private static byte[] gzip(byte[] bytes) throws IOException {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        try (GZIPOutputStream gzip = new GZIPOutputStream(out)) {
            gzip.write(bytes);
        }
        return out.toByteArray();
    }

    /** A folder, a file, a symbolic link and a hard link in it. */
    private static byte[] tar() {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        entry(out, "1/", '5', "", "");
        entry(out, "1/model.bin", '0', "", "hello");
        entry(out, "1/link", '2', "model.bin", "");
        entry(out, "1/hard", '1', "1/model.bin", "");
        out.writeBytes(new byte[1024]);
        return out.toByteArray();
    }

    private static void entry(ByteArrayOutputStream out, String name, char type, String link, String content) {
        byte[] head = new byte[512];
        put(head, 0, name);
        put(head, 100, "0000644");
        put(head, 108, "0000000");
        put(head, 116, "0000000");
        put(head, 124, String.format(java.util.Locale.ROOT, "%011o", content.length()));
        put(head, 136, "00000000000");
        put(head, 148, "        ");
        head[156] = (byte) type;
        put(head, 157, link);
        put(head, 257, "ustar");
        put(head, 263, "00");
        int sum = 0;
        for (byte b : head) {
            sum += b & 0xff;
        }
        put(head, 148, String.format(java.util.Locale.ROOT, "%06o", sum));
        head[154] = 0;
        out.writeBytes(head);
        if (!content.isEmpty()) {
            byte[] block = new byte[512];
            put(block, 0, content);
            out.writeBytes(block);
        }
    }

    private static void put(byte[] head, int at, String text) {
        byte[] bytes = text.getBytes(StandardCharsets.US_ASCII);
        System.arraycopy(bytes, 0, head, at, bytes.length);
    }

    /** Buffers of the readers, and of each file that is written. */
    @Override
    public long allocationLimit(int length) {
        return (32L << 20) + 4_096L * length;
    }
}
