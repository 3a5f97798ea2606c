// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.polling;

import io.nereid.base.Clock;
import io.nereid.repository.polling.ModelTree.Guard;
import java.nio.file.Path;
import java.nio.file.WatchKey;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Detects which models may have changed since they were last read, without reading them. Each model is a tree of files
 * and directories with {@linkplain FileStamp stamps}.
 *
 * <ul>
 *   <li>Few models: each poll compares all stamps.
 *   <li>Many: the kernel notifies of changes below watched directories, so a poll reads the stamps of the directories that contain the
 *       models, and the files of trees that cannot be watched: those with symbolic links or with a second name (hard
 *       link) of a file, and those on network file systems. Changes that are not notified (writes through a memory
 *       map, a mount over a directory) are found by a comparison of all stamps in turn, once in fifteen minutes.
 *   <li>A tree with a file that is younger than two seconds, or that cannot be read, counts as changed at each poll.
 * </ul>
 *
 * <pre>{@code
 * ModelTree tree = trees.add(directory);
 * trees.begin();                       // once per poll
 * if (trees.changed(tree)) {
 *     trees.capture(tree);             // before the read
 *     read(directory);
 * }
 * }</pre>
 *
 * <p>Guarded by the source's lock.
 */
public final class ModelTrees implements AutoCloseable {
    /** Number of stamps from which directories are watched; fewer cost less than 0.1 % of a processor each second. */
    private static final int WATCH_FROM = 500;

    private static final Duration ROUND = Duration.ofMinutes(15);

    private final Clock clock;
    private final int watchFrom;
    private final long turns;
    private final Map<Path, Guard> guards = new HashMap<>();
    private final Map<Long, Set<ModelTree>> byTurn = new HashMap<>();

    /** The trees whose stamps each poll reads, as they are not watched, not captured yet, or have a file whose stamp is young. */
    private final Set<ModelTree> open = new LinkedHashSet<>();

    private boolean guardsChanged = true;
    private @Nullable DirectoryWatcher watcher;
    private boolean unwatchable;
    private long polls;
    private long added;
    private long stamps;
    private long captureNanos;
    private long stampReads;

    /**
     * Creates an empty set of trees.
     *
     * @param interval time between two polls; zero for a single one
     */
    public ModelTrees(Duration interval) {
        this(interval, WATCH_FROM);
    }

    /** As above, with the number of stamps from which directories are watched. */
    public ModelTrees(Duration interval, int watchFrom) {
        // Times of files are compared with the time of this machine, whatever clock the source has.
        this.clock = Clock.system();
        this.watchFrom = watchFrom;
        this.turns = interval.isZero() ? 1 : Math.max(1, ROUND.toNanos() / interval.toNanos());
    }

    /**
     * Adds a tree, which counts as changed until it is captured.
     *
     * @param tops files and directories of one directory
     * @param depth how far below them
     */
    ModelTree add(List<Path> tops, int depth) {
        Path parent = tops.get(0).toAbsolutePath().getParent();
        Guard guard = guards.computeIfAbsent(parent == null ? tops.get(0) : parent, Guard::new);
        guard.users++;
        ModelTree tree = new ModelTree(tops, depth, guard, added++ % turns);
        byTurn.computeIfAbsent(tree.turn, t -> new LinkedHashSet<>()).add(tree);
        open.add(tree);
        return tree;
    }

    /** Adds a model's whole directory, which counts as changed until it is captured. */
    public ModelTree add(Path directory) {
        return add(List.of(directory), ModelTree.WHOLE);
    }

    /** Forgets a tree. */
    public void remove(ModelTree tree) {
        stamps -= tree.size();
        byTurn.getOrDefault(tree.turn, Set.of()).remove(tree);
        open.remove(tree);
        if (--tree.guard.users == 0) {
            guards.remove(tree.guard.directory);
        }
        if (watcher != null) {
            watcher.release(tree);
        }
    }

    /** Begins a poll. */
    public void begin() {
        polls++;
        if (watcher == null && !unwatchable && stamps > watchFrom) {
            watcher = DirectoryWatcher.open();
            unwatchable = watcher == null;
        }
        if (watcher == null) {
            return;
        }
        watcher.drain(open);
        guardsChanged = false;
        long now = clock.millis();
        for (Guard guard : guards.values()) {
            stampReads++;
            FileStamp stamp = FileStamp.read(guard.directory);
            guard.changed = stamp == null || !stamp.settled(now) || !Objects.equals(stamp, guard.seen);
            guard.seen = stamp;
            guardsChanged |= guard.changed;
        }
    }

    /**
     * The trees for which this poll must call {@link #changed}; null for all of them. A poll at rest so touches few of many
     * models, even in memory.
     */
    public @Nullable Collection<ModelTree> candidates() {
        if (watcher == null || guardsChanged) {
            return null;
        }
        Set<ModelTree> candidates = new LinkedHashSet<>(open);
        candidates.addAll(byTurn.getOrDefault(polls % turns, Set.of()));
        return candidates;
    }

    /** Whether a tree may have changed since its last capture. */
    public boolean changed(ModelTree tree) {
        if (tree.size() == 0 || tree.dirty || !tree.settled()) {
            return true;
        }
        if (watcher != null && !tree.offered) {
            return capture(tree) || !tree.settled();
        }
        boolean watched = watcher != null && (tree.watched || (tree.absent() && tree.guard.seen != null));
        if (!watched || polls % turns == tree.turn) {
            stampReads += tree.size();
            return !tree.same();
        }
        if (tree.guard.changed) {
            stampReads += tree.tops().size();
            return !tree.sameTops();
        }
        return false;
    }

    /** Reads the stamps of a tree, and returns whether they differ from those before. */
    public boolean capture(ModelTree tree) {
        long began = clock.nanos();
        stamps -= tree.size();
        Set<WatchKey> before = tree.keys;
        boolean differs = tree.capture(clock.millis(), watcher);
        if (watcher != null) {
            watcher.owned(tree, before);
            if (!tree.watched) {
                watcher.release(tree);
            }
        }
        stamps += tree.size();
        stampReads += tree.size();
        boolean notified = watcher != null && tree.settled() && (tree.watched || tree.absent());
        if (notified) {
            open.remove(tree);
        } else {
            open.add(tree);
        }
        captureNanos += clock.nanos() - began;
        return differs;
    }

    /** Stamps of files and directories read so far. */
    public long stampReads() {
        return stampReads;
    }

    /** Time spent in captures so far, in nanoseconds. */
    public long captureNanos() {
        return captureNanos;
    }

    /** Directories that the kernel watches. */
    public int watched() {
        return watcher == null ? 0 : watcher.size();
    }

    /** Whether a stamp shows all later changes. */
    boolean settled(@Nullable FileStamp stamp) {
        return stamp != null && stamp.settled(clock.millis());
    }

    /** Stops watching; from then on all stamps are compared. */
    @Override
    public void close() {
        unwatchable = true;
        if (watcher != null) {
            watcher.close();
            watcher = null;
        }
    }
}
