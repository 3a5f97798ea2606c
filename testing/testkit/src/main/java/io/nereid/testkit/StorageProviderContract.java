// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.storage.spi.CancellationToken;
import io.nereid.storage.spi.ObjectChangedException;
import io.nereid.storage.spi.ObjectEntry;
import io.nereid.storage.spi.ObjectSource;
import io.nereid.storage.spi.ObjectStream;
import io.nereid.storage.spi.RetryPolicy;
import io.nereid.storage.spi.StorageContext;
import io.nereid.storage.spi.StorageProvider;
import io.nereid.storage.spi.StorageSettings;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/**
 * The contract test of {@link StorageProvider}: a provider's test class extends it and starts a store. It checks that
 *
 * <ul>
 *   <li>a listing has the objects below a path, with sizes and with versions that change with the content;
 *   <li>ranges have the bytes of the listed version, also in parallel, and never those of another one;
 *   <li>a cancellation ends calls, and closing a stream ends its read;
 *   <li>missing objects, wrong credentials and a store that cannot be reached have the right codes, and messages have no
 *       secrets.
 * </ul>
 *
 * A test that does not apply is reported as skipped. Needs JUnit 5 and AssertJ. Confined to one test.
 *
 * <pre>{@code
 * class FtpProviderTest extends StorageProviderContract {
 *     protected StorageProvider provider() { return new FtpProvider(); }
 *     protected String uri(String path) { return "ftp://127.0.0.1:" + server.port() + "/" + path; }
 *     protected Map<String, String> settings() { return Map.of("FTP_PASSWORD", "secret"); }
 *     protected void put(String path, byte[] content) { server.put(path, content); }
 *     protected void remove(String path) { server.remove(path); }
 * }
 * }</pre>
 */
public abstract class StorageProviderContract {
    private static final RetryPolicy RETRIES = new RetryPolicy(Duration.ofSeconds(5), Duration.ofSeconds(10), 2);
    private static final int SIZE = 300_000;
    private static final int READERS = 4;

    /** Called by JUnit. */
    protected StorageProviderContract() {}

    /** The provider under test. */
    protected abstract StorageProvider provider();

    /** The URI of a path in the store, which may be an object or a directory of objects. */
    protected abstract String uri(String path);

    /** The settings of a request that may read the store. */
    protected abstract Map<String, String> settings();

    /** Stores an object, or replaces it. */
    protected abstract void put(String path, byte[] content);

    /** Removes an object. */
    protected abstract void remove(String path);

    /** Whether the store has directories; without, a URI names one object. */
    protected boolean directories() {
        return true;
    }

    /** Whether a URI can name one object; without, it names a directory. */
    protected boolean objects() {
        return true;
    }

    /** Settings with wrong credentials; null for a store without credentials. */
    protected @Nullable Map<String, String> wrongSettings() {
        return null;
    }

    /** Settings with an endpoint where nothing listens; null when the URI has the endpoint. */
    protected @Nullable Map<String, String> unreachableSettings() {
        return null;
    }

    /** Opens the source of a path. */
    protected final ObjectSource open(String path, Map<String, String> settings, CancellationToken cancel) {
        StorageProvider provider = provider();
        StorageSettings all = StorageSettings.of(settings, Map.of(), List.of(provider.identitySettings()));
        return provider.open(new StorageContext(uri(path), all, provider.retries(all, RETRIES), cancel));
    }

    private ObjectSource open(String path) {
        return open(path, settings(), new CancellationToken());
    }

    /** The path whose listing has one object: its directory, or itself in a store without directories. */
    private String listed(String path) {
        return directories() ? path.substring(0, path.lastIndexOf('/')) : path;
    }

    private static byte[] random(int seed) {
        byte[] bytes = new byte[SIZE];
        new Random(seed).nextBytes(bytes);
        return bytes;
    }

    private static byte[] text(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static byte[] read(ObjectEntry object, long from, long to) throws IOException {
        try (ObjectStream stream = object.reader().open(from, to, new CancellationToken())) {
            ByteArrayOutputStream all = new ByteArrayOutputStream();
            byte[] buffer = new byte[10_000];
            long left = to < 0 ? Long.MAX_VALUE : to - from;
            while (left > 0) {
                int n = stream.read(buffer, (int) Math.min(buffer.length, left));
                if (n < 0) {
                    break;
                }
                assertThat(n).as("bytes of a read").isPositive();
                all.write(buffer, 0, n);
                left -= n;
            }
            return all.toByteArray();
        }
    }

    private static ObjectEntry only(ObjectSource source) {
        List<ObjectEntry> files = source.list().items().stream()
                .filter(item -> !item.path().isEmpty() && !item.path().endsWith("/"))
                .toList();
        assertThat(files).hasSize(1);
        return files.get(0);
    }

    @Test
    void itsSchemesAreLowerCaseNamesThatItAccepts() {
        StorageProvider provider = provider();
        assertThat(provider.name()).isNotBlank();
        assertThat(provider.schemes())
                .isNotEmpty()
                .allSatisfy(scheme ->
                        assertThat(scheme).matches("[a-z][a-z0-9+.-]*").isEqualTo(scheme.toLowerCase(Locale.ROOT)));
        assertThat(provider.accepts(uri("contract/one/one.bin"))).isTrue();
        assertThat(provider.schemes()).contains(uri("contract/one/one.bin").split("://", 2)[0]);
    }

    @Test
    void anObjectIsListedWithItsNameAndSizeAndReadAsAWhole() throws Exception {
        byte[] content = random(1);
        put("contract/one/one.bin", content);
        try (ObjectSource source = open(listed("contract/one/one.bin"))) {
            ObjectEntry object = only(source);
            assertThat(object.path()).isEqualTo("one.bin");
            assertThat(object.size()).isIn((long) SIZE, -1L);
            assertThat(read(object, 0, -1)).isEqualTo(content);
        }
    }

    @Test
    void aUriCanNameOneObject() throws Exception {
        assumeTrue(objects(), "a URI names a directory");
        put("contract/single/one.bin", text("content"));
        put("contract/single/one.bin2", text("other"));
        try (ObjectSource source = open("contract/single/one.bin")) {
            ObjectEntry object = only(source);
            assertThat(object.path()).isEqualTo("one.bin");
            assertThat(read(object, 0, -1)).isEqualTo(text("content"));
        }
    }

    @Test
    void aDirectoryIsListedWithEverythingBelowItAndNothingElse() throws Exception {
        assumeTrue(directories(), "a URI names one object");
        Map<String, byte[]> content = Map.of(
                "a.bin", text("a"),
                "sub/b.bin", text("bb"),
                "sub/deeper/c d+e=f%20ü.txt", text("ccc"),
                "empty.txt", new byte[0]);
        content.forEach((path, bytes) -> put("contract/tree/" + path, bytes));
        put("contract/tree2/x.bin", text("x"));
        for (String path : List.of("contract/tree", "contract/tree/")) {
            try (ObjectSource source = open(path)) {
                List<ObjectEntry> files = source.list().items().stream()
                        .filter(item -> !item.path().isEmpty() && !item.path().endsWith("/"))
                        .toList();
                assertThat(files).extracting(ObjectEntry::path).containsExactlyInAnyOrderElementsOf(content.keySet());
                for (ObjectEntry file : files) {
                    byte[] expected = Objects.requireNonNull(content.get(file.path()), file.path());
                    assertThat(file.size()).isIn((long) expected.length, -1L);
                    assertThat(read(file, 0, -1)).as(file.path()).isEqualTo(expected);
                }
            }
        }
    }

    @Test
    void rangesAreReadInParallel() throws Exception {
        byte[] content = random(2);
        put("contract/ranges/ranges.bin", content);
        ExecutorService readers = Threads.pool("contract-reader", READERS);
        try (ObjectSource source = open(listed("contract/ranges/ranges.bin"))) {
            ObjectEntry object = only(source);
            assumeTrue(object.ranges(), "the object is read as a whole");
            List<int[]> ranges = List.of(
                    new int[] {0, 1},
                    new int[] {0, 100_000},
                    new int[] {100_000, 200_000},
                    new int[] {123, 4567},
                    new int[] {SIZE - 1, SIZE});
            List<Future<byte[]>> parts = ranges.stream()
                    .map(range -> readers.submit(() -> read(object, range[0], range[1])))
                    .toList();
            for (int i = 0; i < ranges.size(); i++) {
                int[] range = ranges.get(i);
                assertThat(parts.get(i).get(30, TimeUnit.SECONDS))
                        .as("bytes " + range[0] + " to " + range[1])
                        .isEqualTo(Arrays.copyOfRange(content, range[0], range[1]));
            }
            assertThat(read(object, SIZE - 10, -1)).isEqualTo(Arrays.copyOfRange(content, SIZE - 10, SIZE));
        } finally {
            readers.shutdown();
        }
    }

    @Test
    void theVersionChangesWithTheContentAndOnlyThen() {
        put("contract/version/version.bin", text("first"));
        String before = version("contract/version/version.bin");
        assertThat(version("contract/version/version.bin")).isEqualTo(before);
        assumeTrue(!before.isEmpty(), "the store has no versions");
        put("contract/version/version.bin", text("other"));
        assertThat(version("contract/version/version.bin")).isNotEqualTo(before);
    }

    private String version(String path) {
        try (ObjectSource source = open(listed(path))) {
            return only(source).version();
        }
    }

    @Test
    void anObjectThatChangedIsNotReadAsTheListedOne() throws Exception {
        byte[] before = random(3);
        put("contract/changed/changed.bin", before);
        try (ObjectSource source = open(listed("contract/changed/changed.bin"))) {
            ObjectEntry object = only(source);
            assumeTrue(!object.version().isEmpty(), "the store has no versions");
            put("contract/changed/changed.bin", random(4));
            for (long[] range : new long[][] {{0, -1}, {1000, 2000}}) {
                if (range[0] > 0 && !object.ranges()) {
                    continue;
                }
                byte[] read;
                try {
                    read = read(object, range[0], range[1]);
                } catch (ObjectChangedException e) {
                    continue;
                }
                boolean verified = object.checksum() != null && range[1] < 0;
                assertThat(verified
                                || Arrays.equals(
                                        read,
                                        Arrays.copyOfRange(
                                                before, (int) range[0], range[1] < 0 ? SIZE : (int) range[1])))
                        .as("a changed object is reported, or the listed version is read, or the checksum differs")
                        .isTrue();
            }
        }
    }

    @Test
    void anObjectThatIsGoneIsNotReadAsEmpty() {
        put("contract/gone/gone.bin", text("content"));
        try (ObjectSource source = open(listed("contract/gone/gone.bin"))) {
            ObjectEntry object = only(source);
            remove("contract/gone/gone.bin");
            assertThatThrownBy(() -> read(object, 0, -1))
                    .isInstanceOfAny(ObjectChangedException.class, ServingException.class);
        }
    }

    @Test
    void whatIsNotThereIsNotFound() {
        try (ObjectSource source = open("contract/absent")) {
            Collection<ObjectEntry> items = source.list().items();
            assertThat(items).isEmpty();
        } catch (ServingException e) {
            assertThat(e.code()).isEqualTo(ErrorCode.NOT_FOUND);
        }
    }

    @Test
    void wrongCredentialsAreRejectedAndNotShown() {
        Map<String, String> given = wrongSettings();
        assumeTrue(given != null, "the store has no credentials");
        Map<String, String> wrong = Objects.requireNonNull(given);
        put("contract/secret/secret.bin", text("content"));
        assertThatThrownBy(() -> {
                    try (ObjectSource source =
                            open(listed("contract/secret/secret.bin"), wrong, new CancellationToken())) {
                        source.list();
                    }
                })
                .isInstanceOfSatisfying(ServingException.class, e -> {
                    assertThat(e.code()).isIn(ErrorCode.UNAUTHENTICATED, ErrorCode.PERMISSION_DENIED);
                    wrong.forEach((name, value) -> {
                        if (!settings().getOrDefault(name, "").equals(value)) {
                            assertThat(e.describe()).doesNotContain(value);
                        }
                    });
                });
    }

    @Test
    void aStoreThatCannotBeReachedIsUnavailable() {
        Map<String, String> given = unreachableSettings();
        assumeTrue(given != null, "the URI has the endpoint");
        Map<String, String> unreachable = Objects.requireNonNull(given);
        assertThatThrownBy(() -> {
                    try (ObjectSource source =
                            open(listed("contract/one/one.bin"), unreachable, new CancellationToken())) {
                        source.list();
                    }
                })
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.UNAVAILABLE));
    }

    @Test
    void aCancelledFetchEnds() {
        put("contract/cancelled/cancelled.bin", text("content"));
        CancellationToken cancel = new CancellationToken();
        try (ObjectSource source = open(listed("contract/cancelled/cancelled.bin"), settings(), cancel)) {
            ObjectEntry object = only(source);
            cancel.cancel();
            assertThatThrownBy(source::list)
                    .isInstanceOfSatisfying(
                            ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.CANCELLED));
            CancellationToken reading = new CancellationToken();
            reading.cancel();
            assertThatThrownBy(() -> object.reader().open(0, -1, reading).close())
                    .isInstanceOfSatisfying(
                            ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.CANCELLED));
        }
    }

    @Test
    void readsOutliveTheTokenOfTheListing() throws Exception {
        put("contract/shared/shared.bin", text("content"));
        CancellationToken cancel = new CancellationToken();
        try (ObjectSource source = open(listed("contract/shared/shared.bin"), settings(), cancel)) {
            ObjectEntry object = only(source);
            cancel.cancel();
            assertThat(read(object, 0, -1)).isEqualTo(text("content"));
        }
    }

    @Test
    void aClosedStreamIsNotRead() throws Exception {
        put("contract/closed/closed.bin", random(5));
        try (ObjectSource source = open(listed("contract/closed/closed.bin"))) {
            ObjectStream stream = only(source).reader().open(0, -1, new CancellationToken());
            byte[] buffer = new byte[100];
            assertThat(stream.read(buffer, 100)).isPositive();
            stream.close();
            stream.close();
            assertThatThrownBy(() -> {
                        while (stream.read(buffer, 100) >= 0) {
                            // what is buffered may still arrive
                        }
                    })
                    .isInstanceOf(IOException.class);
        }
    }

    @Test
    void listingsOfManyPagesAreComplete() {
        assumeTrue(directories(), "a URI names one object");
        IntStream.range(0, 1050).forEach(i -> put("contract/many/f" + i, text("x")));
        try (ObjectSource source = open("contract/many")) {
            assertThat(source.list().items()).hasSize(1050);
        }
    }
}
