// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.control.api.store.ResourceStore;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class FileResourceStoreTest extends ResourceStoreContract {
    @TempDir
    private Path dir;

    private int stores;

    @Override
    ResourceStore emptyStore() {
        return FileResourceStore.open(dir.resolve("contract-" + stores++), Clock.system());
    }

    private FileResourceStore open(Path path) {
        return FileResourceStore.open(path, Clock.system());
    }

    private static Path only(Path directory, String prefix) throws IOException {
        try (Stream<Path> all = Files.list(directory)) {
            List<Path> found = all.filter(p -> p.getFileName().toString().startsWith(prefix))
                    .toList();
            assertThat(found).hasSize(1);
            return found.get(0);
        }
    }

    private static void createMany(ResourceStore store, int from, int to) {
        for (int i = from; i < to; i++) {
            store.create(SERVICES, resource("a", "s" + i, "value-" + i));
        }
    }

    @Test
    void everythingIsThereAfterARestart() {
        Path path = dir.resolve("s");
        ResourceStore.Listing before;
        try (FileResourceStore store = open(path)) {
            createMany(store, 0, 10);
            store.update(SERVICES, resource("a", "s3", "new"), null);
            store.delete(key("a", "s4"), null);
            before = store.list(SERVICES, null);
        }
        try (FileResourceStore store = open(path)) {
            assertThat(store.list(SERVICES, null)).isEqualTo(before);
            ObjectNode next = store.create(SERVICES, resource("a", "s4", "again"));
            assertThat(next.at("/metadata/resourceVersion").asLong()).isEqualTo(before.version() + 1);
        }
    }

    @Test
    void aTornEndIsTruncatedWhereverItWasTorn() throws Exception {
        Path path = dir.resolve("s");
        try (FileResourceStore store = open(path)) {
            createMany(store, 0, 3);
        }
        Path journal = only(path, "journal-");
        byte[] whole = Files.readAllBytes(journal);
        long third = whole.length;
        try (FileResourceStore store = open(path)) {
            createMany(store, 3, 4);
        }
        byte[] longer = Files.readAllBytes(journal);
        for (int length = (int) third; length < longer.length; length += 7) {
            Files.write(journal, java.util.Arrays.copyOf(longer, length));
            try (FileResourceStore store = open(path)) {
                assertThat(store.list(SERVICES, null).items())
                        .as("cut at %d", length)
                        .hasSize(3);
                createMany(store, 3, 4);
            }
            try (FileResourceStore store = open(path)) {
                assertThat(store.list(SERVICES, null).items()).hasSize(4);
            }
        }
        for (int length = 0; length < RecordFormat.HEADER; length++) {
            Files.write(journal, java.util.Arrays.copyOf(longer, length));
            try (FileResourceStore store = open(path)) {
                assertThat(store.list(SERVICES, null).items()).isEmpty();
            }
        }
    }

    @Test
    void damageInTheMiddleIsRejectedAndFilesAreNotModified() throws Exception {
        Path path = dir.resolve("s");
        try (FileResourceStore store = open(path)) {
            createMany(store, 0, 3);
        }
        Path journal = only(path, "journal-");
        byte[] whole = Files.readAllBytes(journal);
        for (int at = 0; at < 60; at += 5) {
            byte[] damaged = whole.clone();
            damaged[at] ^= 0x40;
            Files.write(journal, damaged);
            assertThatThrownBy(() -> open(path).close()).isInstanceOfSatisfying(ServingException.class, e -> {
                assertThat(e.code()).isIn(ErrorCode.DATA_LOSS, ErrorCode.FAILED_PRECONDITION);
                assertThat(e.describe()).contains(journal.toString());
                if (e.code() == ErrorCode.DATA_LOSS) {
                    assertThat(e.remedy()).contains("no file was modified", "move '" + path + "' away");
                }
            });
            assertThat(Files.readAllBytes(journal)).isEqualTo(damaged);
        }
        Files.write(journal, whole);
        try (FileResourceStore store = open(path)) {
            assertThat(store.list(SERVICES, null).items()).hasSize(3);
        }
    }

    @Test
    void aRecordThatIsWholeAndDoesNotDescribeChangesIsDamage() throws Exception {
        Path path = dir.resolve("s");
        try (FileResourceStore store = open(path)) {
            createMany(store, 0, 1);
        }
        Path journal = only(path, "journal-");
        byte[] whole = Files.readAllBytes(journal);
        for (String payload : List.of(
                "no JSON",
                "",
                "{}",
                "[1]",
                "[{\"v\":2,\"k\":\"A\",\"g\":\"\",\"p\":\"p\",\"s\":\"s\",\"n\":\"n\"}]",
                "[{\"v\":2,\"k\":\"A\",\"g\":\"\",\"p\":\"p\",\"s\":\"s\",\"n\":\"n\",\"r\":7}]",
                "[".repeat(100_000))) {
            byte[] bytes = payload.getBytes(java.nio.charset.StandardCharsets.UTF_8);
            ByteBuffer record = RecordFormat.record(bytes, bytes.length);
            byte[] longer = java.util.Arrays.copyOf(whole, whole.length + record.remaining());
            record.get(longer, whole.length, record.remaining());
            Files.write(journal, longer);
            assertRejected(
                    ErrorCode.DATA_LOSS, journal.toString(), () -> open(path).close());
            assertThat(Files.readAllBytes(journal)).isEqualTo(longer);
        }
    }

    @Test
    void oneProcessLocksTheDirectory() {
        Path path = dir.resolve("s");
        try (FileResourceStore store = open(path)) {
            assertRejected(
                    ErrorCode.FAILED_PRECONDITION,
                    "is used by another server (process ",
                    () -> open(path).close());
            createMany(store, 0, 1);
        }
        open(path).close();
    }

    @Test
    void snapshotsKeepTheFilesSmall() throws Exception {
        Path path = dir.resolve("s");
        ResourceStore.Listing before;
        try (FileResourceStore store = FileResourceStore.open(path, Clock.system(), StoreFiles.REAL, 50, 20_000)) {
            createMany(store, 0, 20);
            for (int i = 0; i < 500; i++) {
                store.update(SERVICES, resource("a", "s" + i % 20, "round-" + i), null);
            }
            before = store.list(SERVICES, null);
            assertThat(Files.size(only(path, "journal-"))).isLessThan(40_000);
            only(path, "snapshot-");
            assertRejected(
                    ErrorCode.OUT_OF_RANGE,
                    "too old resource version",
                    () -> store.watch(SERVICES, null, 100, c -> {}).close());
            store.watch(SERVICES, null, before.version() - 50, c -> {}).close();
        }
        try (FileResourceStore store = open(path)) {
            assertThat(store.list(SERVICES, null)).isEqualTo(before);
            assertRejected(
                    ErrorCode.OUT_OF_RANGE,
                    "too old resource version",
                    () -> store.watch(SERVICES, null, 400, c -> {}).close());
        }
        Path snapshot = only(path, "snapshot-");
        byte[] whole = Files.readAllBytes(snapshot);
        Files.write(snapshot, java.util.Arrays.copyOf(whole, whole.length - 20));
        assertRejected(ErrorCode.DATA_LOSS, "snapshot-", () -> open(path).close());
    }

    @Test
    void aCrashBetweenSnapshotAndJournalLosesNothing() throws Exception {
        Path path = dir.resolve("s");
        try (FileResourceStore store = open(path)) {
            createMany(store, 0, 20);
        }
        byte[] journal = Files.readAllBytes(only(path, "journal-"));
        Path name = only(path, "journal-");
        try (FileResourceStore store = FileResourceStore.open(path, Clock.system(), StoreFiles.REAL, 50, 100)) {
            createMany(store, 20, 21);
        }
        // As if the old journal had not been deleted yet.
        Files.write(name, journal);
        try (FileResourceStore store = open(path)) {
            assertThat(store.list(SERVICES, null).items()).hasSize(21);
            createMany(store, 21, 22);
        }
        try (FileResourceStore store = open(path)) {
            assertThat(store.list(SERVICES, null).items()).hasSize(22);
        }
    }

    /** A disk with limited space; a write that exceeds it is done in part. */
    private static final class SmallDisk implements StoreFiles {
        volatile long space = Long.MAX_VALUE;
        final AtomicInteger forced = new AtomicInteger();
        volatile CountDownLatch forcing = new CountDownLatch(0);
        volatile boolean broken;

        @Override
        public void write(FileChannel file, ByteBuffer bytes, long position) throws IOException {
            int length = bytes.remaining();
            if (length <= space) {
                space -= length;
                StoreFiles.REAL.write(file, bytes, position);
                return;
            }
            bytes.limit(bytes.position() + (int) space);
            space = 0;
            StoreFiles.REAL.write(file, bytes, position);
            throw new IOException("No space left on device");
        }

        @Override
        public void force(FileChannel file) throws IOException {
            forced.incrementAndGet();
            try {
                forcing.await();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
            if (broken) {
                throw new IOException("Input/output error");
            }
            StoreFiles.REAL.force(file);
        }
    }

    @Test
    void aFullDiskRejectsChangesAndLosesNone() throws Exception {
        Path path = dir.resolve("s");
        SmallDisk disk = new SmallDisk();
        ResourceStore.Listing before;
        try (FileResourceStore store = FileResourceStore.open(path, Clock.system(), disk, 100, 1_000_000)) {
            createMany(store, 0, 5);
            before = store.list(SERVICES, null);
            for (int space = 0; space < 100; space += 33) {
                disk.space = space;
                assertRejected(ErrorCode.RESOURCE_EXHAUSTED, "No space left on device", () -> createMany(store, 5, 6));
                assertRejected(
                        ErrorCode.RESOURCE_EXHAUSTED,
                        "the change was not made",
                        () -> store.delete(key("a", "s1"), null));
                assertThat(store.list(SERVICES, null)).isEqualTo(before);
            }
            disk.space = Long.MAX_VALUE;
            disk.broken = true;
            assertRejected(ErrorCode.UNAVAILABLE, "Input/output error", () -> createMany(store, 5, 6));
            disk.broken = false;
            createMany(store, 5, 6);
            before = store.list(SERVICES, null);
            assertThat(before.items()).hasSize(6);
            assertThat(before.version()).isEqualTo(6);
        }
        try (FileResourceStore store = open(path)) {
            assertThat(store.list(SERVICES, null)).isEqualTo(before);
        }
    }

    @Test
    void aFullDiskDuringASnapshotKeepsTheJournal() throws Exception {
        Path path = dir.resolve("s");
        SmallDisk disk = new SmallDisk();
        try (FileResourceStore store = FileResourceStore.open(path, Clock.system(), disk, 100, 2_000)) {
            createMany(store, 0, 4);
            disk.space = 600;
            createMany(store, 4, 5);
            int i = 5;
            try {
                while (i < 100) {
                    createMany(store, i, i + 1);
                    i++;
                }
            } catch (ServingException e) {
                assertThat(e.code()).isEqualTo(ErrorCode.RESOURCE_EXHAUSTED);
            }
            disk.space = Long.MAX_VALUE;
            createMany(store, i, 40);
            assertThat(store.list(SERVICES, null).items()).hasSize(40);
        }
        try (FileResourceStore store = open(path)) {
            assertThat(store.list(SERVICES, null).items()).hasSize(40);
        }
    }

    @Test
    void concurrentChangesShareASync() throws Exception {
        SmallDisk disk = new SmallDisk();
        ThreadPoolExecutor pool = Threads.pool("test-writers", 20);
        try (FileResourceStore store = FileResourceStore.open(dir.resolve("s"), Clock.system(), disk, 100, 1_000_000)) {
            int before = disk.forced.get();
            CountDownLatch latch = new CountDownLatch(1);
            disk.forcing = latch;
            List<Future<?>> writes = new ArrayList<>();
            for (int i = 0; i < 20; i++) {
                int n = i;
                writes.add(pool.submit(() -> createMany(store, n, n + 1)));
            }
            while (pool.getActiveCount() < 20) {
                Thread.onSpinWait();
            }
            assertThat(store.list(SERVICES, null).items()).isEmpty();
            latch.countDown();
            for (Future<?> write : writes) {
                write.get(20, TimeUnit.SECONDS);
            }
            assertThat(store.list(SERVICES, null).items()).hasSize(20);
            assertThat(disk.forced.get() - before).isLessThanOrEqualTo(10);
        } finally {
            pool.shutdownNow();
        }
    }

    @Test
    void aClosedStoreRejectsChanges() {
        FileResourceStore store = open(dir.resolve("s"));
        store.close();
        store.close();
        assertRejected(ErrorCode.UNAVAILABLE, "the server is shutting down", () -> createMany(store, 0, 1));
    }
}
