// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.store;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.control.api.store.ResourceStore;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * A {@link ResourceStore} in a directory. All resources are in memory; every change is appended to a write-ahead log
 * and synced before readers see it and before the call returns. Concurrent changes share one sync (group commit). On a
 * full disk changes are rejected, and acknowledged ones are not lost. Thread-safe: one lock guards the memory, and one
 * thread writes.
 *
 * <pre>{@code
 * try (ResourceStore store = FileResourceStore.open(directory, Clock.system())) {
 *     store.create(new ResourceStore.Type("", "secrets"), secret);
 * }
 * }</pre>
 */
public final class FileResourceStore implements ResourceStore {
    private static final int HISTORY = 8192;
    private static final long COMPACT_AFTER = 4L << 20;

    private final Path directory;
    private final Clock clock;
    private final DirectoryLock directoryLock;
    private final WriteAheadLog journal;
    private final Thread writer;
    private final Object lock = new Object();
    /** The durable resources by type, namespace and name. */
    @GuardedBy("lock") private final Map<Type, TreeMap<String, TreeMap<String, ChangeRecord>>> all = new HashMap<>();
    /** The last accepted change of each key that is not durable yet. */
    @GuardedBy("lock") private final Map<Key, ChangeRecord> pending = new HashMap<>();

    @GuardedBy("lock") private final WatchCache watchers;

    @GuardedBy("lock") private List<Waiting> queue = new ArrayList<>();
    /** The version of the last durable change. */
    @GuardedBy("lock") private long durable;
    /** The version of the last accepted change. */
    @GuardedBy("lock") private long last;

    @GuardedBy("lock") private boolean closed;

    private FileResourceStore(Path directory, Clock clock, StoreFiles files, int history, long compactAfter)
            throws IOException {
        this.directory = directory;
        this.clock = clock;
        Files.createDirectories(directory);
        this.directoryLock = DirectoryLock.take(directory);
        this.journal = new WriteAheadLog(directory, files, compactAfter);
        this.watchers = new WatchCache(history);
        try {
            long base = journal.open(this::recovered, this::replayed);
            durable = Math.max(durable, base);
            watchers.forget(Math.max(base, watchers.forgotten()));
        } catch (IOException | RuntimeException e) {
            journal.close();
            watchers.close();
            directoryLock.close();
            throw e;
        }
        this.last = durable;
        this.writer = Threads.named("nereid-store").newThread(this::writeAll);
        this.writer.start();
    }

    /**
     * Opens the store in a directory and creates the directory if it does not exist. An incomplete change at the end of
     * the log, which a crash has interrupted, is truncated.
     *
     * @throws ServingException FAILED_PRECONDITION when another process uses the directory or it is not writable,
     *     DATA_LOSS when a file is damaged where it contained acknowledged changes; the files are not modified in that
     *     case
     */
    public static FileResourceStore open(Path directory, Clock clock) {
        return open(directory, clock, StoreFiles.REAL, HISTORY, COMPACT_AFTER);
    }

    static FileResourceStore open(Path directory, Clock clock, StoreFiles files, int history, long compactAfter) {
        try {
            return new FileResourceStore(directory, clock, files, history, compactAfter);
        } catch (IOException e) {
            throw ServingException.wrap(
                    ErrorCode.FAILED_PRECONDITION,
                    "the store in '" + directory + "' cannot be opened: " + e.getMessage(),
                    "specify a directory that this user can write, on a disk with free space",
                    e);
        }
    }

    @Override
    public @Nullable ObjectNode get(Key key) {
        ChangeRecord entry;
        synchronized (lock) {
            entry = committed(key);
        }
        return entry == null ? null : entry.resource().deepCopy();
    }

    @Override
    public Listing list(Type type, @Nullable String namespace) {
        List<ChangeRecord> found;
        long version;
        synchronized (lock) {
            found = present(type, namespace);
            version = durable;
        }
        List<ObjectNode> items = new ArrayList<>(found.size());
        for (ChangeRecord entry : found) {
            items.add(entry.resource().deepCopy());
        }
        return new Listing(version, items);
    }

    @Override
    public ObjectNode create(Type type, ObjectNode resource) {
        ObjectNode copy = resource.deepCopy();
        Key key = key(type, copy);
        Waiting waiting;
        synchronized (lock) {
            requireOpen();
            if (latest(key) != null) {
                throw ServingException.of(
                        ErrorCode.ALREADY_EXISTS, resourceName(type) + " \"" + key.name() + "\" already exists");
            }
            ObjectNode metadata = metadata(copy);
            metadata.put("uid", UUID.randomUUID().toString());
            metadata.put("creationTimestamp", now());
            metadata.remove("deletionTimestamp");
            metadata.remove("deletionGracePeriodSeconds");
            waiting = add(key, Change.Kind.ADDED, copy);
        }
        return waiting.await();
    }

    @Override
    public ObjectNode update(Type type, ObjectNode resource, @Nullable String expectedVersion) {
        ObjectNode copy = resource.deepCopy();
        Key key = key(type, copy);
        Waiting waiting;
        synchronized (lock) {
            requireOpen();
            ChangeRecord old = require(key, expectedVersion);
            JsonNode before = old.resource().path("metadata");
            ObjectNode metadata = metadata(copy);
            for (String name : List.of(
                    "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "resourceVersion")) {
                if (before.has(name)) {
                    metadata.set(name, before.get(name));
                } else {
                    metadata.remove(name);
                }
            }
            if (metadata.has("deletionTimestamp") && metadata.path("finalizers").isEmpty()) {
                waiting = add(key, Change.Kind.DELETED, copy);
            } else if (copy.equals(old.resource())) {
                waiting = add(old);
            } else {
                waiting = add(key, Change.Kind.MODIFIED, copy);
            }
        }
        return waiting.await();
    }

    @Override
    public ObjectNode delete(Key key, @Nullable String expectedVersion) {
        Waiting waiting;
        synchronized (lock) {
            requireOpen();
            ChangeRecord old = require(key, expectedVersion);
            ObjectNode copy = old.resource().deepCopy();
            ObjectNode metadata = metadata(copy);
            if (metadata.path("finalizers").isEmpty()) {
                waiting = add(key, Change.Kind.DELETED, copy);
            } else if (metadata.has("deletionTimestamp")) {
                waiting = add(old);
            } else {
                metadata.put("deletionTimestamp", now());
                metadata.put("deletionGracePeriodSeconds", 0);
                waiting = add(key, Change.Kind.MODIFIED, copy);
            }
        }
        return waiting.await();
    }

    @Override
    public Watch watch(Type type, @Nullable String namespace, long fromVersion, Consumer<Change> listener) {
        synchronized (lock) {
            requireOpen();
            List<ChangeRecord> present = new ArrayList<>();
            if (fromVersion == 0) {
                for (ChangeRecord entry : present(type, namespace)) {
                    present.add(new ChangeRecord(entry.key(), Change.Kind.ADDED, entry.version(), entry.resource()));
                }
            }
            return watchers.add(type, namespace, listener, present, fromVersion == 0 ? durable : fromVersion, durable)
                    .onClose(watcher -> {
                        synchronized (lock) {
                            watchers.remove(watcher);
                        }
                    });
        }
    }

    /** Closes all watches, waits until accepted changes are written, and releases the directory. */
    @Override
    public void close() {
        synchronized (lock) {
            closed = true;
            watchers.close();
            lock.notifyAll();
        }
        boolean interrupted = false;
        while (true) {
            try {
                writer.join();
                break;
            } catch (InterruptedException e) {
                interrupted = true; // keep waiting, or an accepted change might not be written; restored below
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    @GuardedBy("lock") private void requireOpen() {
        if (closed) {
            throw ServingException.of(ErrorCode.UNAVAILABLE, "the store is closed: the server is shutting down");
        }
    }

    @GuardedBy("lock") private @Nullable ChangeRecord committed(Key key) {
        TreeMap<String, TreeMap<String, ChangeRecord>> namespaces = all.get(key.type());
        TreeMap<String, ChangeRecord> names = namespaces == null ? null : namespaces.get(key.namespace());
        return names == null ? null : names.get(key.name());
    }

    /** The state that the next change is based on: the last accepted one, whether or not it is durable yet. */
    @GuardedBy("lock") private @Nullable ChangeRecord latest(Key key) {
        ChangeRecord entry = pending.get(key);
        if (entry != null) {
            return entry.kind() == Change.Kind.DELETED ? null : entry;
        }
        return committed(key);
    }

    /** The latest state of a resource, which must exist and have the expected version. */
    @GuardedBy("lock") private ChangeRecord require(Key key, @Nullable String expectedVersion) {
        ChangeRecord old = latest(key);
        if (old == null) {
            throw ServingException.of(
                    ErrorCode.NOT_FOUND, resourceName(key.type()) + " \"" + key.name() + "\" not found");
        }
        if (expectedVersion != null && !expectedVersion.equals(Long.toString(old.version()))) {
            throw ServingException.of(
                    ErrorCode.ABORTED,
                    "Operation cannot be fulfilled on " + resourceName(key.type()) + " \"" + key.name()
                            + "\": the object has been modified; please apply your changes to the latest version and"
                            + " try again");
        }
        return old;
    }

    /** All durable resources of a type. */
    @GuardedBy("lock") private List<ChangeRecord> present(Type type, @Nullable String namespace) {
        List<ChangeRecord> found = new ArrayList<>();
        TreeMap<String, TreeMap<String, ChangeRecord>> namespaces = all.get(type);
        if (namespaces != null) {
            if (namespace == null) {
                namespaces.values().forEach(names -> found.addAll(names.values()));
            } else {
                TreeMap<String, ChangeRecord> names = namespaces.get(namespace);
                if (names != null) {
                    found.addAll(names.values());
                }
            }
        }
        return found;
    }

    /** Takes over a resource of the snapshot. */
    private void recovered(ChangeRecord entry) {
        synchronized (lock) {
            put(entry);
        }
    }

    /** Takes over a change of the log. */
    private void replayed(ChangeRecord entry) {
        synchronized (lock) {
            put(entry);
            watchers.changed(entry);
            durable = entry.version();
        }
    }

    @GuardedBy("lock") private void put(ChangeRecord entry) {
        Key key = entry.key();
        if (entry.kind() == Change.Kind.DELETED) {
            TreeMap<String, TreeMap<String, ChangeRecord>> namespaces = all.get(key.type());
            TreeMap<String, ChangeRecord> names = namespaces == null ? null : namespaces.get(key.namespace());
            if (namespaces != null && names != null) {
                names.remove(key.name());
                if (names.isEmpty()) {
                    namespaces.remove(key.namespace());
                }
            }
        } else {
            all.computeIfAbsent(key.type(), t -> new TreeMap<>())
                    .computeIfAbsent(key.namespace(), n -> new TreeMap<>())
                    .put(key.name(), entry);
        }
    }

    @GuardedBy("lock") private Waiting add(Key key, Change.Kind kind, ObjectNode resource) {
        last++;
        metadata(resource).put("resourceVersion", Long.toString(last));
        ChangeRecord entry = new ChangeRecord(key, kind, last, resource);
        pending.put(key, entry);
        return enqueue(new Waiting(entry, true));
    }

    /** Enqueues a call that changes nothing: the state that it returns may still have to become durable. */
    @GuardedBy("lock") private Waiting add(ChangeRecord unchanged) {
        return enqueue(new Waiting(unchanged, false));
    }

    @GuardedBy("lock") private Waiting enqueue(Waiting waiting) {
        queue.add(waiting);
        lock.notifyAll();
        return waiting;
    }

    private void writeAll() {
        try {
            while (true) {
                List<Waiting> batch;
                synchronized (lock) {
                    while (queue.isEmpty() && !closed) {
                        lock.wait();
                    }
                    if (queue.isEmpty()) {
                        break;
                    }
                    batch = queue;
                    queue = new ArrayList<>();
                }
                write(batch);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } finally {
            journal.close();
            try {
                directoryLock.close();
            } catch (IOException e) {
                // The operating system releases the lock when the process exits.
            }
        }
    }

    /**
     * Writes a batch with one sync. Only then do the changes become visible to readers and watches, still under the
     * lock so that watches see them in order; the callers are released after that. A snapshot is taken under the lock
     * too, but written outside it.
     */
    private void write(List<Waiting> batch) {
        List<ChangeRecord> changes = new ArrayList<>(batch.size());
        for (Waiting waiting : batch) {
            if (waiting.isChange) {
                changes.add(waiting.entry);
            }
        }
        try {
            if (!changes.isEmpty()) {
                journal.append(ChangeRecord.write(changes));
            }
        } catch (IOException | RuntimeException e) {
            fail(
                    batch,
                    e instanceof IOException io ? WriteAheadLog.writeFailure(directory, io) : ServingException.from(e));
            return;
        }
        List<ChangeRecord> snapshot = null;
        synchronized (lock) {
            for (ChangeRecord entry : changes) {
                put(entry);
                pending.remove(entry.key(), entry);
                durable = entry.version();
                watchers.changed(entry);
            }
            if (journal.needsCompaction()) {
                snapshot = new ArrayList<>();
                for (Type type : all.keySet()) {
                    snapshot.addAll(present(type, null));
                }
            }
        }
        for (Waiting waiting : batch) {
            waiting.done.complete(waiting.entry.resource());
        }
        if (snapshot != null) {
            snapshot.sort(Comparator.comparingLong(ChangeRecord::version));
            journal.compact(durable(), snapshot);
        }
    }

    private long durable() {
        synchronized (lock) {
            return durable;
        }
    }

    /**
     * Fails a batch and all changes that were accepted since: they may be based on changes of the batch. Their versions
     * are assigned again, because the log must not have gaps.
     */
    private void fail(List<Waiting> batch, ServingException why) {
        List<Waiting> failed = new ArrayList<>(batch);
        synchronized (lock) {
            failed.addAll(queue);
            queue = new ArrayList<>();
            pending.clear();
            last = durable;
        }
        failed.forEach(waiting -> waiting.done.completeExceptionally(why));
    }

    private String now() {
        return Instant.ofEpochMilli(clock.millis())
                .truncatedTo(ChronoUnit.SECONDS)
                .toString();
    }

    private static String resourceName(Type type) {
        return type.group().isEmpty() ? type.plural() : type.plural() + "." + type.group();
    }

    private static Key key(Type type, ObjectNode resource) {
        JsonNode metadata = resource.path("metadata");
        String name = metadata.path("name").asText("");
        if (name.isEmpty()) {
            throw ServingException.invalidArgument("metadata.name is missing", "give the resource a name");
        }
        return new Key(type, metadata.path("namespace").asText(""), name);
    }

    private static ObjectNode metadata(ObjectNode resource) {
        return resource.withObject("/metadata");
    }

    /** A call that waits until its change is durable. */
    private static final class Waiting {
        final ChangeRecord entry;
        final boolean isChange;
        final CompletableFuture<ObjectNode> done = new CompletableFuture<>();

        Waiting(ChangeRecord entry, boolean isChange) {
            this.entry = entry;
            this.isChange = isChange;
        }

        ObjectNode await() {
            try {
                return done.join().deepCopy();
            } catch (CompletionException e) {
                throw ServingException.from(e.getCause() == null ? e : e.getCause());
            }
        }
    }
}
