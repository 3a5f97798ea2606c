// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.nodeagent;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.plane.loop.EventLoop;
import io.nereid.control.plane.loop.Retries;
import io.nereid.control.plane.loop.WorkQueue;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Keeps models in a directory: downloads those that are wanted, one at a time in their order, and removes the others
 * first. A model has its declared size at most, and all of them the limit: a download that would have more is ended and
 * removed. A failed download is tried again after a while, and continues where it ended. Thread-safe.
 */
final class ModelKeeper implements AutoCloseable {
    /** How far a model is. */
    enum Phase {
        PENDING,
        DOWNLOADING,
        DOWNLOADED,
        FAILED
    }

    /**
     * The state of a model.
     *
     * @param message the progress, or why it failed
     */
    record State(Phase phase, String message) {}

    /**
     * A model to keep.
     *
     * @param folder its folder, the same for the same URI
     * @param size the most bytes that it may have; 0 for no limit of its own
     */
    record Wanted(String folder, ModelFetcher.Source source, long size) {}

    private static final Logger LOG = LoggerFactory.getLogger(ModelKeeper.class);
    private static final String WORK = "models";

    private final ModelFolders folders;
    private final ModelFetcher fetcher;
    private final Duration retry;
    private final EventLoop loop;
    private final Runnable changed;
    private final WorkQueue<String> queue;

    @GuardedBy("this") private List<Wanted> wanted = List.of();

    @GuardedBy("this") private long limit;

    @GuardedBy("this") private final Map<String, State> states = new HashMap<>();

    /** When failed downloads are due again, in nanoseconds of the clock. */
    @GuardedBy("this") private final Map<String, Long> due = new HashMap<>();

    @GuardedBy("this") private boolean closed;

    /**
     * @param retry after which time a failed download is tried again
     * @param loop closed by the caller, after this
     * @param changed called after each change of a state; does not block
     */
    ModelKeeper(Path directory, ModelFetcher fetcher, Duration retry, EventLoop loop, Runnable changed) {
        this.folders = new ModelFolders(directory);
        this.fetcher = fetcher;
        this.retry = retry;
        this.loop = loop;
        this.changed = changed;
        this.queue = new WorkQueue<>(loop, Retries.ofReconciliation(), all -> work());
    }

    /**
     * Keeps other models from now on. Does not block. A download that is not wanted any more ends.
     *
     * @param limit the bytes that all of them may have
     */
    void keep(List<Wanted> models, long limit) {
        synchronized (this) {
            this.wanted = List.copyOf(models);
            this.limit = limit;
            Set<String> names = new HashSet<>();
            models.forEach(one -> {
                names.add(one.folder());
                states.putIfAbsent(one.folder(), new State(Phase.PENDING, ""));
            });
            states.keySet().retainAll(names);
            due.keySet().retainAll(names);
        }
        queue.add(WORK);
    }

    /** The states of the wanted models by folder. */
    synchronized Map<String, State> states() {
        return new TreeMap<>(states);
    }

    private void work() {
        folders.prepare();
        while (true) {
            List<Wanted> models;
            long most;
            synchronized (this) {
                if (closed) {
                    return;
                }
                models = wanted;
                most = limit;
            }
            Set<String> names = new HashSet<>();
            models.forEach(one -> names.add(one.folder()));
            folders.retain(names);
            Wanted next = null;
            for (Wanted one : models) {
                if (!isComplete(one) && next == null && isDue(one)) {
                    next = one;
                }
            }
            if (next == null) {
                return;
            }
            download(next, most);
        }
    }

    private boolean isComplete(Wanted model) {
        synchronized (this) {
            State state = states.get(model.folder());
            if (state == null || state.phase() == Phase.DOWNLOADED) {
                return true; // looked at when it became so
            }
        }
        long bytes = folders.complete(model.folder(), model.source().uri());
        if (bytes < 0) {
            return false;
        }
        set(model, new State(Phase.DOWNLOADED, bytes + " bytes"));
        return true;
    }

    private boolean isDue(Wanted model) {
        long now = loop.clock().nanos();
        Long at;
        synchronized (this) {
            at = due.get(model.folder());
        }
        if (at == null || now - at >= 0) {
            return true;
        }
        queue.addAfter(WORK, Duration.ofNanos(at - now));
        return false;
    }

    private synchronized boolean isWanted(Wanted model) {
        return !closed && wanted.stream().anyMatch(one -> one.folder().equals(model.folder()));
    }

    private void set(Wanted model, State state) {
        synchronized (this) {
            if (!states.containsKey(model.folder())) {
                return; // not wanted any more
            }
            states.put(model.folder(), state);
        }
        changed.run();
    }

    private void download(Wanted model, long limit) {
        String folder = model.folder();
        set(model, new State(Phase.DOWNLOADING, ""));
        try {
            long most = most(model, limit);
            Path directory = folders.download(folder);
            fetcher.fetch(model.source(), directory, most, (bytes, total) -> {
                if (!isWanted(model)) {
                    throw ServingException.of(ErrorCode.CANCELLED, "the model is not wanted any more");
                }
                check(model, Math.max(bytes, total), most);
                set(model, new State(Phase.DOWNLOADING, progress(bytes, total)));
            });
            long bytes = ModelFolders.size(directory);
            check(model, bytes, most);
            folders.complete(folder, model.source().uri(), bytes);
            synchronized (this) {
                due.remove(folder);
            }
            LOG.info("{} is complete, {} bytes", folder, bytes);
            set(model, new State(Phase.DOWNLOADED, bytes + " bytes"));
        } catch (IOException | RuntimeException e) {
            ServingException failure = ServingException.from(e);
            if (failure.code() == ErrorCode.CANCELLED && !isWanted(model)) {
                return; // the next look removes what is not wanted
            }
            if (failure.code() == ErrorCode.RESOURCE_EXHAUSTED) {
                folders.remove(folder);
            }
            LOG.warn("{} cannot be downloaded: {}", folder, failure.describe());
            synchronized (this) {
                due.put(folder, loop.clock().nanos() + retry.toNanos());
            }
            queue.addAfter(WORK, retry);
            set(model, new State(Phase.FAILED, failure.describe()));
        }
    }

    /** The bytes that a model may have. */
    private long most(Wanted model, long limit) throws IOException {
        long size = model.size() > 0 ? model.size() : limit;
        long left = limit - folders.usedBeside(model.folder());
        if (left < size) {
            folders.removeDownloadsBeside(model.folder());
            left = limit - folders.usedBeside(model.folder());
        }
        if (left <= 0) {
            throw ServingException.of(
                    ErrorCode.RESOURCE_EXHAUSTED,
                    "the other models have " + (limit - left) + " bytes, and storageLimit is " + limit,
                    "raise storageLimit of the LocalModelNodeGroup, or delete another model");
        }
        long most = Math.min(size, left);
        Path directory = folders.download(model.folder());
        long there = Files.isDirectory(directory) ? ModelFolders.size(directory) : 0;
        long free = Files.getFileStore(directory.getParent()).getUsableSpace() + there;
        if (model.size() > 0 && free < Math.min(model.size(), most)) {
            throw ServingException.of(
                    ErrorCode.UNAVAILABLE,
                    "the disk has " + free + " bytes for a model of " + model.size(),
                    "free space on the node, or lower the storageLimit of the LocalModelNodeGroup to what its disks have");
        }
        return most;
    }

    private static void check(Wanted model, long bytes, long most) {
        if (bytes > most) {
            boolean own = model.size() > 0 && most >= model.size();
            throw ServingException.of(
                    ErrorCode.RESOURCE_EXHAUSTED,
                    "the model has " + bytes + " bytes, more than "
                            + (own ? "modelSize, " + model.size() : "the " + most + " bytes that storageLimit leaves"),
                    own ? "raise modelSize" : "raise storageLimit of the LocalModelNodeGroup, or delete another model");
        }
    }

    private static String progress(long bytes, long total) {
        return String.format(
                Locale.ROOT,
                "%.1f MB%s",
                bytes / 1e6,
                total < 0 ? "" : String.format(Locale.ROOT, " of %.1f MB", total / 1e6));
    }

    /** Ends a download, which the next keeper of the directory continues. */
    @Override
    public void close() {
        synchronized (this) {
            closed = true;
        }
        queue.close();
    }

    /** The state of a folder; null when it is not wanted. */
    synchronized @Nullable State state(String folder) {
        return states.get(folder);
    }
}
