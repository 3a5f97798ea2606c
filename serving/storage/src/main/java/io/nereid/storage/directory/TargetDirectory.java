// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.directory;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.storage.cache.CacheFileSystem;
import io.nereid.storage.cache.CacheReservation;
import io.nereid.storage.cache.DownloadTarget;
import io.nereid.storage.directory.TargetRecord.Source;
import io.nereid.storage.directory.TargetRecord.TargetFile;
import io.nereid.storage.object.ContentDigests;
import io.nereid.storage.request.StorageLease;
import io.nereid.storage.spi.StorageUri;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.AccessDeniedException;
import java.nio.file.AtomicMoveNotSupportedException;
import java.nio.file.FileSystemException;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.PosixFilePermission;
import java.util.ArrayList;
import java.util.Collection;
import java.util.EnumSet;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.function.Predicate;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A directory into which one source is fetched. Interrupted downloads and content under construction lie in
 * {@code .nereid-fetch.partial} below it, on the same file system, so that complete files move into place by renaming.
 * The file {@code .nereid-fetch} tells what each source has put there, so that a later fetch finds its content complete,
 * or removes what the source no longer has. Files of others stay, except those whose names the source has too. Nothing is
 * written through a symbolic link below the directory. One process uses the directory at a time, by a file lock.
 * Thread-safe: one lock.
 */
public final class TargetDirectory implements DownloadTarget, AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(TargetDirectory.class);
    private static final String PARTIAL = ".nereid-fetch.partial";
    private static final String LOCK = "lock";
    private static final String STAGING = "staging";

    private final Path directory;
    private final String id;
    private final CacheFileSystem disk;
    private final Path partial;
    private final FileChannel lockFile;

    private final Object lock = new Object();

    @GuardedBy("lock") private TargetRecord record;

    @GuardedBy("lock") private int staged;

    @GuardedBy("lock") private boolean published;

    private TargetDirectory(Path directory, String uri, CacheFileSystem disk, FileChannel lockFile) {
        this.directory = directory;
        this.id = id(uri);
        this.disk = disk;
        this.partial = directory.resolve(PARTIAL);
        this.lockFile = lockFile;
        this.record = TargetRecord.read(directory);
    }

    private static String id(String uri) {
        return ContentDigests.sha256(uri);
    }

    /**
     * Opens a directory for one source; creates it if it is absent.
     *
     * @throws ServingException FAILED_PRECONDITION when it cannot be written to, or another process fetches into it
     */
    public static TargetDirectory open(Path directory, String uri, CacheFileSystem disk) {
        try {
            Path real = real(directory);
            Path partial = real.resolve(PARTIAL);
            if (!Files.isDirectory(partial, LinkOption.NOFOLLOW_LINKS)) {
                Files.createDirectory(partial);
            }
            FileChannel file = lock(partial);
            TargetDirectory target = new TargetDirectory(real, uri, disk, file);
            target.removePartial(name -> name.startsWith(STAGING));
            return target;
        } catch (FileSystemException e) {
            throw ServingException.wrap(
                    ErrorCode.FAILED_PRECONDITION,
                    "the directory " + directory + " cannot be written to: "
                            + e.getClass().getSimpleName() + " " + e.getMessage(),
                    e instanceof AccessDeniedException
                            ? "mount it with write access for the user of this process"
                            : "name a directory that can be created and written to",
                    e);
        } catch (IOException e) {
            throw CacheFileSystem.failed("the directory " + directory + " cannot be opened", e);
        }
    }

    /**
     * The path of a directory without links; creates the directory if it is absent.
     *
     * @throws IOException when it cannot be created
     */
    public static Path real(Path directory) throws IOException {
        // A link to a directory is one, which createDirectories does not accept.
        return Files.isDirectory(directory)
                ? directory.toRealPath()
                : Files.createDirectories(directory.toAbsolutePath()).toRealPath();
    }

    private static FileChannel lock(Path partial) throws IOException {
        FileChannel file = FileChannel.open(
                partial.resolve(LOCK), StandardOpenOption.CREATE, StandardOpenOption.WRITE, LinkOption.NOFOLLOW_LINKS);
        FileLock held;
        try {
            held = file.tryLock();
        } catch (OverlappingFileLockException e) {
            held = null;
        } catch (IOException e) {
            LOG.debug("the file system of {} has no locks: {}", partial, e.getMessage());
            return file;
        }
        if (held == null) {
            file.close();
            throw ServingException.of(
                    ErrorCode.FAILED_PRECONDITION,
                    "another process fetches into " + partial.getParent(),
                    "wait for it, or name another directory");
        }
        return file;
    }

    /**
     * Removes what earlier fetches of other URIs have put into a directory. Does nothing where there was no fetch.
     *
     * @param uris those whose files stay
     */
    public static void retain(Path directory, Collection<String> uris, CacheFileSystem disk) {
        TargetRecord known = TargetRecord.read(directory);
        Set<String> ids = new HashSet<>();
        uris.forEach(uri -> ids.add(id(uri)));
        if (known.sources().stream().allMatch(source -> ids.contains(source.id()))) {
            return;
        }
        try (TargetDirectory target = open(directory, "", disk)) {
            for (Source source : known.sources()) {
                if (!ids.contains(source.id())) {
                    target.remove(source);
                }
            }
        } catch (IOException e) {
            throw CacheFileSystem.failed("what was fetched into " + directory + " earlier cannot be removed", e);
        }
    }

    private void remove(Source source) throws IOException {
        synchronized (lock) {
            TargetRecord rest = record.without(source.id());
            delete(source.files(), rest.paths());
            if (rest.sources().isEmpty()) {
                Files.deleteIfExists(directory.resolve(TargetRecord.NAME));
            } else {
                rest.write(directory);
            }
            record = rest;
        }
        removePartial(name -> name.startsWith(source.id()));
        LOG.info("removed what was fetched from {} into {} earlier", source.uri(), directory);
    }

    @Override
    public Path directory() {
        return directory;
    }

    @Override
    public String remedyWhenFull() {
        return "give the volume more space";
    }

    /** The number of files of the source. */
    public int files() {
        synchronized (lock) {
            Source source = record.source(id);
            return source == null ? 0 : source.files().size();
        }
    }

    /** Whether {@link #publish} has put files into the directory since it was opened. */
    public boolean published() {
        synchronized (lock) {
            return published;
        }
    }

    @Override
    public Optional<StorageLease> find(String name, boolean current) {
        synchronized (lock) {
            Source source = record.source(id);
            if (source == null || !source.names().contains(name) || !intact(source)) {
                return Optional.empty();
            }
            return Optional.of(new Lease(directory, source.digest(), source.bytes(), current));
        }
    }

    private boolean intact(Source source) {
        for (TargetFile file : source.files()) {
            Path path = existing(file.path());
            if (path == null || !file.equals(describe(path, file.path()))) {
                LOG.info("{} is not as it was fetched; it is fetched again", directory.resolve(file.path()));
                return false;
            }
        }
        return !source.files().isEmpty();
    }

    private static @Nullable TargetFile describe(Path path, String name) {
        try {
            BasicFileAttributes found =
                    Files.readAttributes(path, BasicFileAttributes.class, LinkOption.NOFOLLOW_LINKS);
            if (found.isSymbolicLink()) {
                return new TargetFile(name, 0, 0, Files.readSymbolicLink(path).toString());
            }
            return found.isRegularFile()
                    ? new TargetFile(
                            name, found.size(), found.lastModifiedTime().toMillis(), null)
                    : null;
        } catch (IOException e) {
            return null;
        }
    }

    /** The path of a recorded file, or null when a link or nothing stands where its directory was. */
    private @Nullable Path existing(String name) {
        Path path = directory;
        String[] segments = name.split("/", -1);
        for (int i = 0; i < segments.length; i++) {
            if (segments[i].isEmpty() || segments[i].equals(".") || segments[i].equals("..")) {
                return null;
            }
            if (!Files.isDirectory(path, LinkOption.NOFOLLOW_LINKS)) {
                return null;
            }
            path = path.resolve(segments[i]);
        }
        return Files.exists(path, LinkOption.NOFOLLOW_LINKS) ? path : null;
    }

    @Override
    public void remember(String name, String digest) {
        synchronized (lock) {
            Source source = record.source(id);
            if (source == null || source.names().contains(name)) {
                return;
            }
            List<String> names = new ArrayList<>(source.names());
            names.add(name);
            try {
                TargetRecord with = record.with(source.withNames(names));
                with.write(directory);
                record = with;
            } catch (IOException e) {
                LOG.warn("what was fetched into {} cannot be recorded: {}", directory, e.getMessage());
            }
        }
    }

    @Override
    public Path stagingDirectory() throws IOException {
        synchronized (lock) {
            return Files.createDirectory(partial.resolve(STAGING + staged++));
        }
    }

    @Override
    public Path enter(String key) throws IOException {
        String name = id + "-" + key;
        removePartial(other -> other.startsWith(id) && !other.equals(name));
        return Files.createDirectories(partial.resolve(name));
    }

    @Override
    public void leave(String key, boolean keep) {
        if (!keep) {
            CacheFileSystem.deleteQuietly(partial.resolve(id + "-" + key));
        }
    }

    @Override
    public CacheReservation space(String what) {
        return new CacheReservation() {
            @Override
            public void needs(long bytes, long present) {
                long usable;
                try {
                    usable = disk.usable(directory);
                } catch (IOException e) {
                    throw CacheFileSystem.failed("the free space of " + directory + " cannot be determined", e);
                }
                if (bytes - present > usable) {
                    throw ServingException.of(
                            ErrorCode.RESOURCE_EXHAUSTED,
                            what + " needs " + CacheFileSystem.shown(bytes - present) + " more in " + directory
                                    + ", which has " + CacheFileSystem.shown(usable) + " free",
                            remedyWhenFull());
                }
            }

            @Override
            public void close() {
                // Nothing is reserved: the directory belongs to this fetch.
            }
        };
    }

    /**
     * Moves all files into the directory. Content of the source that an earlier fetch left there and that the source no
     * longer has is removed. An interruption leaves a record without a name: the next fetch starts anew, and knows all
     * files of both contents.
     */
    @Override
    public StorageLease publish(Path stagingDirectory, String digest, long bytes, String uri) throws IOException {
        Path tree = stagingDirectory.resolve("tree");
        List<TargetFile> files = settle(tree, uri);
        Set<String> paths = new HashSet<>();
        files.forEach(file -> paths.add(file.path()));
        synchronized (lock) {
            Source old = record.source(id);
            List<TargetFile> gone = old == null
                    ? List.of()
                    : old.files().stream()
                            .filter(file -> !paths.contains(file.path()))
                            .toList();
            List<TargetFile> both = new ArrayList<>(files);
            both.addAll(gone);
            String shown = StorageUri.shown(uri);
            record = record.with(new Source(id, shown, digest, List.of(), both));
            record.write(directory);
            delete(gone, record.without(id).paths());
            move(tree, uri);
            record = record.with(new Source(id, shown, digest, List.of(), files));
            record.write(directory);
            published = true;
            return new Lease(directory, digest, bytes, true);
        }
    }

    /** Lists the files of a tree and makes all readable for the users of other containers. */
    private static List<TargetFile> settle(Path tree, String uri) throws IOException {
        List<TargetFile> files = new ArrayList<>();
        try (Stream<Path> found = Files.walk(tree)) {
            for (Path path : found.toList()) {
                String name = tree.relativize(path).toString();
                if (name.equals(TargetRecord.NAME) || name.equals(PARTIAL)) {
                    throw ServingException.invalidArgument(
                            StorageUri.shown(uri) + " holds '" + name + "', a name that the fetch itself uses",
                            "give it another name in the store");
                }
                boolean isDirectory = Files.isDirectory(path, LinkOption.NOFOLLOW_LINKS);
                if (!Files.isSymbolicLink(path)) {
                    open(path, isDirectory);
                }
                TargetFile file = isDirectory ? null : describe(path, name);
                if (file != null) {
                    files.add(file);
                }
            }
        }
        return files;
    }

    private static void open(Path path, boolean isDirectory) throws IOException {
        Set<PosixFilePermission> now;
        try {
            now = Files.getPosixFilePermissions(path);
        } catch (UnsupportedOperationException e) {
            return;
        }
        Set<PosixFilePermission> wanted = EnumSet.of(
                PosixFilePermission.OWNER_READ,
                PosixFilePermission.OWNER_WRITE,
                PosixFilePermission.GROUP_READ,
                PosixFilePermission.OTHERS_READ);
        if (isDirectory || now.contains(PosixFilePermission.OWNER_EXECUTE)) {
            wanted.add(PosixFilePermission.OWNER_EXECUTE);
            wanted.add(PosixFilePermission.GROUP_EXECUTE);
            wanted.add(PosixFilePermission.OTHERS_EXECUTE);
        }
        if (!now.containsAll(wanted)) {
            wanted.addAll(now);
            Files.setPosixFilePermissions(path, wanted);
        }
    }

    private void move(Path tree, String uri) throws IOException {
        Files.walkFileTree(tree, new SimpleFileVisitor<>() {
            @Override
            public FileVisitResult preVisitDirectory(Path from, BasicFileAttributes attributes) throws IOException {
                Path to = directory.resolve(tree.relativize(from).toString());
                if (!Files.exists(to, LinkOption.NOFOLLOW_LINKS)) {
                    Files.createDirectory(to);
                    open(to, true);
                } else if (!Files.isDirectory(to, LinkOption.NOFOLLOW_LINKS)) {
                    throw inTheWay(uri, to, "a directory");
                }
                return FileVisitResult.CONTINUE;
            }

            @Override
            public FileVisitResult visitFile(Path from, BasicFileAttributes attributes) throws IOException {
                Path to = directory.resolve(tree.relativize(from).toString());
                if (Files.isDirectory(to, LinkOption.NOFOLLOW_LINKS)) {
                    throw inTheWay(uri, to, "a file");
                }
                try {
                    Files.move(from, to, StandardCopyOption.ATOMIC_MOVE);
                } catch (AtomicMoveNotSupportedException e) {
                    // Another volume is mounted below the directory.
                    Files.move(from, to, StandardCopyOption.REPLACE_EXISTING);
                }
                return FileVisitResult.CONTINUE;
            }

            @Override
            public FileVisitResult postVisitDirectory(Path from, @Nullable IOException e) throws IOException {
                if (e != null) {
                    throw e;
                }
                sync(directory.resolve(tree.relativize(from).toString()));
                return FileVisitResult.CONTINUE;
            }
        });
    }

    /** Some file systems that volumes have cannot sync directories; a crash may then lose the last renames. */
    private static void sync(Path path) {
        try {
            CacheFileSystem.sync(path);
        } catch (IOException e) {
            LOG.debug("{} cannot be synced: {}", path, e.getMessage());
        }
    }

    private static ServingException inTheWay(String uri, Path path, String wanted) {
        boolean link = Files.isSymbolicLink(path);
        return ServingException.of(
                ErrorCode.FAILED_PRECONDITION,
                StorageUri.shown(uri) + " has " + wanted + " where " + path + " is "
                        + (link ? "a symbolic link" : wanted.equals("a file") ? "a directory" : "a file"),
                "remove it, or name an empty directory");
    }

    /** Deletes recorded files, and directories that become empty. */
    private void delete(List<TargetFile> files, Set<String> others) throws IOException {
        for (TargetFile file : files) {
            Path path = others.contains(file.path()) ? null : existing(file.path());
            if (path == null || Files.isDirectory(path, LinkOption.NOFOLLOW_LINKS)) {
                continue;
            }
            Files.delete(path);
            Path parent = path.getParent();
            while (parent != null && !parent.equals(directory) && isEmpty(parent)) {
                Files.delete(parent);
                parent = parent.getParent();
            }
        }
    }

    private static boolean isEmpty(Path path) throws IOException {
        try (Stream<Path> found = Files.list(path)) {
            return found.findAny().isEmpty();
        }
    }

    private void removePartial(Predicate<String> which) throws IOException {
        try (Stream<Path> found = Files.list(partial)) {
            for (Path path : found.toList()) {
                if (which.test(String.valueOf(path.getFileName()))) {
                    CacheFileSystem.delete(path);
                }
            }
        }
    }

    /** Releases the directory; nothing but a partial download and the record stays beside the files. */
    @Override
    public void close() {
        try {
            removePartial(name -> name.startsWith(STAGING));
            try (Stream<Path> found = Files.list(partial)) {
                if (found.allMatch(path -> path.endsWith(LOCK))) {
                    CacheFileSystem.delete(partial);
                }
            }
        } catch (IOException e) {
            LOG.warn("cannot clear {}: {}", partial, e.getMessage());
        }
        try {
            lockFile.close();
        } catch (IOException e) {
            LOG.warn("closing the lock of {}: {}", directory, e.getMessage());
        }
    }

    /** The content in the directory; nothing evicts it. */
    private record Lease(Path path, String digest, long bytes, boolean current) implements StorageLease {
        @Override
        public void close() {
            // The files belong to the directory.
        }

        @Override
        public String toString() {
            return "StorageLease[" + path + ", " + digest + "]";
        }
    }
}
