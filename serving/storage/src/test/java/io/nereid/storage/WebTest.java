// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.storage.object.TestServer;
import io.nereid.storage.request.ProgressListener;
import io.nereid.storage.request.StorageLease;
import io.nereid.storage.request.StorageRequest;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class WebTest {
    private static final int BIG = 20 << 20;

    @TempDir
    Path directory;

    private TestServer server;
    private Storage storage;

    @BeforeEach
    void start() throws Exception {
        server = new TestServer();
        storage = Given.storage(directory);
    }

    @AfterEach
    void stop() {
        storage.close();
        server.close();
    }

    @Test
    void aFileLandsUnderItsName() throws Exception {
        server.put("/models/iris/model.onnx", "hello");
        try (StorageLease stored = Given.fetch(storage, server.url() + "/models/iris/model.onnx")) {
            assertThat(Given.files(stored.path())).containsExactly(Map.entry("model.onnx", "hello"));
            assertThat(stored.bytes()).isEqualTo(5);
            assertThat(stored.digest()).startsWith("sha256:");
            assertThat(stored.current()).isTrue();
        }
    }

    @Test
    void anUnchangedFileIsAskedForAndNotBroughtAgain() {
        server.put("/m.bin", "one");
        Given.fetch(storage, server.url() + "/m.bin").close();
        Given.fetch(storage, server.url() + "/m.bin").close();
        assertThat(server.count("GET", "/m.bin")).isEqualTo(1);
        assertThat(server.count("HEAD", "/m.bin")).isEqualTo(2);
        server.put("/m.bin", "two");
        try (StorageLease stored = Given.fetch(storage, server.url() + "/m.bin")) {
            assertThat(stored.path().resolve("m.bin")).hasContent("two");
        }
    }

    @Test
    void equalContentOfTwoPlacesIsHeldOnce() {
        server.put("/a/m.bin", "same");
        server.put("/b/m.bin", "same");
        try (StorageLease a = Given.fetch(storage, server.url() + "/a/m.bin");
                StorageLease b = Given.fetch(storage, server.url() + "/b/m.bin")) {
            assertThat(a.path()).isEqualTo(b.path());
            assertThat(storage.held()).isEqualTo(4);
        }
    }

    @Test
    void aBigFileComesInPartsThatAreResumedWhereAConnectionBroke() throws Exception {
        byte[] content = Given.random(BIG, 1);
        server.put("/big.bin", content);
        for (int cut : new int[] {1, 100_000, 3_000_000}) {
            server.fault("/big.bin", exchange -> server.send(exchange, server.objects.get("/big.bin"), cut));
        }
        try (StorageLease stored = Given.fetch(storage, server.url() + "/big.bin")) {
            assertThat(Files.readAllBytes(stored.path().resolve("big.bin"))).isEqualTo(content);
        }
        List<String> asked = server.seen.stream()
                .filter(s -> s.method().equals("GET"))
                .map(s -> s.header("Range"))
                .toList();
        assertThat(asked).hasSize(6);
        assertThat(asked.stream().filter(range -> range.matches("bytes=(1|\\d*[1-9]\\d*)-.*")))
                .hasSizeGreaterThanOrEqualTo(5);
        assertThat(server.seen.stream().filter(s -> s.method().equals("GET")))
                .allMatch(s -> !s.header("If-range").isEmpty());
    }

    @Test
    void passingTroubleIsTriedAgain() {
        server.put("/m.bin", "x");
        server.fault("/m.bin", exchange -> TestServer.status(exchange, 503));
        server.fault("/m.bin", exchange -> TestServer.status(exchange, 429));
        Given.fetch(storage, server.url() + "/m.bin").close();
        assertThat(server.count("GET", "/m.bin")).isEqualTo(3);
    }

    @Test
    void lastingTroubleIsToldWithTheStatusAndKeepsNothingInTheCache() {
        server.put("/m.bin", "x");
        for (int i = 0; i < 3; i++) {
            server.fault("/m.bin", exchange -> TestServer.status(exchange, 500));
        }
        assertThatThrownBy(() -> Given.fetch(storage, server.url() + "/m.bin"))
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.UNAVAILABLE))
                .hasMessageContaining("/m.bin")
                .hasMessageContaining("500");
        assertThat(storage.held()).isZero();
    }

    @Test
    void statusesBecomeCodes() {
        Map<Integer, ErrorCode> codes = Map.of(
                401,
                ErrorCode.UNAUTHENTICATED,
                403,
                ErrorCode.PERMISSION_DENIED,
                404,
                ErrorCode.NOT_FOUND,
                418,
                ErrorCode.FAILED_PRECONDITION);
        codes.forEach((status, code) -> {
            server.handlers.put("/s" + status, exchange -> TestServer.status(exchange, status));
            assertThatThrownBy(() -> Given.fetch(storage, server.url() + "/s" + status))
                    .isInstanceOfSatisfying(
                            ServingException.class, e -> assertThat(e.code()).isEqualTo(code));
        });
    }

    @Test
    void aServerThatLiesAboutRangesIsServedInOnePiece() throws Exception {
        byte[] content = Given.random(BIG, 2);
        server.put("/big.bin", content);
        server.handlers.put("/big.bin", exchange -> {
            server.ranges = exchange.getRequestMethod().equals("HEAD");
            server.send(exchange, server.objects.get("/big.bin"), Integer.MAX_VALUE);
        });
        try (StorageLease stored = Given.fetch(storage, server.url() + "/big.bin")) {
            assertThat(Files.readAllBytes(stored.path().resolve("big.bin"))).isEqualTo(content);
        }
    }

    @Test
    void aFileThatChangesWhileItIsBroughtIsBroughtAnew() throws Exception {
        byte[] before = Given.random(BIG, 3);
        byte[] after = Given.random(BIG + 1, 4);
        server.put("/big.bin", before);
        server.fault("/big.bin", exchange -> {
            server.put("/big.bin", after);
            server.send(exchange, server.objects.get("/big.bin"), Integer.MAX_VALUE);
        });
        try (StorageLease stored = Given.fetch(storage, server.url() + "/big.bin")) {
            assertThat(Files.readAllBytes(stored.path().resolve("big.bin"))).isEqualTo(after);
        }
    }

    @Test
    void aFileThatNeverHoldsStillIsRefused() {
        int[] version = {0};
        server.handlers.put("/m.bin", exchange -> {
            server.put("/m.bin", "version " + version[0]++);
            server.send(exchange, server.objects.get("/m.bin"), Integer.MAX_VALUE);
        });
        assertThatThrownBy(() -> Given.fetch(storage, server.url() + "/m.bin"))
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.ABORTED))
                .hasMessageContaining("keeps changing while it is downloaded");
    }

    @Test
    void aFileOfUnknownLengthAndVersionComesToo() throws Exception {
        server.handlers.put("/m.bin", exchange -> {
            if (exchange.getRequestMethod().equals("HEAD")) {
                TestServer.status(exchange, 405);
                return;
            }
            exchange.sendResponseHeaders(200, 0);
            exchange.getResponseBody().write(new byte[100_000]);
            exchange.getResponseBody().close();
        });
        try (StorageLease stored = Given.fetch(storage, server.url() + "/m.bin")) {
            assertThat(Files.size(stored.path().resolve("m.bin"))).isEqualTo(100_000);
        }
    }

    @Test
    void aStalledAnswerIsGivenUpAfterTheReadTimeout() throws Exception {
        storage.close();
        storage = new Storage(
                Given.options(directory).withRetries(2, Duration.ofSeconds(1), Duration.ofMillis(200)), Clock.system());
        server.put("/m.bin", Given.random(100_000, 5));
        server.fault("/m.bin", exchange -> {
            server.send(exchange, server.objects.get("/m.bin"), 10);
            await(server.release);
        });
        try (StorageLease stored = Given.fetch(storage, server.url() + "/m.bin")) {
            assertThat(stored.bytes()).isEqualTo(100_000);
        }
    }

    @Test
    void aPageOfHtmlIsNoModel() {
        server.objects.put(
                "/m.bin",
                new TestServer.Held("<html>".getBytes(StandardCharsets.UTF_8), "\"x\"", "text/html; charset=utf-8"));
        assertThatThrownBy(() -> Given.fetch(storage, server.url() + "/m.bin")).hasMessageContaining("page of HTML");
    }

    @Test
    void headersOfTheHostAreSentThereAndNotWhereARedirectLeads() throws Exception {
        try (TestServer other = new TestServer()) {
            other.put("/real.bin", "there");
            server.handlers.put("/m.bin", exchange -> {
                exchange.getResponseHeaders().set("Location", other.url() + "/real.bin");
                TestServer.status(exchange, 302);
            });
            Map<String, String> credentials = Map.of("127.0.0.1-headers", "{\"X-Token\": \"se-cr-et\"}");
            try (StorageLease stored = Given.fetch(storage, server.url() + "/m.bin", credentials)) {
                assertThat(stored.path().resolve("m.bin")).hasContent("there");
            }
            assertThat(server.seen).allMatch(s -> s.header("X-token").equals("se-cr-et"));
            assertThat(other.seen)
                    .isNotEmpty()
                    .allMatch(s -> s.header("X-token").isEmpty());
        }
    }

    @Test
    void manyWhoWantTheSameShareOneDownload() throws Exception {
        server.put("/m.bin", "x");
        CountDownLatch asked = new CountDownLatch(1);
        server.fault("/m.bin", exchange -> {
            asked.countDown();
            await(server.release);
            server.send(exchange, server.objects.get("/m.bin"), Integer.MAX_VALUE);
        });
        List<CompletableFuture<StorageLease>> all = new CopyOnWriteArrayList<>();
        all.add(storage.fetch(StorageRequest.of(server.url() + "/m.bin"), ProgressListener.none())
                .toCompletableFuture());
        await(asked);
        for (int i = 0; i < 5; i++) {
            all.add(storage.fetch(StorageRequest.of(server.url() + "/m.bin"), ProgressListener.none())
                    .toCompletableFuture());
        }
        server.release.countDown();
        for (CompletableFuture<StorageLease> one : all) {
            Given.get(one).close();
        }
        assertThat(server.count("GET", "/m.bin")).isEqualTo(1);
    }

    @Test
    void aCancelledFetchEndsAndTheNextOneGoesOn() throws Exception {
        byte[] content = Given.random(BIG, 6);
        server.put("/big.bin", content);
        CountDownLatch stuck = new CountDownLatch(1);
        CountDownLatch firstParts = new CountDownLatch(1);
        // The last part hangs; the others come.
        server.handlers.put("/big.bin", exchange -> {
            String range = exchange.getRequestHeaders().getFirst("Range");
            if (stuck.getCount() > 0 && range != null && range.startsWith("bytes=16777216-")) {
                stuck.countDown();
                await(server.release);
            }
            server.send(exchange, server.objects.get("/big.bin"), Integer.MAX_VALUE);
        });
        CompletableFuture<StorageLease> fetch = storage.fetch(StorageRequest.of(server.url() + "/big.bin"), step -> {
                    if (step.bytes() >= 16 << 20) {
                        firstParts.countDown();
                    }
                })
                .toCompletableFuture();
        await(stuck);
        assertThat(fetch.cancel(true)).isTrue();
        try (StorageLease stored = Given.fetch(storage, server.url() + "/big.bin")) {
            assertThat(Files.readAllBytes(stored.path().resolve("big.bin"))).isEqualTo(content);
        }
        assertThat(fetch.isCancelled()).isTrue();
    }

    @Test
    void progressGrowsAndEndsWithAll() {
        server.put("/big.bin", Given.random(BIG, 7));
        List<ProgressListener.Step> steps = new CopyOnWriteArrayList<>();
        Given.get(storage.fetch(StorageRequest.of(server.url() + "/big.bin"), steps::add))
                .close();
        assertThat(steps.get(0).phase()).isEqualTo(ProgressListener.Phase.LISTING);
        ProgressListener.Step last = steps.get(steps.size() - 1);
        assertThat(last).isEqualTo(new ProgressListener.Step(ProgressListener.Phase.DONE, BIG, BIG, 1, 1));
    }

    @Test
    void whatWasThereTheLastTimeServesWhileTheStoreIsAwayIfThatIsAllowed() throws Exception {
        String uri;
        try (TestServer gone = new TestServer()) {
            gone.put("/m.bin", "kept");
            uri = gone.url() + "/m.bin";
            Given.fetch(storage, uri).close();
        }
        try (StorageLease stored = Given.fetch(storage, uri)) {
            assertThat(stored.current()).isFalse();
            assertThat(stored.path().resolve("m.bin")).hasContent("kept");
        }
        assertThatThrownBy(() -> Given.fetch(storage, uri, Map.of("127.0.0.1-headers", "{\"A\": \"other-user\"}")))
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.UNAVAILABLE));
        storage.close();
        storage = new Storage(Given.options(directory).withStale(false), Clock.system());
        assertThatThrownBy(() -> Given.fetch(storage, uri)).hasMessageContaining("cannot be reached");
    }

    @Test
    void secretsAreInNoMessage() {
        server.handlers.put(
                "/m.bin", exchange -> TestServer.json(exchange, 403, "{\"error\": \"bad token tok-1234567\"}"));
        Map<String, String> credentials = Map.of("127.0.0.1-headers", "{\"Authorization\": \"Bearer tok-1234567\"}");
        assertThat(StorageRequest.of(server.url() + "/m.bin?sig=abc", credentials)
                        .toString())
                .doesNotContain("tok-1234567")
                .doesNotContain("abc");
        assertThatThrownBy(() -> Given.fetch(storage, server.url() + "/m.bin?sig=abcdef", credentials))
                .hasMessageNotContaining("abcdef");
    }

    static void await(CountDownLatch latch) {
        try {
            if (!latch.await(20, TimeUnit.SECONDS)) {
                throw new AssertionError("nothing happened");
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
