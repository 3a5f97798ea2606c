// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.cache;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.storage.Given;
import io.nereid.storage.Storage;
import io.nereid.storage.object.TestServer;
import io.nereid.storage.request.StorageLease;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ContentCacheTest {
    @TempDir
    Path directory;

    private TestServer server;
    private final AtomicLong millis = new AtomicLong(1_000_000);

    /** Each read of the wall clock is a second later, so that uses have an order. */
    private final Clock clock = new Clock() {
        @Override
        public long nanos() {
            return Clock.system().nanos();
        }

        @Override
        public long millis() {
            return millis.addAndGet(1000);
        }
    };

    @BeforeEach
    void start() throws Exception {
        server = new TestServer();
        for (char c = 'a'; c <= 'e'; c++) {
            server.put("/" + c, Given.random(1000, c));
        }
    }

    @AfterEach
    void stop() {
        server.close();
    }

    private Storage storage(long quota) {
        return new Storage(Given.options(directory).withQuota(quota, 0), clock);
    }

    private static boolean there(StorageLease stored) {
        return Files.exists(stored.path());
    }

    @Test
    void aClosedReservationTakesNoMoreSpace() {
        try (ContentCache cache = new ContentCache(Given.options(directory), clock, new CacheFileSystem())) {
            CacheReservation space = cache.space("a download");
            space.needs(1000, 0);
            assertThat(cache.held()).isEqualTo(1000);
            space.close();
            // A part of the download that was interrupted may still run.
            space.needs(2000, 0);
            assertThat(cache.held()).isZero();
        }
    }

    @Test
    void whatWasUsedLongestAgoMakesRoomButNeverWhatIsLeased() {
        try (Storage storage = storage(3500)) {
            StorageLease a = Given.fetch(storage, server.url() + "/a");
            StorageLease b = Given.fetch(storage, server.url() + "/b");
            StorageLease c = Given.fetch(storage, server.url() + "/c");
            b.close();
            c.close();
            Given.fetch(storage, server.url() + "/b").close();
            Given.fetch(storage, server.url() + "/d").close();
            assertThat(there(a)).isTrue();
            assertThat(there(b)).isTrue();
            assertThat(there(c)).isFalse();
            assertThat(storage.held()).isEqualTo(3000);
        }
    }

    @Test
    void aQuotaThatLeasesFillIsToldWithWhatIsNeeded() {
        try (Storage storage = storage(2500)) {
            StorageLease a = Given.fetch(storage, server.url() + "/a");
            StorageLease b = Given.fetch(storage, server.url() + "/b");
            assertThatThrownBy(() -> Given.fetch(storage, server.url() + "/c"))
                    .isInstanceOfSatisfying(
                            ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.RESOURCE_EXHAUSTED))
                    .hasMessageContaining("needs 1000 B")
                    .hasMessageContaining("2.4 KiB");
            b.close();
            b.close();
            Given.fetch(storage, server.url() + "/c").close();
            assertThat(there(a)).isTrue();
            assertThat(there(b)).isFalse();
        }
    }

    @Test
    void twoLeasesOfOneThingAreTwo() {
        try (Storage storage = storage(1500)) {
            StorageLease one = Given.fetch(storage, server.url() + "/a");
            StorageLease two = Given.fetch(storage, server.url() + "/a");
            one.close();
            one.close();
            assertThatThrownBy(() -> Given.fetch(storage, server.url() + "/b")).hasMessageContaining("in use");
            two.close();
            Given.fetch(storage, server.url() + "/b").close();
        }
    }

    @Test
    void aRestartKnowsWhatIsThereAndClearsWhatIsNot() throws Exception {
        Path path;
        try (Storage storage = storage(5000)) {
            StorageLease stored = Given.fetch(storage, server.url() + "/a");
            path = stored.path();
        }
        Files.createDirectories(directory.resolve("cache/temp/w9/tree"));
        Files.createDirectories(directory.resolve("cache/content/0123/tree"));
        try (Storage storage = storage(5000)) {
            assertThat(storage.held()).isEqualTo(1000);
            try (StorageLease stored = Given.fetch(storage, server.url() + "/a")) {
                assertThat(stored.path()).isEqualTo(path);
            }
            assertThat(server.count("GET", "/a")).isEqualTo(1);
            assertThat(directory.resolve("cache/temp/w9")).doesNotExist();
            assertThat(directory.resolve("cache/content/0123")).doesNotExist();
        }
    }

    @Test
    void oneCacheHasOneOwner() {
        Storage storage = storage(5000);
        assertThatThrownBy(() -> storage(5000))
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.FAILED_PRECONDITION));
        storage.close();
        storage(5000).close();
    }

    @Test
    void aFullDiskIsToldBeforeTheDownload() {
        CacheFileSystem full = new CacheFileSystem() {
            @Override
            public long usable(Path path) {
                return 999;
            }
        };
        try (Storage storage = new Storage(Given.options(directory), clock, List.of(), full)) {
            assertThatThrownBy(() -> Given.fetch(storage, server.url() + "/a"))
                    .isInstanceOfSatisfying(
                            ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.RESOURCE_EXHAUSTED))
                    .hasMessageContaining("needs 1000 B more on the disk")
                    .hasMessageContaining("999 B free");
            assertThat(server.count("GET", "/a")).isZero();
        }
    }

    @Test
    void aDiskThatFillsUpOnTheWayIsToldAndLeftClean() throws Exception {
        server.put("/big", Given.random(20 << 20, 9));
        AtomicLong left = new AtomicLong(10 << 20);
        CacheFileSystem filling = new CacheFileSystem() {
            @Override
            public void write(FileChannel file, ByteBuffer bytes, long position) throws IOException {
                if (left.addAndGet(-bytes.remaining()) < 0) {
                    throw new IOException("No space left on device");
                }
                super.write(file, bytes, position);
            }
        };
        try (Storage storage = new Storage(Given.options(directory), clock, List.of(), filling)) {
            assertThatThrownBy(() -> Given.fetch(storage, server.url() + "/big"))
                    .isInstanceOfSatisfying(
                            ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.RESOURCE_EXHAUSTED))
                    .hasMessageContaining("the disk is full")
                    .hasMessageContaining("needs 20.0 MiB");
            assertThat(storage.held()).isZero();
            try (var rest = Files.list(directory.resolve("cache/partial"))) {
                assertThat(rest).isEmpty();
            }
        }
    }

    @Test
    void filesAreThereForReadingOnly() throws Exception {
        try (Storage storage = storage(5000)) {
            StorageLease stored = Given.fetch(storage, server.url() + "/a");
            assertThat(Files.getPosixFilePermissions(stored.path().resolve("a")).toString())
                    .doesNotContain("WRITE");
        }
    }

    @Test
    void whatIsOnTheMachineIsUsedWhereItIs() throws Exception {
        Path model = Files.createDirectories(directory.resolve("pvc/claim/model"));
        Files.writeString(model.resolve("m.bin"), "here");
        Files.writeString(model.resolve("n.txt"), "too");
        try (Storage storage = new Storage(Given.options(directory).withPvcRoot(directory.resolve("pvc")), clock)) {
            try (StorageLease file = Given.fetch(storage, "file://" + model);
                    StorageLease plain = Given.fetch(storage, model.toString());
                    StorageLease claim = Given.fetch(storage, "pvc://claim/model");
                    StorageLease single = Given.fetch(storage, "file://" + model + "/m.bin")) {
                assertThat(file.path()).isEqualTo(model).isEqualTo(plain.path()).isEqualTo(claim.path());
                assertThat(Given.files(single.path())).isEqualTo(java.util.Map.of("m.bin", "here"));
                String before = file.digest();
                Files.writeString(model.resolve("m.bin"), "changed");
                try (StorageLease again = Given.fetch(storage, "file://" + model)) {
                    assertThat(again.digest()).isNotEqualTo(before);
                }
            }
            Files.createSymbolicLink(directory.resolve("pvc/claim/out"), directory);
            assertThatThrownBy(() -> Given.fetch(storage, "pvc://claim/out")).hasMessageContaining("leads out");
            assertThatThrownBy(() -> Given.fetch(storage, "pvc://claim/../x")).hasMessageContaining("leaves");
            assertThatThrownBy(() -> Given.fetch(storage, "pvc://other/x")).hasMessageContaining("no directory");
            assertThatThrownBy(() -> Given.fetch(storage, "file:///no/such/model"))
                    .hasMessage("Local path file:///no/such/model does not exist.");
        }
    }
}
