// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.cache;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.PosixFilePermission;
import java.util.EnumSet;
import java.util.Locale;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The file system operations of the cache, replaceable in tests that simulate a full disk. Thread-safe: stateless. */
public class CacheFileSystem {
    private static final Logger LOG = LoggerFactory.getLogger(CacheFileSystem.class);

    /** Free bytes of the file system. */
    public long usable(Path directory) throws IOException {
        return Files.getFileStore(directory).getUsableSpace();
    }

    /** Writes all of a buffer at a position. */
    public void write(FileChannel file, ByteBuffer bytes, long position) throws IOException {
        long at = position;
        while (bytes.hasRemaining()) {
            at += file.write(bytes, at);
        }
    }

    /** Whether a failure means that the disk is full. Java has no exception type for it, so the message is examined. */
    public static boolean full(Throwable failure) {
        for (Throwable t = failure; t != null; t = t.getCause()) {
            String message = t.getMessage();
            if (t instanceof IOException && message != null) {
                String lower = message.toLowerCase(Locale.ROOT);
                if (lower.contains("no space left on device") || lower.contains("disk quota exceeded")) {
                    return true;
                }
            }
        }
        return false;
    }

    public static ServingException failed(String what, IOException e) {
        return ServingException.wrap(
                ErrorCode.INTERNAL, what + ": " + e.getClass().getSimpleName() + " " + e.getMessage(), e);
    }

    /** Syncs a directory to disk, so that created and renamed entries survive a crash. */
    public static void sync(Path directory) throws IOException {
        try (FileChannel channel = FileChannel.open(directory, StandardOpenOption.READ)) {
            channel.force(true);
        }
    }

    /** Writes a small file atomically: after a crash it has either the old or the new content. */
    public static void replace(Path file, byte[] bytes) throws IOException {
        Path parent = file.toAbsolutePath().getParent();
        if (parent == null) {
            throw new IOException(file + " has no directory");
        }
        Path fresh = Files.createTempFile(parent, ".new", "");
        try (FileChannel channel = FileChannel.open(fresh, StandardOpenOption.WRITE)) {
            ByteBuffer buffer = ByteBuffer.wrap(bytes);
            while (buffer.hasRemaining()) {
                channel.write(buffer);
            }
            channel.force(true);
        }
        Files.move(fresh, file, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
        sync(parent);
    }

    /** Deletes a file or a directory recursively, without following links. Ignores files that do not exist. */
    public static void delete(Path path) throws IOException {
        if (!Files.exists(path, java.nio.file.LinkOption.NOFOLLOW_LINKS)) {
            return;
        }
        Files.walkFileTree(path, new SimpleFileVisitor<>() {
            @Override
            public FileVisitResult visitFile(Path file, BasicFileAttributes attributes) throws IOException {
                Files.deleteIfExists(file);
                return FileVisitResult.CONTINUE;
            }

            @Override
            public FileVisitResult visitFileFailed(Path file, IOException e) throws IOException {
                if (e instanceof NoSuchFileException) {
                    return FileVisitResult.CONTINUE;
                }
                throw e;
            }

            @Override
            public FileVisitResult postVisitDirectory(Path directory, @Nullable IOException e) throws IOException {
                Files.deleteIfExists(directory);
                return FileVisitResult.CONTINUE;
            }
        });
    }

    /** As {@link #delete}, but logs a failure. */
    public static void deleteQuietly(Path path) {
        try {
            delete(path);
        } catch (IOException e) {
            LOG.warn("cannot delete {}: {}", path, e.getMessage());
        }
    }

    /** Bytes of all files below. */
    static long size(Path path) throws IOException {
        long[] size = {0};
        if (Files.exists(path)) {
            Files.walkFileTree(path, new SimpleFileVisitor<>() {
                @Override
                public FileVisitResult visitFile(Path file, BasicFileAttributes attributes) {
                    size[0] += attributes.size();
                    return FileVisitResult.CONTINUE;
                }
            });
        }
        return size[0];
    }

    /** A number of bytes in human-readable form. */
    public static String shown(long bytes) {
        if (bytes < 1024) {
            return bytes + " B";
        }
        int power = 0;
        double value = bytes;
        while (value >= 1024 && power < 4) {
            value /= 1024;
            power++;
        }
        return String.format(Locale.ROOT, "%.1f %ciB", value, "KMGT".charAt(power - 1));
    }

    /** Makes a shared file read-only, so that no process changes it by mistake. */
    public static void protect(Path file) throws IOException {
        Set<PosixFilePermission> now = Files.getPosixFilePermissions(file);
        Set<PosixFilePermission> then = EnumSet.of(
                PosixFilePermission.OWNER_READ, PosixFilePermission.GROUP_READ, PosixFilePermission.OTHERS_READ);
        if (now.contains(PosixFilePermission.OWNER_EXECUTE)) {
            then.add(PosixFilePermission.OWNER_EXECUTE);
            then.add(PosixFilePermission.GROUP_EXECUTE);
            then.add(PosixFilePermission.OTHERS_EXECUTE);
        }
        Files.setPosixFilePermissions(file, then);
    }
}
