// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.polling;

import io.nereid.repository.layout.LocalFileSystems;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.NotDirectoryException;
import java.nio.file.Path;
import java.nio.file.StandardWatchEventKinds;
import java.nio.file.WatchKey;
import java.nio.file.WatchService;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Notifications of the kernel (inotify) about directories of model trees, so that a poll need not read the stamp of each file. Only
 * for local file systems: a network file system does not notify of changes by other machines. Guarded by the source's
 * lock.
 */
final class DirectoryWatcher implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(DirectoryWatcher.class);

    /** Watches of a user are limited and shared with other programs, so at most half of them are taken. */
    private static final Path LIMIT = Path.of("/proc/sys/fs/inotify/max_user_watches");

    private static final int MOST = 100_000;

    private final WatchService service;
    private final int limit;
    private final Map<WatchKey, List<ModelTree>> owners = new HashMap<>();
    private boolean exhausted;

    private DirectoryWatcher(WatchService service, int limit) {
        this.service = service;
        this.limit = limit;
    }

    /** Opens a watcher; null where the kernel does not notify, or does not permit one more watcher. */
    static @Nullable DirectoryWatcher open() {
        int limit;
        // Such a file gives its value to the first read only, so it needs a buffer that is large enough.
        try (InputStream in = Files.newInputStream(LIMIT)) {
            byte[] digits = new byte[32];
            int length = Math.max(0, in.read(digits));
            long most = Long.parseLong(new String(digits, 0, length, StandardCharsets.US_ASCII).strip());
            limit = (int) Math.min(MOST, most / 2);
        } catch (IOException | NumberFormatException e) {
            return null;
        }
        try {
            return new DirectoryWatcher(FileSystems.getDefault().newWatchService(), limit);
        } catch (IOException | UnsupportedOperationException e) {
            LOG.info(
                    "the attributes of each file are read at every poll, as the kernel permits no watches: {}",
                    e.getMessage());
            return null;
        }
    }

    /** Starts to watch a directory, unless it is watched already; null if that is not possible. */
    @Nullable WatchKey watch(Path directory) {
        if (exhausted || !LocalFileSystems.contains(directory)) {
            return null;
        }
        if (owners.size() >= limit) {
            exhausted("half of fs.inotify.max_user_watches, or " + MOST);
            return null;
        }
        try {
            return directory.register(
                    service,
                    StandardWatchEventKinds.ENTRY_CREATE,
                    StandardWatchEventKinds.ENTRY_DELETE,
                    StandardWatchEventKinds.ENTRY_MODIFY);
        } catch (NoSuchFileException | NotDirectoryException e) {
            return null;
        } catch (IOException e) {
            exhausted(e.getMessage());
            return null;
        }
    }

    private void exhausted(@Nullable String why) {
        exhausted = true;
        LOG.info(
                "{} directories of models are watched, and no more are possible ({}): the attributes of the other models' files are"
                        + " read at every poll; raise fs.inotify.max_user_watches",
                owners.size(),
                why);
    }

    /** Notes which directories belong to a tree, after a capture. */
    void owned(ModelTree tree, Set<WatchKey> before) {
        for (WatchKey key : tree.keys) {
            List<ModelTree> trees = owners.computeIfAbsent(key, k -> new ArrayList<>(1));
            if (!trees.contains(tree)) {
                trees.add(tree);
            }
        }
        for (WatchKey key : before) {
            if (!tree.keys.contains(key)) {
                release(tree, key);
            }
        }
    }

    /** Stops watching the directories of a tree. */
    void release(ModelTree tree) {
        tree.keys.forEach(key -> release(tree, key));
        tree.keys = Set.of();
    }

    private void release(ModelTree tree, WatchKey key) {
        List<ModelTree> trees = owners.get(key);
        if (trees != null && trees.remove(tree) && trees.isEmpty()) {
            owners.remove(key);
            key.cancel();
        }
    }

    /** Marks the trees that something was notified of, and adds them to a set. */
    void drain(Set<ModelTree> notified) {
        for (WatchKey key = service.poll(); key != null; key = service.poll()) {
            key.pollEvents();
            for (ModelTree tree : owners.getOrDefault(key, List.of())) {
                tree.dirty = true;
                notified.add(tree);
            }
            if (!key.reset()) {
                owners.remove(key);
            }
        }
    }

    /** Directories that are watched. */
    int size() {
        return owners.size();
    }

    @Override
    public void close() {
        try {
            service.close();
        } catch (IOException e) {
            LOG.debug("closing the watches failed", e);
        }
    }
}
