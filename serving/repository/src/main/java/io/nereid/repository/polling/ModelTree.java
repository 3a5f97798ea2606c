// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.polling;

import java.io.IOException;
import java.nio.file.FileVisitOption;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.WatchKey;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * The files and directories that the state of one model is read from, with their stamps as of the last capture. Made by
 * {@link ModelTrees}. Guarded by the source's lock.
 */
public final class ModelTree {
    /** Depth that covers all files that the fingerprint of a model counts. */
    static final int WHOLE = 18;

    /** A larger tree is not remembered, and so counts as changed at every poll. */
    private static final int MAX_PATHS = 100_000;

    private static final long FILE_TYPE = 0xF000;
    private static final long SYMBOLIC_LINK = 0xA000;
    private static final long DIRECTORY = 0x4000;

    final Guard guard;

    /** Turn, among the polls of a round, in which all stamps are compared even if nothing was notified. */
    final long turn;

    private List<Path> tops;
    private int depth;
    private Path[] paths = {};
    private @Nullable FileStamp[] stamps = {};

    Set<WatchKey> keys = Set.of();

    /** Whether it has been given to a watcher. */
    boolean offered;

    /** Whether each change of its files is notified, or changes the guard. */
    boolean watched;

    /** Whether a change was notified since the last capture. */
    boolean dirty;

    /** Whether stamps that are equal to those captured show that nothing has changed. */
    private boolean settled;

    /** The directory that contains the tops of trees. Its own path may lead over links. */
    static final class Guard {
        final Path directory;
        int users;

        @Nullable FileStamp seen;

        boolean changed = true;

        Guard(Path directory) {
            this.directory = directory;
        }
    }

    ModelTree(List<Path> tops, int depth, Guard guard, long turn) {
        this.tops = tops;
        this.depth = depth;
        this.guard = guard;
        this.turn = turn;
    }

    /** Number of stamps. */
    int size() {
        return paths.length;
    }

    List<Path> tops() {
        return tops;
    }

    /** Sets what the next capture reads. */
    void covers(List<Path> newTops, int newDepth) {
        tops = newTops;
        depth = newDepth;
    }

    int depth() {
        return depth;
    }

    boolean settled() {
        return settled;
    }

    /** Whether its only top did not exist. */
    boolean absent() {
        return stamps.length == 1 && stamps[0] == null;
    }

    /** Whether all stamps are as captured. */
    boolean same() {
        for (int i = 0; i < paths.length; i++) {
            if (!Objects.equals(FileStamp.read(paths[i]), stamps[i])) {
                return false;
            }
        }
        return true;
    }

    /** Whether the tops are as captured: none was removed, replaced or has appeared. */
    boolean sameTops() {
        for (Path top : tops) {
            for (int i = 0; i < paths.length; i++) {
                if (paths[i].equals(top)) {
                    if (!Objects.equals(FileStamp.read(top), stamps[i])) {
                        return false;
                    }
                    break;
                }
            }
        }
        return true;
    }

    /**
     * Reads all stamps. Call before the files themselves are read, so that a change during the read is detected
     * afterwards. Directories are watched before they are listed, for the same reason.
     *
     * @param watcher watches the directories; null if there are too few models for that
     * @return whether the stamps differ from those before
     */
    boolean capture(long nowMillis, @Nullable DirectoryWatcher watcher) {
        Path[] pathsBefore = paths;
        @Nullable FileStamp[] stampsBefore = stamps;
        dirty = false;
        Capture capture = new Capture(nowMillis, watcher);
        for (Path top : tops) {
            capture.walk(top, depth);
        }
        paths = capture.paths.toArray(new Path[0]);
        stamps = capture.stamps.toArray(new FileStamp[0]);
        settled = capture.settled;
        offered = watcher != null;
        watched = watcher != null && capture.watched;
        keys = capture.keys;
        return !Arrays.equals(pathsBefore, paths) || !Arrays.equals(stampsBefore, stamps);
    }

    private final class Capture extends SimpleFileVisitor<Path> {
        final List<Path> paths = new ArrayList<>();
        final List<@Nullable FileStamp> stamps = new ArrayList<>();
        final Set<WatchKey> keys = new HashSet<>(4);
        final long nowMillis;
        final @Nullable DirectoryWatcher watcher;
        boolean settled = true;
        boolean watched = true;

        Capture(long nowMillis, @Nullable DirectoryWatcher watcher) {
            this.nowMillis = nowMillis;
            this.watcher = watcher;
        }

        void walk(Path top, int depth) {
            try {
                Files.walkFileTree(top, EnumSet.of(FileVisitOption.FOLLOW_LINKS), depth, this);
            } catch (IOException e) {
                settled = false;
            }
        }

        private FileVisitResult add(Path path, BasicFileAttributes attributes) {
            // The walk follows links: the attributes are those of a link only if it leads nowhere.
            FileStamp stamp = attributes.isSymbolicLink() ? null : FileStamp.of(attributes);
            paths.add(path);
            stamps.add(stamp);
            if (stamp != null) {
                // A change of permissions changes no stamp.
                settled &= stamp.settled(nowMillis) && Files.isReadable(path);
            }
            watched = watched && watcher != null && notified(path);
            if (paths.size() > MAX_PATHS) {
                settled = false;
                return FileVisitResult.TERMINATE;
            }
            return FileVisitResult.CONTINUE;
        }

        /** Whether every change of a file passes the directory that it is in: not by a link, nor by a second name. */
        private boolean notified(Path path) {
            try {
                Map<String, Object> found = Files.readAttributes(path, "unix:mode,nlink", LinkOption.NOFOLLOW_LINKS);
                long type = number(found, "mode") & FILE_TYPE;
                return type != SYMBOLIC_LINK && (type == DIRECTORY || number(found, "nlink") == 1);
            } catch (IOException | UnsupportedOperationException | IllegalArgumentException e) {
                return false;
            }
        }

        private long number(Map<String, Object> attributes, String name) {
            return attributes.get(name) instanceof Number n ? n.longValue() : -1;
        }

        @Override
        public FileVisitResult preVisitDirectory(Path directory, BasicFileAttributes attributes) {
            FileVisitResult result = add(directory, attributes);
            if (watched && watcher != null) {
                WatchKey key = watcher.watch(directory);
                if (key == null) {
                    watched = false;
                } else {
                    keys.add(key);
                }
            }
            return result;
        }

        @Override
        public FileVisitResult visitFile(Path file, BasicFileAttributes attributes) {
            // A directory at the greatest depth is not listed, and so not watched; nor is the directory of the tops.
            watched &= !attributes.isDirectory() && !tops.contains(file);
            return add(file, attributes);
        }

        @Override
        public FileVisitResult visitFileFailed(Path file, IOException e) {
            // Where the only top does not exist, the guard shows when it appears.
            settled &= tops.size() == 1 && file.equals(tops.get(0)) && e instanceof NoSuchFileException;
            watched = false;
            paths.add(file);
            stamps.add(null);
            return FileVisitResult.CONTINUE;
        }

        @Override
        public FileVisitResult postVisitDirectory(Path directory, @Nullable IOException e) {
            settled &= e == null;
            return FileVisitResult.CONTINUE;
        }
    }
}
