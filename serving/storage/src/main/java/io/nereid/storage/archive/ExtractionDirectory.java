// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.archive;

import io.nereid.base.ServingException;
import io.nereid.storage.cache.CacheFileSystem;
import io.nereid.storage.cache.CacheReservation;
import io.nereid.storage.object.ContentDigests;
import io.nereid.storage.object.GlobFilter;
import io.nereid.storage.object.ObjectPaths;
import io.nereid.storage.request.StorageOptions;
import io.nereid.storage.spi.CancellationToken;
import io.nereid.storage.transfer.RangeDownload;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermission;
import java.security.MessageDigest;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The directory into which archives and image layers are extracted. No entry can be written outside of it: unsafe names
 * are rejected, and symbolic links are created last, when no file can be written through them any more. For image
 * layers, whiteout files delete entries of lower layers. Confined to one thread.
 */
public final class ExtractionDirectory {
    private static final int CHUNK = 1 << 16;
    private static final long STEP = 16 << 20;
    private static final long RATIO_FROM = 64 << 20;
    /** The most bytes of a path: half of what Linux allows, since the directory's own path stands before it. */
    private static final int MOST_PATH = 2048;
    /** The most bytes of a name within a path, as file systems have it. */
    private static final int MOST_NAME = 255;

    private final Path root;
    private final String where;
    private final StorageOptions.Limits limits;
    private final CacheFileSystem disk;
    private final CacheReservation space;
    private final long base;
    private final CancellationToken cancel;
    private final ContentManifest manifest;
    private final GlobFilter patterns;
    private final boolean layered;
    private final @Nullable String only;
    private final Map<String, String> links = new LinkedHashMap<>();
    private final Map<String, FileSeen> files = new HashMap<>();
    private final byte[] buffer = new byte[CHUNK];
    private int entries;
    private long unpacked;
    private long packed;

    private record FileSeen(String sha256, long bytes) {}

    /**
     * A tree.
     *
     * @param base bytes that the space holds already beside the tree
     * @param only the directory of the archive that counts, or null for all; then later layers replace earlier ones
     */
    public ExtractionDirectory(
            Path root,
            String where,
            StorageOptions.Limits limits,
            CacheFileSystem disk,
            CacheReservation space,
            long base,
            CancellationToken cancel,
            ContentManifest manifest,
            GlobFilter patterns,
            @Nullable String only) {
        this.root = root;
        this.where = where;
        this.limits = limits;
        this.disk = disk;
        this.space = space;
        this.base = base;
        this.cancel = cancel;
        this.manifest = manifest;
        this.patterns = patterns;
        this.layered = only != null;
        this.only = only;
    }

    /** Adds the size of the next archive to the packed bytes, for the limit of the compression ratio. */
    void packed(long bytes) {
        packed += bytes;
    }

    private @Nullable String place(String name) {
        String safe = ObjectPaths.safe(layered && name.startsWith("/") ? name.substring(1) : name, where);
        checkLength(safe);
        if (only == null) {
            count();
            return safe;
        }
        if (safe.equals(".wh." + only)) {
            clearBelow("");
        }
        if (!safe.startsWith(only)) {
            return null;
        }
        count();
        if (safe.equals(only)) {
            return "";
        }
        return safe.startsWith(only + "/") ? safe.substring(only.length() + 1) : null;
    }

    private void checkLength(String path) {
        if (path.length() <= MOST_NAME / 3) {
            return;
        }
        if (path.getBytes(StandardCharsets.UTF_8).length > MOST_PATH) {
            throw ContentManifest.unsafe(where, "'" + shown(path) + "' is longer than " + MOST_PATH + " bytes");
        }
        for (String segment : path.split("/")) {
            if (segment.getBytes(StandardCharsets.UTF_8).length > MOST_NAME) {
                throw ContentManifest.unsafe(where, "'" + shown(segment) + "' is longer than " + MOST_NAME + " bytes");
            }
        }
    }

    private void count() {
        cancel.check();
        if (++entries > limits.entries()) {
            throw ContentManifest.unsafe(where, "it has more than " + limits.entries() + " entries");
        }
    }

    void directory(String name) throws IOException {
        String path = place(name);
        if (path != null && !path.isEmpty() && (patterns.isAll() || patterns.wants(path))) {
            mkdirs(path);
            manifest.directory(path);
        }
    }

    void file(String name, InputStream in, long size, boolean executable) throws IOException {
        String path = place(name);
        if (path == null) {
            return;
        }
        if (layered && whiteout(path)) {
            return;
        }
        if (path.isEmpty()) {
            throw ContentManifest.unsafe(where, "an entry has no name");
        }
        if (!patterns.wants(path)) {
            drain(in);
            return;
        }
        if (size > 0) {
            budget(size);
        }
        Path file = prepare(path);
        MessageDigest digest = ContentDigests.of("SHA-256");
        long written = 0;
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE)) {
            for (int n = in.read(buffer); n >= 0; n = in.read(buffer)) {
                cancel.check();
                budget(n);
                digest.update(buffer, 0, n);
                try {
                    disk.write(channel, ByteBuffer.wrap(buffer, 0, n), written);
                } catch (IOException e) {
                    throw new RangeDownload.DiskFailureException(e);
                }
                written += n;
                unpacked += n;
            }
            channel.force(true);
        }
        if (executable) {
            var permissions = EnumSet.copyOf(Files.getPosixFilePermissions(file));
            permissions.add(PosixFilePermission.OWNER_EXECUTE);
            Files.setPosixFilePermissions(file, permissions);
        }
        String sha256 = ContentDigests.hex(digest.digest());
        files.put(path, new FileSeen(sha256, written));
        manifest.file(path, sha256, written);
    }

    /** Reads a file that the patterns exclude, and counts it against the limits: it may be a decompression bomb. */
    private void drain(InputStream in) throws IOException {
        for (int n = in.read(buffer); n >= 0; n = in.read(buffer)) {
            budget(n);
            unpacked += n;
        }
    }

    private void budget(long more) {
        long then = unpacked + more;
        if (then < 0 || then > limits.bytes()) {
            throw ContentManifest.unsafe(
                    where,
                    "it unpacks to more than " + CacheFileSystem.shown(limits.bytes()) + ", the limit for archives");
        }
        if (then > RATIO_FROM && then / Math.max(1, packed) >= limits.ratio()) {
            throw ContentManifest.unsafe(where, "it unpacks to more than " + limits.ratio() + " times its size");
        }
        space.needs(base + (then + STEP - 1) / STEP * STEP, base + unpacked);
    }

    void link(String name, String target) {
        String path = place(name);
        if (path == null || path.isEmpty() || !patterns.wants(path)) {
            return;
        }
        if (target.isEmpty() || target.startsWith("/") || target.indexOf('\0') >= 0) {
            throw linkLeaves(name, target);
        }
        String parent = path.contains("/") ? path.substring(0, path.lastIndexOf('/')) : "";
        int depth = parent.isEmpty() ? 0 : parent.split("/").length;
        for (String segment : target.split("/")) {
            if (segment.equals("..")) {
                depth--;
            } else if (!segment.isEmpty() && !segment.equals(".")) {
                depth++;
            }
            if (depth < 0) {
                throw linkLeaves(name, target);
            }
        }
        if (layered) {
            clear(path);
        } else if (links.containsKey(path) || Files.exists(root.resolve(path), LinkOption.NOFOLLOW_LINKS)) {
            throw twice(path);
        }
        links.put(path, target);
    }

    /** A name for messages. */
    static String shown(String name) {
        String line = name.replaceAll("\\p{Cntrl}", "?");
        return line.length() > 200 ? line.substring(0, 200) + "..." : line;
    }

    private ServingException linkLeaves(String name, String target) {
        return ContentManifest.unsafe(
                where, "the link '" + shown(name) + "' leads out of the archive, to '" + shown(target) + "'");
    }

    private ServingException twice(String path) {
        return ContentManifest.unsafe(where, "'" + shown(path) + "' is in it twice");
    }

    void hardLink(String name, String target) throws IOException {
        String path = place(name);
        String other = place(target);
        if (path == null || path.isEmpty() || !patterns.wants(path)) {
            return;
        }
        FileSeen seen = other == null ? null : files.get(other);
        if (other == null || seen == null) {
            throw ContentManifest.unsafe(
                    where,
                    "the hard link '" + shown(name) + "' leads to '" + shown(target)
                            + "', which is not a file earlier in the archive");
        }
        budget(seen.bytes());
        unpacked += seen.bytes();
        Files.createLink(prepare(path), root.resolve(other));
        files.put(path, seen);
        manifest.file(path, seen.sha256(), seen.bytes());
    }

    /**
     * Prepares a new file: creates its directories, none of which may be a link, and makes sure that it does not exist.
     */
    private Path prepare(String path) throws IOException {
        int slash = path.lastIndexOf('/');
        if (slash > 0) {
            mkdirs(path.substring(0, slash));
        }
        if (layered) {
            clear(path);
        }
        Path file = root.resolve(path);
        if (links.containsKey(path) || Files.exists(file, LinkOption.NOFOLLOW_LINKS)) {
            throw twice(path);
        }
        return file;
    }

    private void mkdirs(String path) throws IOException {
        int slash = 0;
        while (slash >= 0) {
            slash = path.indexOf('/', slash + 1);
            String part = slash < 0 ? path : path.substring(0, slash);
            Path directory = root.resolve(part);
            if (layered && (links.containsKey(part) || Files.isRegularFile(directory, LinkOption.NOFOLLOW_LINKS))) {
                clear(part);
            }
            if (links.containsKey(part)) {
                throw ContentManifest.unsafe(where, "'" + shown(path) + "' goes through the link '" + part + "'");
            }
            if (Files.isRegularFile(directory, LinkOption.NOFOLLOW_LINKS)) {
                throw twice(part);
            }
            if (!Files.isDirectory(directory, LinkOption.NOFOLLOW_LINKS)) {
                Files.createDirectory(directory);
            }
        }
    }

    private boolean whiteout(String path) {
        String name = ObjectPaths.last(path);
        if (!name.startsWith(".wh.")) {
            return false;
        }
        String parent = path.contains("/") ? path.substring(0, path.lastIndexOf('/') + 1) : "";
        if (name.equals(".wh..wh..opq")) {
            String directory = parent.isEmpty() ? "" : parent.substring(0, parent.length() - 1);
            clearBelow(directory);
        } else {
            clear(parent + name.substring(4));
        }
        return true;
    }

    private void clearBelow(String directory) {
        Path path = directory.isEmpty() ? root : root.resolve(directory);
        try (var found = Files.isDirectory(path, LinkOption.NOFOLLOW_LINKS) ? Files.list(path) : null) {
            if (found != null) {
                for (Path child : found.toList()) {
                    clear(directory.isEmpty() ? "" + child.getFileName() : directory + "/" + child.getFileName());
                }
            }
        } catch (IOException e) {
            throw CacheFileSystem.failed("a layer of " + where + " cannot be applied", e);
        }
        links.keySet().removeIf(link -> directory.isEmpty() || link.startsWith(directory + "/"));
    }

    private void clear(String path) {
        try {
            CacheFileSystem.delete(root.resolve(path));
        } catch (IOException e) {
            throw CacheFileSystem.failed("a layer of " + where + " cannot be applied", e);
        }
        links.keySet().removeIf(link -> link.equals(path) || link.startsWith(path + "/"));
        files.keySet().removeIf(file -> file.equals(path) || file.startsWith(path + "/"));
        manifest.remove(path);
    }

    /**
     * Creates the symbolic links, then resolves each. A link is first checked by its text; only now, with all entries
     * present, can chains of links that leave the directory be detected.
     */
    public void finish() throws IOException {
        for (Map.Entry<String, String> link : links.entrySet()) {
            int slash = link.getKey().lastIndexOf('/');
            if (slash > 0) {
                mkdirs(link.getKey().substring(0, slash));
            }
            Path path = root.resolve(link.getKey());
            if (Files.exists(path, LinkOption.NOFOLLOW_LINKS)) {
                throw twice(link.getKey());
            }
            Files.createSymbolicLink(path, Path.of(link.getValue()));
        }
        Path real = root.toRealPath();
        for (Map.Entry<String, String> link : links.entrySet()) {
            Path target;
            try {
                target = root.resolve(link.getKey()).toRealPath();
            } catch (IOException e) {
                if (!patterns.isAll()) {
                    Files.delete(root.resolve(link.getKey()));
                    continue;
                }
                throw ContentManifest.unsafe(where, "the link '" + shown(link.getKey()) + "' leads nowhere");
            }
            if (!target.startsWith(real)) {
                throw linkLeaves(link.getKey(), link.getValue());
            }
            manifest.link(link.getKey(), link.getValue());
        }
        links.clear();
    }
}
