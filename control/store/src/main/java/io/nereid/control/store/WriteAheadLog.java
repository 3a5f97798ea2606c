// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.store;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Locale;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The write-ahead log of a store and its snapshots: {@code snapshot-VERSION} contains all resources at a version, and
 * {@code journal-VERSION} the changes since. Confined to one thread at a time.
 */
final class WriteAheadLog {
    private static final Logger LOG = LoggerFactory.getLogger(WriteAheadLog.class);
    private static final String SNAPSHOT = "snapshot-";
    private static final String JOURNAL = "journal-";
    private static final int SNAPSHOT_BATCH = 256;

    private final Path directory;
    private final StoreFiles files;
    private final long compactAfter;
    private @Nullable FileChannel file;
    private long end;
    private long nextCompaction;
    /** Whether a failed append may have left bytes after {@code end} that must be truncated before the next one. */
    private boolean torn;

    /** A log that must be opened before use. */
    WriteAheadLog(Path directory, StoreFiles files, long compactAfter) {
        this.directory = directory;
        this.files = files;
        this.compactAfter = compactAfter;
        this.nextCompaction = compactAfter;
    }

    /**
     * Reads the newest snapshot and the changes since, and prepares the log for appending.
     *
     * @param restored receives every resource of the snapshot
     * @param changed receives every later change, in order
     * @return the version of the snapshot, or 0
     * @throws ServingException DATA_LOSS when a file is damaged
     */
    long open(Consumer<ChangeRecord> restored, Consumer<ChangeRecord> changed) throws IOException {
        List<Path> snapshots = list(SNAPSHOT);
        long base = 0;
        long size = 0;
        if (!snapshots.isEmpty()) {
            Path newest = snapshots.get(snapshots.size() - 1);
            base = version(newest);
            size = Files.size(newest);
            readSnapshot(newest, restored);
        }
        List<Path> journals = list(JOURNAL);
        long last = base;
        for (int i = 0; i < journals.size(); i++) {
            Path path = journals.get(i);
            boolean isLast = i == journals.size() - 1;
            byte[] bytes = Files.readAllBytes(path);
            long[] read = {last};
            int good = RecordFormat.read(path, bytes, isLast, payload -> {
                for (ChangeRecord entry : changes(path, payload)) {
                    if (entry.version() > read[0]) {
                        if (entry.version() != read[0] + 1) {
                            throw RecordFormat.damaged(
                                    path, 0, "version " + entry.version() + " comes after version " + read[0]);
                        }
                        read[0] = entry.version();
                        changed.accept(entry);
                    }
                }
            });
            last = read[0];
            if (isLast) {
                resume(path, bytes.length, good);
            }
        }
        if (file == null) {
            begin(last);
        }
        clean(base, journals);
        nextCompaction = Math.max(compactAfter, 2 * size);
        return base;
    }

    private static List<ChangeRecord> changes(Path path, byte[] payload) {
        try {
            return ChangeRecord.read(payload);
        } catch (IOException e) {
            throw RecordFormat.damaged(path, 0, "a record with a valid checksum cannot be read");
        }
    }

    private void readSnapshot(Path path, Consumer<ChangeRecord> restored) throws IOException {
        List<byte[]> payloads = new ArrayList<>();
        RecordFormat.read(path, Files.readAllBytes(path), false, payloads::add);
        long count = 0;
        for (byte[] payload : payloads) {
            // The last record is the number of resources: eight bytes, which cannot be JSON of an entry.
            if (payload.length == Long.BYTES) {
                if (ByteBuffer.wrap(payload).getLong() != count) {
                    break;
                }
                return;
            }
            for (ChangeRecord entry : changes(path, payload)) {
                restored.accept(entry);
                count++;
            }
        }
        throw RecordFormat.damaged(path, 0, "it is not complete");
    }

    /** Continues the newest log after its last valid record. */
    private void resume(Path path, int length, int good) throws IOException {
        FileChannel channel = FileChannel.open(path, StandardOpenOption.WRITE);
        file = channel;
        if (good < length) {
            LOG.warn(
                    "'{}' ends with {} bytes of a change that was never acknowledged; they are truncated",
                    path,
                    length - good);
            channel.truncate(good);
        }
        if (good == 0) {
            files.write(channel, RecordFormat.header(), 0);
            good = RecordFormat.HEADER;
        }
        // Records that a killed process wrote may still be in the page cache only. Sync them before they are
        // acknowledged by reads.
        files.force(channel);
        end = good;
    }

    /** Starts a new log and closes the old one. On failure the old one stays in use. */
    private void begin(long version) throws IOException {
        Path path = directory.resolve(name(JOURNAL, version));
        FileChannel fresh = FileChannel.open(
                path, StandardOpenOption.CREATE, StandardOpenOption.TRUNCATE_EXISTING, StandardOpenOption.WRITE);
        try {
            files.write(fresh, RecordFormat.header(), 0);
            files.force(fresh);
            StoreFiles.forceNames(directory);
        } catch (IOException e) {
            fresh.close();
            Files.deleteIfExists(path);
            throw e;
        }
        FileChannel old = file;
        file = fresh;
        end = RecordFormat.HEADER;
        torn = false;
        if (old != null) {
            old.close();
        }
    }

    /**
     * Appends changes and returns when they are durable. When it throws, the record is not in the log: it is truncated
     * now, or else before the next append.
     */
    void append(byte[] payload) throws IOException {
        FileChannel channel = file;
        if (channel == null) {
            throw new IOException("the journal is closed");
        }
        if (torn) {
            rollBack(channel);
        }
        ByteBuffer record = RecordFormat.record(payload, payload.length);
        int length = record.remaining();
        try {
            files.write(channel, record, end);
            files.force(channel);
        } catch (IOException e) {
            torn = true;
            try {
                rollBack(channel);
            } catch (IOException again) {
                // The next append truncates before it writes.
                e.addSuppressed(again);
            }
            throw e;
        }
        end += length;
    }

    /** Truncates the log to its last acknowledged record. */
    private void rollBack(FileChannel channel) throws IOException {
        channel.truncate(end);
        files.force(channel);
        torn = false;
    }

    /** Whether the log has grown enough for a snapshot. */
    boolean needsCompaction() {
        return end >= nextCompaction;
    }

    /**
     * Writes a snapshot and starts a new log. Does not throw: without a snapshot the log continues. The snapshot is
     * written under a temporary name and renamed when it is synced, so that an incomplete one is never read.
     */
    void compact(long version, Collection<ChangeRecord> all) {
        Path path = directory.resolve(name(SNAPSHOT, version));
        Path unfinished = directory.resolve(path.getFileName() + ".tmp");
        try {
            long size = writeSnapshot(unfinished, all);
            Files.move(unfinished, path, StandardCopyOption.ATOMIC_MOVE);
            StoreFiles.forceNames(directory);
            List<Path> journals = list(JOURNAL);
            begin(version);
            nextCompaction = Math.max(compactAfter, 2 * size);
            journals.remove(directory.resolve(name(JOURNAL, version)));
            for (Path old : journals) {
                Files.deleteIfExists(old);
            }
            clean(version, List.of());
        } catch (IOException e) {
            nextCompaction = Math.max(end, 1) * 2;
            LOG.warn("a snapshot could not be written to '{}'; the journal continues", directory, e);
            try {
                Files.deleteIfExists(unfinished);
            } catch (IOException again) {
                LOG.debug("cannot delete '{}'", unfinished, again);
            }
        }
    }

    private long writeSnapshot(Path path, Collection<ChangeRecord> all) throws IOException {
        try (FileChannel channel = FileChannel.open(
                path, StandardOpenOption.CREATE, StandardOpenOption.TRUNCATE_EXISTING, StandardOpenOption.WRITE)) {
            files.write(channel, RecordFormat.header(), 0);
            long at = RecordFormat.HEADER;
            List<ChangeRecord> batch = new ArrayList<>(SNAPSHOT_BATCH);
            for (ChangeRecord entry : all) {
                batch.add(entry);
                if (batch.size() == SNAPSHOT_BATCH) {
                    at += write(channel, at, ChangeRecord.write(batch));
                    batch.clear();
                }
            }
            if (!batch.isEmpty()) {
                at += write(channel, at, ChangeRecord.write(batch));
            }
            at += write(
                    channel,
                    at,
                    ByteBuffer.allocate(Long.BYTES).putLong(all.size()).array());
            files.force(channel);
            return at;
        }
    }

    private int write(FileChannel channel, long at, byte[] payload) throws IOException {
        ByteBuffer record = RecordFormat.record(payload, payload.length);
        int length = record.remaining();
        files.write(channel, record, at);
        return length;
    }

    /**
     * Deletes files that a newer snapshot has made obsolete, and temporary ones. A journal is obsolete when a later one
     * begins at or before the snapshot's version.
     */
    private void clean(long snapshot, List<Path> journals) throws IOException {
        for (Path path : list(SNAPSHOT)) {
            if (version(path) < snapshot) {
                Files.deleteIfExists(path);
            }
        }
        for (int i = 0; i + 1 < journals.size(); i++) {
            if (version(journals.get(i + 1)) <= snapshot) {
                Files.deleteIfExists(journals.get(i));
            }
        }
        try (DirectoryStream<Path> unfinished = Files.newDirectoryStream(directory, SNAPSHOT + "*.tmp")) {
            for (Path path : unfinished) {
                Files.deleteIfExists(path);
            }
        }
    }

    /** The files with this prefix, ordered by version. */
    private List<Path> list(String prefix) throws IOException {
        List<Path> found = new ArrayList<>();
        try (DirectoryStream<Path> all = Files.newDirectoryStream(directory, prefix + "*")) {
            for (Path path : all) {
                if (path.getFileName().toString().matches(prefix + "\\d{19}")) {
                    found.add(path);
                }
            }
        }
        found.sort(null);
        return found;
    }

    private static String name(String prefix, long version) {
        return prefix + String.format(Locale.ROOT, "%019d", version);
    }

    private static long version(Path path) {
        String name = path.getFileName().toString();
        return Long.parseLong(name.substring(name.indexOf('-') + 1));
    }

    /** Closes the file. */
    void close() {
        FileChannel channel = file;
        file = null;
        if (channel != null) {
            try {
                channel.close();
            } catch (IOException e) {
                LOG.debug("closing the journal failed", e);
            }
        }
    }

    /** The error of a change that could not be written. */
    static ServingException writeFailure(Path directory, IOException e) {
        String message = String.valueOf(e.getMessage());
        boolean full = message.contains("No space left") || message.contains("Disk quota exceeded");
        return ServingException.wrap(
                full ? ErrorCode.RESOURCE_EXHAUSTED : ErrorCode.UNAVAILABLE,
                "the change was not made: it could not be written to '" + directory + "': " + message,
                full
                        ? "free space on that disk and try again; changes acknowledged before are safe"
                        : "check that disk and try again; changes acknowledged before are safe",
                e);
    }
}
