// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnx.engine;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.io.IOException;
import java.io.InputStream;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.ReentrantLock;
import java.util.stream.Stream;

/**
 * The engines and timings that TensorRT makes of one model on one kind of GPU, kept on disk. Thread-safe by its lock.
 *
 * <p>ONNX Runtime writes the files of its cache in place and names an engine without the weights of the model, so that two
 * processes must not use one directory, and new weights must have another one. Here a key covers everything that an engine
 * depends on ({@link #key}), and the cache is two directories below its root: {@code KEY}, which all processes share and in
 * which files only appear complete, by a rename; and {@code .work-KEY-…} of one session, in which ONNX Runtime writes.
 * {@link #open} copies the shared files to the session's, and the new ones back, as {@link #close} does.
 *
 * <p>{@link #open} holds a lock of the key, of the file {@code KEY.lock}, until the session is open: a process that loads the same
 * model meanwhile waits, and then finds the engine instead of building it again. A process that ends without closing leaves its directory,
 * whose own lock it then no longer has; the next {@link #open} removes it.
 */
public final class EngineCache implements AutoCloseable {
    private static final Logger LOG = System.getLogger(EngineCache.class.getName());
    /** The option that names the directory. */
    public static final String DIRECTORY_OPTION = "trt_engine_cache_path";

    private static final String WORK = ".work-";
    private static final String IN_USE = "in-use.lock";

    /** A file lock belongs to the process, so threads of this one need their own. */
    private static final Map<Path, ReentrantLock> OF_PROCESS = new ConcurrentHashMap<>();

    /** The directories of this process's sessions. Their locks must not be tried: to close a file drops every lock of the process on it. */
    private static final Set<Path> IN_USE_HERE = ConcurrentHashMap.newKeySet();

    private final Path shared;
    private final Path lockFile;
    private final Path work;
    private final FileChannel inUse;

    private EngineCache(Path shared, Path lockFile, Path work, FileChannel inUse) {
        this.shared = shared;
        this.lockFile = lockFile;
        this.work = work;
        this.inUse = inUse;
    }

    /**
     * The key of engines: a hash of the model's files and of all that TensorRT builds for.
     *
     * @param files the model's file and its external weights
     * @param parts the GPU, the versions of the libraries and the options, in a fixed order
     */
    public static String key(List<Path> files, List<String> parts) throws IOException {
        try {
            MessageDigest digest = MessageDigest.getInstance("SHA-256");
            byte[] buffer = new byte[1 << 16];
            for (Path file : files) {
                digest.update((file.getFileName() + " " + Files.size(file) + "\n").getBytes(StandardCharsets.UTF_8));
                try (InputStream in = Files.newInputStream(file)) {
                    for (int n = in.read(buffer); n >= 0; n = in.read(buffer)) {
                        digest.update(buffer, 0, n);
                    }
                }
            }
            for (String part : parts) {
                digest.update((part + "\n").getBytes(StandardCharsets.UTF_8));
            }
            return HexFormat.of().formatHex(digest.digest(), 0, 16);
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException(e);
        }
    }

    /** The lock of a key; its holder may be the only one that builds engines of it. */
    private record Held(ReentrantLock lock, FileChannel channel) implements AutoCloseable {
        static Held take(Path file) throws IOException {
            ReentrantLock lock = OF_PROCESS.computeIfAbsent(file, path -> new ReentrantLock());
            lock.lock();
            boolean held = false;
            try {
                FileChannel channel = FileChannel.open(file, StandardOpenOption.CREATE, StandardOpenOption.WRITE);
                try {
                    if (channel.tryLock() == null) {
                        LOG.log(
                                Level.INFO,
                                "another process builds engines of TensorRT in " + file + "; waiting for it");
                        FileLock unused = channel.lock();
                    }
                    held = true;
                    return new Held(lock, channel);
                } finally {
                    if (!held) {
                        channel.close();
                    }
                }
            } finally {
                if (!held) {
                    lock.unlock();
                }
            }
        }

        @Override
        public void close() throws IOException {
            try {
                channel.close();
            } finally {
                lock.unlock();
            }
        }
    }

    /** Makes a session of a model with the cache's directory. */
    public interface Opener<T> {
        T open(Path directory) throws Exception;
    }

    /**
     * Opens the cache, and calls {@code opener} while no other process can build engines of the key.
     *
     * @param directory the directory of all caches, which is created
     * @param opener makes a session; the cache is then closed after the session. If it fails, the cache is closed
     * @return what {@code opener} has returned
     * @throws ServingException FAILED_PRECONDITION when the directory cannot be used
     */
    public static <T> Opened<T> open(Path directory, String key, Opener<T> opener) throws Exception {
        Path root = directory.toAbsolutePath().normalize();
        Path file = root.resolve(key + ".lock");
        EngineCache cache;
        Held held;
        try {
            Files.createDirectories(root);
            held = Held.take(file);
        } catch (IOException e) {
            throw unusable(root, e);
        }
        try {
            try {
                cache = begin(root, key, file);
            } catch (IOException e) {
                throw unusable(root, e);
            }
            boolean opened = false;
            try {
                T session = opener.open(cache.work);
                opened = true;
                cache.publishHeld();
                return new Opened<>(session, cache);
            } finally {
                if (!opened) {
                    cache.discard();
                }
            }
        } finally {
            held.close();
        }
    }

    /**
     * A session and its cache.
     *
     * @param session what was opened
     * @param cache to be closed after the session
     */
    public record Opened<T>(T session, EngineCache cache) {}

    private static ServingException unusable(Path root, IOException e) {
        return ServingException.wrap(
                ErrorCode.FAILED_PRECONDITION,
                "the cache of TensorRT's engines in '" + root + "' cannot be used: "
                        + e.getClass().getSimpleName() + ": " + e.getMessage(),
                "name a directory that the server may write to in '" + DIRECTORY_OPTION + "'",
                e);
    }

    private static EngineCache begin(Path root, String key, Path file) throws IOException {
        Path shared = Files.createDirectories(root.resolve(key));
        removeAbandoned(root, key);
        Path work = Files.createTempDirectory(root, WORK + key + "-");
        IN_USE_HERE.add(work);
        FileChannel inUse = FileChannel.open(work.resolve(IN_USE), StandardOpenOption.CREATE, StandardOpenOption.WRITE);
        FileLock unused = inUse.lock();
        for (Path each : files(shared)) {
            Files.copy(each, work.resolve(each.getFileName()), StandardCopyOption.COPY_ATTRIBUTES);
        }
        return new EngineCache(shared, file, work, inUse);
    }

    private static void removeAbandoned(Path root, String key) throws IOException {
        List<Path> others = new ArrayList<>();
        try (Stream<Path> entries = Files.list(root)) {
            entries.filter(path -> path.getFileName().toString().startsWith(WORK + key + "-"))
                    .filter(path -> !IN_USE_HERE.contains(path))
                    .forEach(others::add);
        }
        for (Path other : others) {
            boolean abandoned;
            try (FileChannel channel =
                    FileChannel.open(other.resolve(IN_USE), StandardOpenOption.CREATE, StandardOpenOption.WRITE)) {
                abandoned = channel.tryLock() != null;
            } catch (OverlappingFileLockException | NoSuchFileException e) {
                abandoned = false;
            }
            if (abandoned) {
                delete(other);
            }
        }
    }

    private static List<Path> files(Path directory) throws IOException {
        try (Stream<Path> entries = Files.list(directory)) {
            return entries.filter(path -> Files.isRegularFile(path, LinkOption.NOFOLLOW_LINKS))
                    .filter(path -> !path.getFileName().toString().equals(IN_USE))
                    .filter(path -> !path.getFileName().toString().startsWith("."))
                    .sorted()
                    .toList();
        }
    }

    private void publishHeld() {
        try {
            for (Path file : files(work)) {
                Path target = shared.resolve(file.getFileName());
                if (Files.exists(target) && Files.mismatch(file, target) < 0) {
                    continue;
                }
                Path fresh = Files.createTempFile(shared, ".new-", "");
                Files.copy(file, fresh, StandardCopyOption.REPLACE_EXISTING, StandardCopyOption.COPY_ATTRIBUTES);
                Files.move(fresh, target, StandardCopyOption.ATOMIC_MOVE);
            }
        } catch (IOException e) {
            // The session works without; the next load builds the engine again.
            LOG.log(Level.WARNING, "engines of TensorRT are not kept in " + shared + ": " + e);
        }
    }

    private void discard() {
        IN_USE_HERE.remove(work);
        try {
            inUse.close();
            delete(work);
        } catch (IOException e) {
            LOG.log(Level.WARNING, "cannot remove " + work + ": " + e);
        }
    }

    private static void delete(Path directory) throws IOException {
        for (Path file : files(directory)) {
            Files.deleteIfExists(file);
        }
        Files.deleteIfExists(directory.resolve(IN_USE));
        Files.deleteIfExists(directory);
    }

    /** Keeps the engines that runs have added, and removes the session's directory. The session must be closed. */
    @Override
    public void close() {
        try {
            Held held = Held.take(lockFile);
            try {
                publishHeld();
                // Under the lock, so that no other load takes it for the directory of a killed process meanwhile.
                discard();
            } finally {
                held.close();
            }
        } catch (IOException e) {
            LOG.log(Level.WARNING, "engines of TensorRT are not kept in " + shared + ": " + e);
            discard();
        }
    }
}
