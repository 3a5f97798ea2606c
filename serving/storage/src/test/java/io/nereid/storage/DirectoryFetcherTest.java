// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.storage.DirectoryFetcher.Fetched;
import io.nereid.storage.DirectoryFetcher.Outcome;
import io.nereid.storage.cache.CacheFileSystem;
import io.nereid.storage.directory.TargetDirectory;
import io.nereid.storage.object.TestServer;
import io.nereid.storage.request.ProgressListener;
import io.nereid.storage.request.StorageAccess;
import io.nereid.storage.request.StorageJson;
import io.nereid.storage.request.StorageRequest;
import io.nereid.storage.spi.CancellationToken;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class DirectoryFetcherTest {
    private static final int BIG = 20 << 20;

    @TempDir
    Path directory;

    private Path target;
    private TestServer server;
    private DirectoryFetcher fetcher;

    @BeforeEach
    void start() throws Exception {
        server = new TestServer();
        target = directory.resolve("mnt/models");
        fetcher = new DirectoryFetcher(
                Given.options(directory).withEnvironment(Map.of("HF_ENDPOINT", server.url())),
                Clock.system(),
                List.of());
    }

    @AfterEach
    void stop() {
        fetcher.close();
        server.close();
    }

    private Fetched fetch(String uri) {
        return fetcher.fetch(StorageRequest.of(uri), target, ProgressListener.none(), new CancellationToken());
    }

    /** A model of the Hub without checksums: names and contents in turn. */
    private void model(String commit, String... namesAndContents) {
        var info = StorageJson.object();
        info.put("sha", commit);
        var siblings = info.putArray("siblings");
        for (int i = 0; i < namesAndContents.length; i += 2) {
            String name = namesAndContents[i];
            String content = namesAndContents[i + 1];
            siblings.addObject().put("rfilename", name).put("size", content.length());
            server.put("/me/iris/resolve/" + commit + "/" + name, content);
        }
        server.handlers.put(
                "/api/models/me/iris/revision/main", exchange -> TestServer.json(exchange, 200, info.toString()));
    }

    /** What is in the directory, without the record. */
    private Map<String, String> files() throws IOException {
        Map<String, String> files = new TreeMap<>(Given.files(target));
        files.remove(".nereid-fetch");
        return files;
    }

    private long downloads() {
        return server.seen.stream()
                .filter(seen -> seen.method().equals("GET") && !seen.path().startsWith("/api/"))
                .count();
    }

    @Test
    void filesLieUnderTheirNamesAndAreNotFetchedAgain() throws Exception {
        model("one", "config.json", "{}", "onnx/model.onnx", "weights");
        assertThat(fetch("hf://me/iris")).isEqualTo(new Fetched(Outcome.FETCHED, 2, 9));
        assertThat(files()).containsExactly(Map.entry("config.json", "{}"), Map.entry("onnx/model.onnx", "weights"));
        assertThat(target.resolve(".nereid-fetch.partial")).doesNotExist();
        for (String name : List.of("config.json", "onnx/model.onnx", ".nereid-fetch")) {
            assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(target.resolve(name))))
                    .as(name)
                    .matches("rw-r..r..");
        }
        assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(target.resolve("onnx"))))
                .matches("rwxr.xr.x");
        assertThat(fetch("hf://me/iris")).isEqualTo(new Fetched(Outcome.UNCHANGED, 2, 9));
        assertThat(downloads()).isEqualTo(2);
    }

    @Test
    void aNewVersionReplacesTheOldOneAndLeavesFilesOfOthers() throws Exception {
        model("one", "config.json", "{}", "old/weights.bin", "old", "same.txt", "same");
        fetch("hf://me/iris");
        Files.writeString(target.resolve("notes.txt"), "mine");
        model("two", "config.json", "{\"a\": 1}", "new/weights.bin", "new", "same.txt", "same");
        assertThat(fetch("hf://me/iris").outcome()).isEqualTo(Outcome.FETCHED);
        assertThat(files())
                .containsExactly(
                        Map.entry("config.json", "{\"a\": 1}"),
                        Map.entry("new/weights.bin", "new"),
                        Map.entry("notes.txt", "mine"),
                        Map.entry("same.txt", "same"));
        assertThat(target.resolve("old")).doesNotExist();
    }

    @Test
    void aFileThatWasChangedOrLostIsFetchedAgain() throws Exception {
        model("one", "a.bin", "aaaa", "b.bin", "bbbb");
        fetch("hf://me/iris");
        Files.delete(target.resolve("b.bin"));
        assertThat(fetch("hf://me/iris").outcome()).isEqualTo(Outcome.FETCHED);
        Files.writeString(target.resolve("a.bin"), "longer than it was");
        assertThat(fetch("hf://me/iris").outcome()).isEqualTo(Outcome.FETCHED);
        assertThat(files()).containsExactly(Map.entry("a.bin", "aaaa"), Map.entry("b.bin", "bbbb"));
    }

    @Test
    void theLastCompleteFetchCountsWhileTheStoreIsAway() throws Exception {
        server.put("/m.bin", "kept");
        String uri = server.url() + "/m.bin";
        fetch(uri);
        server.close();
        assertThat(fetch(uri)).isEqualTo(new Fetched(Outcome.STALE, 1, 4));
        Files.writeString(target.resolve("m.bin"), "broken");
        assertThatThrownBy(() -> fetch(uri)).hasMessageContaining("cannot be reached");
    }

    @Test
    void anInterruptedFetchContinuesWhereItEnded() throws Exception {
        byte[] content = Given.random(BIG, 31);
        server.put("/big.bin", content);
        CountDownLatch never = new CountDownLatch(1);
        server.handlers.put("/big.bin", exchange -> {
            String range = exchange.getRequestHeaders().getFirst("Range");
            if (server.release.getCount() > 0 && range != null && range.startsWith("bytes=16777216-")) {
                WebTest.await(server.release);
            }
            server.send(exchange, server.objects.get("/big.bin"), Integer.MAX_VALUE);
        });
        CancellationToken cancel = new CancellationToken();
        CompletableFuture<ServingException> ended = CompletableFuture.supplyAsync(
                () -> {
                    try {
                        fetcher.fetch(
                                StorageRequest.of(server.url() + "/big.bin"), target, ProgressListener.none(), cancel);
                        throw new AssertionError("it was not interrupted");
                    } catch (ServingException e) {
                        return e;
                    }
                },
                task -> new Thread(task).start());
        while (journal() < 2) {
            assertThat(never.await(20, TimeUnit.MILLISECONDS)).isFalse();
        }
        cancel.cancel();
        assertThat(ended.get(30, TimeUnit.SECONDS).code()).isEqualTo(ErrorCode.CANCELLED);
        assertThat(files().keySet()).allMatch(name -> name.startsWith(".nereid-fetch.partial/"));
        server.release.countDown();
        server.seen.clear();
        assertThat(fetch(server.url() + "/big.bin")).isEqualTo(new Fetched(Outcome.FETCHED, 1, BIG));
        assertThat(server.count("GET", "/big.bin")).isEqualTo(1);
        assertThat(Files.readAllBytes(target.resolve("big.bin"))).isEqualTo(content);
        assertThat(target.resolve(".nereid-fetch.partial")).doesNotExist();
    }

    private long journal() throws IOException {
        Path partial = target.resolve(".nereid-fetch.partial");
        if (!Files.isDirectory(partial)) {
            return 0;
        }
        try (var found = Files.walk(partial)) {
            Path journal =
                    found.filter(path -> path.endsWith("journal")).findFirst().orElse(null);
            return journal == null
                    ? 0
                    : Files.readAllLines(journal).stream()
                            .filter(line -> line.endsWith(" ."))
                            .count();
        }
    }

    @Test
    void aPartialFileThatIsLostIsDownloadedThoughTheJournalNamesIt() throws Exception {
        model("one", "a.bin", "aaaa", "b.bin", "bbbb");
        server.fault("/me/iris/resolve/one/b.bin", exchange -> TestServer.status(exchange, 500));
        server.fault("/me/iris/resolve/one/b.bin", exchange -> TestServer.status(exchange, 500));
        server.fault("/me/iris/resolve/one/b.bin", exchange -> TestServer.status(exchange, 500));
        assertThatThrownBy(() -> fetch("hf://me/iris")).hasMessageContaining("500");
        assertThat(journal()).isEqualTo(1);
        try (var found = Files.walk(target)) {
            for (Path file : found.filter(path -> path.endsWith("f0")).toList()) {
                Files.delete(file);
            }
        }
        fetch("hf://me/iris");
        assertThat(files()).containsExactly(Map.entry("a.bin", "aaaa"), Map.entry("b.bin", "bbbb"));
    }

    @Test
    void anArchiveIsUnpackedAndReplacesWhatTheOldOneHeld() throws Exception {
        server.put(
                "/m.tar.gz",
                Archives.gzip(new Archives().file("m/a", "1").link("m/b", "a").tar()));
        assertThat(fetch(server.url() + "/m.tar.gz").files()).isEqualTo(2);
        assertThat(files()).containsExactly(Map.entry("m/a", "1"), Map.entry("m/b", "1"));
        assertThat(fetch(server.url() + "/m.tar.gz").outcome()).isEqualTo(Outcome.UNCHANGED);
        server.put("/m.tar.gz", Archives.gzip(new Archives().file("m/a", "2").tar()));
        fetch(server.url() + "/m.tar.gz");
        assertThat(files()).containsExactly(Map.entry("m/a", "2"));
        assertThat(Files.exists(target.resolve("m/b"), LinkOption.NOFOLLOW_LINKS))
                .isFalse();
    }

    @Test
    void anArchiveThatTheQueryNamesIsUnpackedAndOneOfAnotherFormatIsRefused() throws Exception {
        server.put("/download", Archives.gzip(new Archives().file("m", "1").tar()));
        fetch(server.url() + "/download?file=model.tar.gz");
        assertThat(files()).containsExactly(Map.entry("m", "1"));
        server.put("/m.tar.bz2", "x");
        assertThatThrownBy(() -> fetch(server.url() + "/m.tar.bz2"))
                .hasMessageContaining("m.tar.bz2', whose compression is not supported");
    }

    @Test
    void nothingIsWrittenOutsideOfTheDirectory() throws Exception {
        server.put("/up.tar", new Archives().file("../up", "x").tar());
        assertThatThrownBy(() -> fetch(server.url() + "/up.tar")).hasMessageContaining("leaves the directory");
        server.put("/up.zip", Archives.zip("../../up", "x"));
        assertThatThrownBy(() -> fetch(server.url() + "/up.zip")).hasMessageContaining("leaves the directory");
        server.put(
                "/link.tar",
                new Archives().link("out", "../..").file("out/up", "x").tar());
        assertThatThrownBy(() -> fetch(server.url() + "/link.tar")).isInstanceOf(ServingException.class);
        // A link that was there before is not followed either.
        Path elsewhere = Files.createDirectory(directory.resolve("elsewhere"));
        Files.createSymbolicLink(target.resolve("sub"), elsewhere);
        server.put("/sub.tar", new Archives().file("sub/x", "x").tar());
        assertThatThrownBy(() -> fetch(server.url() + "/sub.tar"))
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.FAILED_PRECONDITION))
                .hasMessageContaining("a symbolic link");
        assertThat(elsewhere).isEmptyDirectory();
        assertThat(directory.resolve("mnt/up")).doesNotExist();
        assertThat(directory.resolve("up")).doesNotExist();
    }

    @Test
    void aLinkInThePlaceOfAFileIsReplacedAndNotWrittenThrough() throws Exception {
        Path other = Files.writeString(directory.resolve("other"), "other");
        Files.createDirectories(target);
        Files.createSymbolicLink(target.resolve("m.bin"), other);
        server.put("/m.bin", "fetched");
        fetch(server.url() + "/m.bin");
        assertThat(target.resolve("m.bin")).hasContent("fetched");
        assertThat(other).hasContent("other");
    }

    @Test
    void aForgedRecordRemovesNothingOutside() throws Exception {
        Path other = Files.writeString(directory.resolve("other"), "other");
        model("one", "a.bin", "aaaa");
        fetch("hf://me/iris");
        Path record = target.resolve(".nereid-fetch");
        Files.writeString(record, Files.readString(record).replace("\"a.bin\"", "\"../../other\""));
        model("two", "b.bin", "bbbb");
        fetch("hf://me/iris");
        assertThat(other).hasContent("other");
    }

    @Test
    void namesOfTheFetchItselfAreRefused() {
        model("one", ".nereid-fetch", "x");
        assertThatThrownBy(() -> fetch("hf://me/iris")).hasMessageContaining("a name that the fetch itself uses");
    }

    @Test
    void twoSourcesShareADirectoryAndOneThatIsNoLongerNamedIsRemoved() throws Exception {
        server.put("/a.bin", "a");
        server.put("/b.bin", "b");
        fetch(server.url() + "/a.bin");
        fetch(server.url() + "/b.bin");
        assertThat(files().keySet()).containsExactly("a.bin", "b.bin");
        assertThat(fetch(server.url() + "/a.bin").outcome()).isEqualTo(Outcome.UNCHANGED);
        fetcher.retain(target, List.of(server.url() + "/b.bin"));
        assertThat(files().keySet()).containsExactly("b.bin");
        assertThat(fetch(server.url() + "/b.bin").outcome()).isEqualTo(Outcome.UNCHANGED);
        fetcher.retain(target, List.of());
        assertThat(target).isEmptyDirectory();
    }

    @Test
    void localFilesAreLinked() throws Exception {
        Path claim = Files.createDirectories(directory.resolve("pvc/iris/sub"));
        Files.writeString(claim.getParent().resolve("model.onnx"), "weights");
        Files.writeString(claim.resolve("x"), "y");
        assertThat(fetch("file://" + directory.resolve("pvc/iris"))).isEqualTo(new Fetched(Outcome.FETCHED, 2, 0));
        assertThat(target.resolve("model.onnx")).isSymbolicLink().hasContent("weights");
        assertThat(target.resolve("sub/x")).isSymbolicLink().hasContent("y");
        assertThat(fetch(directory.resolve("pvc/iris").toString()).outcome()).isEqualTo(Outcome.FETCHED);
        assertThat(fetch(directory.resolve("pvc/iris").toString()).outcome()).isEqualTo(Outcome.UNCHANGED);
        assertThat(fetch(directory.resolve("pvc/iris/model.onnx").toString()).files())
                .isEqualTo(1);
        Files.delete(claim.resolve("x"));
        fetch(directory.resolve("pvc/iris").toString());
        assertThatThrownBy(() -> fetch("file:///nowhere/at/all")).hasMessageContaining("does not exist");
        assertThatThrownBy(() -> fetch("pvc://claim/path")).hasMessageContaining("persistent volume claims");
    }

    @Test
    void filesThatAreInTheDirectoryAlreadyStayAsTheyAre() throws Exception {
        Files.createDirectories(target);
        Files.writeString(target.resolve("model.onnx"), "weights");
        assertThat(fetch(target.toString()).outcome()).isEqualTo(Outcome.UNCHANGED);
        assertThat(target.resolve("model.onnx")).isRegularFile();
        assertThatThrownBy(() -> fetch(directory.toString())).hasMessageContaining("contains the directory");
    }

    @Test
    void aFullVolumeIsToldBeforeTheDownload() {
        CacheFileSystem full = new CacheFileSystem() {
            @Override
            public long usable(Path path) {
                return 100;
            }
        };
        server.put("/m.bin", Given.random(10_000, 3));
        try (DirectoryFetcher small = new DirectoryFetcher(Given.options(directory), Clock.system(), List.of(), full)) {
            assertThatThrownBy(() -> small.fetch(
                            StorageRequest.of(server.url() + "/m.bin"),
                            target,
                            ProgressListener.none(),
                            new CancellationToken()))
                    .isInstanceOfSatisfying(
                            ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.RESOURCE_EXHAUSTED))
                    .hasMessageContaining("which has 100 B free");
        }
        assertThat(server.count("GET", "/m.bin")).isZero();
    }

    @Test
    void whatPolicyRefusesIsNotReached() {
        server.put("/m.bin", "x");
        try (DirectoryFetcher strict = new DirectoryFetcher(
                Given.options(directory)
                        .withEnvironment(Map.of("AWS_ENDPOINT_URL", server.url()))
                        .withAccess(StorageAccess.of(List.of(), false, Map.of())),
                Clock.system(),
                List.of())) {
            for (String uri :
                    List.of(server.url() + "/m.bin", "http://169.254.169.254/latest/meta-data", "s3://bucket/model")) {
                assertThatThrownBy(() -> strict.fetch(
                                StorageRequest.of(uri), target, ProgressListener.none(), new CancellationToken()))
                        .isInstanceOfSatisfying(
                                ServingException.class,
                                e -> assertThat(e.code()).isEqualTo(ErrorCode.PERMISSION_DENIED));
            }
        }
        assertThat(server.seen).isEmpty();
    }

    @Test
    void aDirectoryIsUsedByOneFetchAtATime() {
        server.put("/m.bin", "x");
        try (TargetDirectory held = TargetDirectory.open(target, "other", new CacheFileSystem())) {
            assertThatThrownBy(() -> fetch(server.url() + "/m.bin"))
                    .hasMessageContaining("another process fetches into " + held.directory());
        }
        assertThat(fetch(server.url() + "/m.bin").outcome()).isEqualTo(Outcome.FETCHED);
    }

    @Test
    void aDirectoryThatCannotBeMadeIsNamed() throws Exception {
        Files.writeString(directory.resolve("mnt"), "a file");
        server.put("/m.bin", "x");
        assertThatThrownBy(() -> fetch(server.url() + "/m.bin"))
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.FAILED_PRECONDITION))
                .hasMessageContaining(target + " cannot be written to");
    }
}
