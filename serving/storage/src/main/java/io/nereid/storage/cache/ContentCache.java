// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.cache;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.storage.request.StorageJson;
import io.nereid.storage.request.StorageLease;
import io.nereid.storage.request.StorageOptions;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileTime;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The content-addressed cache on disk. {@code content/DIGEST/{tree,about.json}} holds complete artifacts,
 * {@code index/} maps the key of a listing to a digest, {@code partial/} holds interrupted downloads, and {@code temp/}
 * artifacts under construction. An artifact moves into {@code content} by one atomic rename, so it is always complete,
 * also after a crash. When the quota or the disk is full, partial downloads are evicted first, then the least recently
 * used artifact without a lease. One process owns the directory, by a file lock. Thread-safe: one lock, held for
 * bookkeeping and eviction only.
 */
public final class ContentCache implements DownloadTarget, AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(ContentCache.class);
    private static final long PARTIAL_DAYS = 7;

    private final StorageOptions options;
    private final Clock clock;
    private final CacheFileSystem disk;
    private final Path content;
    private final Path index;
    private final Path partial;
    private final Path temp;
    private final FileChannel lockFile;
    private final AtomicLong names = new AtomicLong();

    private final Object lock = new Object();

    @GuardedBy("lock") private final Map<String, Entry> entries = new HashMap<>();
    /** Idle partial downloads and their bytes. */
    @GuardedBy("lock") private final Map<String, Long> idle = new HashMap<>();

    @GuardedBy("lock") private long contentBytes;

    @GuardedBy("lock") private long idleBytes;

    @GuardedBy("lock") private long spaceBytes;

    /** A cached artifact. Guarded by the lock. */
    private static final class Entry {
        final String digest;
        final long bytes;
        int leases;
        long lastMillis;

        Entry(String digest, long bytes, long lastMillis) {
            this.digest = digest;
            this.bytes = bytes;
            this.lastMillis = lastMillis;
        }
    }

    public ContentCache(StorageOptions options, Clock clock, CacheFileSystem disk) {
        this.options = options;
        this.clock = clock;
        this.disk = disk;
        Path root = options.cache().toAbsolutePath();
        this.content = root.resolve("content");
        this.index = root.resolve("index");
        this.partial = root.resolve("partial");
        this.temp = root.resolve("temp");
        FileChannel file = null;
        try {
            Files.createDirectories(root);
            file = FileChannel.open(root.resolve("lock"), StandardOpenOption.CREATE, StandardOpenOption.WRITE);
            FileLock held = tryLock(file);
            if (held == null) {
                throw ServingException.of(
                        ErrorCode.FAILED_PRECONDITION,
                        "the storage cache " + root + " is in use by another process",
                        "give each server a cache directory of its own");
            }
            CacheFileSystem.delete(temp);
            for (Path directory : List.of(content, index, partial, temp)) {
                Files.createDirectories(directory);
            }
            recover();
        } catch (IOException | ServingException e) {
            closeQuietly(file);
            if (e instanceof ServingException failure) {
                throw failure;
            }
            throw CacheFileSystem.failed("the storage cache " + root + " cannot be opened", (IOException) e);
        }
        this.lockFile = file;
    }

    private static @Nullable FileLock tryLock(FileChannel file) throws IOException {
        try {
            return file.tryLock();
        } catch (OverlappingFileLockException e) {
            return null;
        }
    }

    private static void closeQuietly(@Nullable FileChannel file) {
        try {
            if (file != null) {
                file.close();
            }
        } catch (IOException e) {
            LOG.warn("closing the lock of the cache: {}", e.getMessage());
        }
    }

    @GuardedBy("lock") private void recover() throws IOException {
        try (Stream<Path> found = Files.list(content)) {
            for (Path directory : found.toList()) {
                Path about = directory.resolve("about.json");
                String digest = "sha256:" + directory.getFileName();
                try {
                    JsonNode description = StorageJson.read(Files.readString(about), "about.json");
                    long bytes = description.path("bytes").asLong();
                    entries.put(
                            digest,
                            new Entry(
                                    digest,
                                    bytes,
                                    Files.getLastModifiedTime(about).toMillis()));
                    contentBytes += bytes;
                } catch (IOException | ServingException e) {
                    LOG.warn("the cache deletes the damaged entry {}: {}", directory, e.getMessage());
                    CacheFileSystem.delete(directory);
                }
            }
        }
        long oldest = clock.millis() - PARTIAL_DAYS * 24 * 3600 * 1000;
        try (Stream<Path> found = Files.list(partial)) {
            for (Path directory : found.toList()) {
                if (Files.getLastModifiedTime(directory).toMillis() < oldest) {
                    CacheFileSystem.delete(directory);
                } else {
                    long bytes = CacheFileSystem.size(directory);
                    idle.put(String.valueOf(directory.getFileName()), bytes);
                    idleBytes += bytes;
                }
            }
        }
        try (Stream<Path> found = Files.list(index)) {
            for (Path file : found.toList()) {
                if (indexed(file).filter(entries::containsKey).isEmpty()) {
                    Files.deleteIfExists(file);
                }
            }
        }
    }

    private static Optional<String> indexed(Path file) {
        try {
            return Optional.of(Files.readString(file).trim());
        } catch (IOException e) {
            return Optional.empty();
        }
    }

    @Override
    public Path directory() {
        return options.cache();
    }

    @Override
    public String remedyWhenFull() {
        return "free some disk, or move the storage cache";
    }

    /** Returns a lease on the artifact that an index name maps to, if it is still cached. */
    @Override
    public Optional<StorageLease> find(String name, boolean current) {
        Optional<String> digest = indexed(index.resolve(name));
        if (digest.isEmpty()) {
            return Optional.empty();
        }
        synchronized (lock) {
            Entry entry = entries.get(digest.get());
            return entry == null ? Optional.empty() : Optional.of(lease(entry, current));
        }
    }

    /** Maps an index name to a digest. A failure is only logged, since the index is an optimization. */
    @Override
    public void remember(String name, String digest) {
        try {
            if (!indexed(index.resolve(name)).equals(Optional.of(digest))) {
                CacheFileSystem.replace(index.resolve(name), digest.getBytes(StandardCharsets.US_ASCII));
            }
        } catch (IOException e) {
            LOG.warn("the cache cannot write its index: {}", e.getMessage());
        }
    }

    public StorageLease again(StorageLease stored, boolean current) {
        synchronized (lock) {
            Entry entry = entries.get(stored.digest());
            if (entry == null) {
                throw new IllegalStateException("a lease holds " + stored.digest());
            }
            return lease(entry, current);
        }
    }

    /** Creates a temporary directory in which an artifact is built before {@link #publish}. */
    @Override
    public Path stagingDirectory() throws IOException {
        return Files.createDirectory(temp.resolve("w" + names.incrementAndGet()));
    }

    /** Returns the directory of a partial download, created if absent; the caller owns it until {@link #leave}. */
    @Override
    public Path enter(String key) throws IOException {
        synchronized (lock) {
            Long was = idle.remove(key);
            idleBytes -= was == null ? 0 : was;
        }
        return Files.createDirectories(partial.resolve(key));
    }

    /** Returns the directory of a partial download to the cache, which keeps it for the next attempt or deletes it. */
    @Override
    public void leave(String key, boolean keep) {
        Path directory = partial.resolve(key);
        long bytes = 0;
        if (keep) {
            try {
                bytes = CacheFileSystem.size(directory);
            } catch (IOException e) {
                LOG.warn("cannot measure {}: {}", directory, e.getMessage());
            }
        }
        if (!keep) {
            CacheFileSystem.deleteQuietly(directory);
        }
        synchronized (lock) {
            if (keep) {
                idle.put(key, bytes);
                idleBytes += bytes;
            }
        }
    }

    /**
     * Moves a temporary directory with the artifact in {@code tree} into the cache and returns a lease on it. If the
     * same content is cached already, the existing copy is used. The files become read-only: several services share them.
     */
    @Override
    public StorageLease publish(Path stagingDirectory, String digest, long bytes, String uri) throws IOException {
        protect(stagingDirectory.resolve("tree"));
        String name = digest.substring(digest.indexOf(':') + 1);
        ObjectNode about = StorageJson.object();
        about.put("digest", digest);
        about.put("bytes", bytes);
        about.put("uri", uri);
        CacheFileSystem.replace(
                stagingDirectory.resolve("about.json"), about.toString().getBytes(StandardCharsets.UTF_8));
        CacheFileSystem.sync(stagingDirectory);
        synchronized (lock) {
            Entry known = entries.get(digest);
            if (known == null) {
                Path target = content.resolve(name);
                CacheFileSystem.delete(target);
                Files.move(stagingDirectory, target, StandardCopyOption.ATOMIC_MOVE);
                CacheFileSystem.sync(content);
                known = new Entry(digest, bytes, clock.millis());
                entries.put(digest, known);
                contentBytes += bytes;
            }
            return lease(known, true);
        }
    }

    /** Makes all files read-only and syncs the directories to disk. */
    private static void protect(Path tree) throws IOException {
        try (Stream<Path> found = Files.walk(tree)) {
            for (Path path : found.toList()) {
                if (Files.isDirectory(path, LinkOption.NOFOLLOW_LINKS)) {
                    CacheFileSystem.sync(path);
                } else if (!Files.isSymbolicLink(path)) {
                    CacheFileSystem.protect(path);
                }
            }
        }
    }

    private StorageLease lease(Entry entry, boolean current) {
        entry.leases++;
        touch(entry);
        return new Lease(entry, current);
    }

    private void touch(Entry entry) {
        entry.lastMillis = clock.millis();
        try {
            Files.setLastModifiedTime(directory(entry).resolve("about.json"), FileTime.fromMillis(entry.lastMillis));
        } catch (IOException e) {
            LOG.warn("cannot mark {} as used: {}", entry.digest, e.getMessage());
        }
    }

    private Path directory(Entry entry) {
        return content.resolve(entry.digest.substring(entry.digest.indexOf(':') + 1));
    }

    /** Creates a reservation for a download; {@code what} names it in error messages. */
    @Override
    public CacheReservation space(String what) {
        return new Reservation(what);
    }

    /** Bytes of artifacts, partial downloads and reservations. */
    public long held() {
        synchronized (lock) {
            return contentBytes + idleBytes + spaceBytes;
        }
    }

    @GuardedBy("lock") private void take(String what, long now, long more, long unwritten) {
        // First the quota, then the free space of the disk. Only bytes that are not yet written need free space.
        while (contentBytes + idleBytes + spaceBytes + more > options.quotaBytes()) {
            if (!evictOne()) {
                throw ServingException.of(
                        ErrorCode.RESOURCE_EXHAUSTED,
                        what + " needs " + CacheFileSystem.shown(now + more) + ", and the storage cache of "
                                + CacheFileSystem.shown(options.quotaBytes()) + " holds "
                                + CacheFileSystem.shown(contentBytes + spaceBytes - now) + " that is in use",
                        "raise the quota of the storage cache, or delete services");
            }
        }
        long usable = usable();
        while (usable - options.keepFreeBytes() < unwritten) {
            if (!evictOne()) {
                throw ServingException.of(
                        ErrorCode.RESOURCE_EXHAUSTED,
                        what + " needs " + CacheFileSystem.shown(unwritten) + " more on the disk of "
                                + options.cache()
                                + ", which has " + CacheFileSystem.shown(usable) + " free, of which "
                                + CacheFileSystem.shown(options.keepFreeBytes()) + " stay free",
                        "free some disk, or move the storage cache");
            }
            usable = usable();
        }
        spaceBytes += more;
    }

    private long usable() {
        try {
            return disk.usable(options.cache());
        } catch (IOException e) {
            throw CacheFileSystem.failed("the free space of " + options.cache() + " cannot be determined", e);
        }
    }

    /**
     * Evicts an idle partial download, else the least recently used artifact without a lease. False if there is
     * neither.
     */
    @GuardedBy("lock") private boolean evictOne() {
        String rest = idle.keySet().stream().findFirst().orElse(null);
        if (rest != null) {
            Long bytes = idle.remove(rest);
            idleBytes -= bytes == null ? 0 : bytes;
            CacheFileSystem.deleteQuietly(partial.resolve(rest));
            return true;
        }
        Entry oldest = entries.values().stream()
                .filter(entry -> entry.leases == 0)
                .min(Comparator.comparingLong(entry -> entry.lastMillis))
                .orElse(null);
        if (oldest == null) {
            return false;
        }
        LOG.info("the storage cache evicts {} ({})", oldest.digest, CacheFileSystem.shown(oldest.bytes));
        entries.remove(oldest.digest);
        contentBytes -= oldest.bytes;
        Path away = temp.resolve("d" + names.incrementAndGet());
        try {
            Files.move(directory(oldest), away, StandardCopyOption.ATOMIC_MOVE);
            CacheFileSystem.delete(away);
        } catch (IOException e) {
            LOG.warn("cannot evict {}: {}", oldest.digest, e.getMessage());
        }
        return true;
    }

    /** Releases the lock of the directory. Leases no longer protect from eviction by another process. */
    @Override
    public void close() {
        closeQuietly(lockFile);
    }

    private final class Reservation implements CacheReservation {
        private final String what;

        @GuardedBy("lock") private long taken;

        @GuardedBy("lock") private boolean closed;

        Reservation(String what) {
            this.what = what;
        }

        @Override
        public void needs(long bytes, long present) {
            synchronized (lock) {
                // A part of an interrupted download may still run when the download has closed its reservation.
                if (!closed && bytes > taken) {
                    take(what, taken, bytes - taken, Math.max(0, bytes - present));
                    taken = bytes;
                }
            }
        }

        @Override
        public void close() {
            synchronized (lock) {
                spaceBytes -= taken;
                taken = 0;
                closed = true;
            }
        }
    }

    private final class Lease implements StorageLease {
        private final Entry entry;
        private final boolean current;
        private final AtomicBoolean closed = new AtomicBoolean();

        Lease(Entry entry, boolean current) {
            this.entry = entry;
            this.current = current;
        }

        @Override
        public Path path() {
            return directory(entry).resolve("tree");
        }

        @Override
        public String digest() {
            return entry.digest;
        }

        @Override
        public long bytes() {
            return entry.bytes;
        }

        @Override
        public boolean current() {
            return current;
        }

        @Override
        public void close() {
            if (closed.compareAndSet(false, true)) {
                synchronized (lock) {
                    entry.leases--;
                    touch(entry);
                }
            }
        }

        @Override
        public String toString() {
            return "StorageLease[" + path() + ", " + entry.digest + "]";
        }
    }
}
