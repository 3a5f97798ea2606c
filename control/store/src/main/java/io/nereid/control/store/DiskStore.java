// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.store;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.control.core.ResourceStore;
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
 * A store in a directory of its own: everything in memory, every change in a journal that is forced to disk before the change is
 * seen or acknowledged. Changes that come at the same time share one forcing. A full disk refuses changes and loses none.
 * Thread-safe: one lock guards the memory, one thread writes.
 */
public final class DiskStore implements ResourceStore {
    private static final int HISTORY = 8192;
    private static final long COMPACT_AFTER = 4L << 20;

    private final Path directory;
    private final Clock clock;
    private final StoreLock directoryLock;
    private final Journal journal;
    private final Thread writer;
    private final Object lock = new Object();
    private final Map<Type, TreeMap<String, TreeMap<String, Entry>>> all = new HashMap<>();
    private final Map<Key, Entry> pending = new HashMap<>();
    private final Watchers watchers;
    private List<Waiting> queue = new ArrayList<>();
    private long durable;
    private long last;
    private boolean closed;

    private DiskStore(Path directory, Clock clock, StoreFiles files, int history, long compactAfter)
            throws IOException {
        this.directory = directory;
        this.clock = clock;
        Files.createDirectories(directory);
        this.directoryLock = StoreLock.take(directory);
        this.journal = new Journal(directory, files, compactAfter);
        this.watchers = new Watchers(history);
        try {
            long base = journal.open(this::put, entry -> {
                put(entry);
                watchers.changed(entry);
                durable = entry.version();
            });
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
     * Opens the store of a directory, which is made when it is not there. The end of a change that a crash interrupted is cut off.
     *
     * @throws ServingException FAILED_PRECONDITION when another process uses the directory or it cannot be used, DATA_LOSS when a
     *     file is damaged where it held acknowledged changes; nothing is touched then
     */
    public static DiskStore open(Path directory, Clock clock) {
        return open(directory, clock, StoreFiles.REAL, HISTORY, COMPACT_AFTER);
    }

    static DiskStore open(Path directory, Clock clock, StoreFiles files, int history, long compactAfter) {
        try {
            return new DiskStore(directory, clock, files, history, compactAfter);
        } catch (IOException e) {
            throw ServingException.wrap(
                    ErrorCode.FAILED_PRECONDITION,
                    "the store in '" + directory + "' cannot be opened: " + e.getMessage(),
                    "give a directory on a disk with room that this user can write",
                    e);
        }
    }

    @Override
    public @Nullable ObjectNode get(Key key) {
        Entry entry;
        synchronized (lock) {
            entry = committed(key);
        }
        return entry == null ? null : entry.resource().deepCopy();
    }

    @Override
    public Listing list(Type type, @Nullable String namespace) {
        List<Entry> found;
        long version;
        synchronized (lock) {
            found = present(type, namespace);
            version = durable;
        }
        List<ObjectNode> items = new ArrayList<>(found.size());
        for (Entry entry : found) {
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
            Entry old = require(key, expectedVersion);
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
            Entry old = require(key, expectedVersion);
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
            List<Entry> present = new ArrayList<>();
            if (fromVersion == 0) {
                for (Entry entry : present(type, namespace)) {
                    present.add(new Entry(entry.key(), Change.Kind.ADDED, entry.version(), entry.resource()));
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

    /** Ends the watches and lets changes under way come to their end. */
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
                interrupted = true;
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    private void requireOpen() {
        if (closed) {
            throw ServingException.of(ErrorCode.UNAVAILABLE, "the store is closed: the server stops");
        }
    }

    private @Nullable Entry committed(Key key) {
        TreeMap<String, TreeMap<String, Entry>> namespaces = all.get(key.type());
        TreeMap<String, Entry> names = namespaces == null ? null : namespaces.get(key.namespace());
        return names == null ? null : names.get(key.name());
    }

    /** What the next change builds on: the last one that was accepted, be it on disk or not. */
    private @Nullable Entry latest(Key key) {
        Entry entry = pending.get(key);
        if (entry != null) {
            return entry.kind() == Change.Kind.DELETED ? null : entry;
        }
        return committed(key);
    }

    private Entry require(Key key, @Nullable String expectedVersion) {
        Entry old = latest(key);
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

    private List<Entry> present(Type type, @Nullable String namespace) {
        List<Entry> found = new ArrayList<>();
        TreeMap<String, TreeMap<String, Entry>> namespaces = all.get(type);
        if (namespaces != null) {
            if (namespace == null) {
                namespaces.values().forEach(names -> found.addAll(names.values()));
            } else {
                TreeMap<String, Entry> names = namespaces.get(namespace);
                if (names != null) {
                    found.addAll(names.values());
                }
            }
        }
        return found;
    }

    private void put(Entry entry) {
        Key key = entry.key();
        if (entry.kind() == Change.Kind.DELETED) {
            TreeMap<String, TreeMap<String, Entry>> namespaces = all.get(key.type());
            TreeMap<String, Entry> names = namespaces == null ? null : namespaces.get(key.namespace());
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

    private Waiting add(Key key, Change.Kind kind, ObjectNode resource) {
        last++;
        metadata(resource).put("resourceVersion", Long.toString(last));
        Entry entry = new Entry(key, kind, last, resource);
        pending.put(key, entry);
        return enqueue(new Waiting(entry, true));
    }

    /** Nothing changes, but what was read may not be on disk yet. */
    private Waiting add(Entry unchanged) {
        return enqueue(new Waiting(unchanged, false));
    }

    private Waiting enqueue(Waiting waiting) {
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
                // the process's end lets go of it
            }
        }
    }

    private void write(List<Waiting> batch) {
        List<Entry> changes = new ArrayList<>(batch.size());
        for (Waiting waiting : batch) {
            if (waiting.isChange) {
                changes.add(waiting.entry);
            }
        }
        try {
            if (!changes.isEmpty()) {
                journal.append(Entry.write(changes));
            }
        } catch (IOException | RuntimeException e) {
            fail(batch, e instanceof IOException io ? Journal.refusal(directory, io) : ServingException.from(e));
            return;
        }
        List<Entry> snapshot = null;
        synchronized (lock) {
            for (Entry entry : changes) {
                put(entry);
                pending.remove(entry.key(), entry);
                durable = entry.version();
                watchers.changed(entry);
            }
            if (journal.wantsCompaction()) {
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
            snapshot.sort(Comparator.comparingLong(Entry::version));
            journal.compact(durable(), snapshot);
        }
    }

    private long durable() {
        synchronized (lock) {
            return durable;
        }
    }

    /** Refuses a batch and whatever was built on it in the meantime. */
    private void fail(List<Waiting> batch, ServingException why) {
        List<Waiting> refused = new ArrayList<>(batch);
        synchronized (lock) {
            refused.addAll(queue);
            queue = new ArrayList<>();
            pending.clear();
            last = durable;
        }
        refused.forEach(waiting -> waiting.done.completeExceptionally(why));
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

    /** A change that waits for the disk. */
    private static final class Waiting {
        final Entry entry;
        final boolean isChange;
        final CompletableFuture<ObjectNode> done = new CompletableFuture<>();

        Waiting(Entry entry, boolean isChange) {
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
