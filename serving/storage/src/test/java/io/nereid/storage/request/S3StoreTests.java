// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.request;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.storage.Archives;
import io.nereid.storage.Bucket;
import io.nereid.storage.Given;
import io.nereid.storage.Storage;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.gaul.s3proxy.AuthenticationType;
import org.gaul.s3proxy.S3Proxy;
import org.jclouds.ContextBuilder;
import org.jclouds.blobstore.BlobStore;
import org.jclouds.blobstore.BlobStoreContext;
import org.jclouds.filesystem.FilesystemApiMetadata;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Tests of a provider of {@code s3://} against a real S3 server, which verifies signatures. The test class of a provider
 * extends it. Confined to one test class.
 */
public abstract class S3StoreTests {
    protected static final String SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCY";

    @TempDir
    protected static Path blobs;

    protected static BlobStoreContext context;
    private static S3Proxy signed;
    private static S3Proxy anonymous;

    @TempDir
    protected Path directory;

    protected Storage storage;

    /** Opens a storage with the provider. */
    protected abstract Storage open();

    @BeforeAll
    static void serve() throws Exception {
        Properties properties = new Properties();
        properties.setProperty("jclouds.filesystem.basedir", blobs.toString());
        context = ContextBuilder.newBuilder(new FilesystemApiMetadata())
                .credentials("id", "secret")
                .overrides(properties)
                .build(BlobStoreContext.class);
        BlobStore store = context.getBlobStore();
        signed = S3Proxy.builder()
                .blobStore(store)
                .endpoint(URI.create("http://127.0.0.1:0"))
                .awsAuthentication(AuthenticationType.AWS_V4, "AKIDEXAMPLE", SECRET)
                .build();
        anonymous = S3Proxy.builder()
                .blobStore(store)
                .endpoint(URI.create("http://127.0.0.1:0"))
                .awsAuthentication(AuthenticationType.NONE, null, null)
                .build();
        signed.start();
        anonymous.start();
        store.createContainerInLocation(null, "bucket");
        for (String key : List.of(
                "model/a.bin", "model/sub/b.bin", "model/sub/with space+plus=ü.txt", "model2/x.bin", "single.bin")) {
            put(store, key, ("content of " + key).getBytes(StandardCharsets.UTF_8));
        }
        put(store, "model/empty.txt", new byte[0]);
        put(store, "big/big.bin", Given.random(20 << 20, 11));
        put(store, "zipped/m.zip", Archives.zip("inner.txt", "from the zip"));
        for (int i = 0; i < 1100; i++) {
            put(store, "many/f" + i, new byte[] {1});
        }
    }

    protected static void put(BlobStore store, String key, byte[] bytes) {
        store.putBlob("bucket", store.blobBuilder(key).payload(bytes).build());
    }

    @AfterAll
    static void stopServing() throws Exception {
        signed.stop();
        anonymous.stop();
        context.close();
    }

    @BeforeEach
    void start() {
        storage = open();
    }

    @AfterEach
    void stop() {
        storage.close();
    }

    /** Settings with the keys and the endpoint of the server. */
    protected static Map<String, String> credentials() {
        return Map.of(
                "AWS_ACCESS_KEY_ID",
                "AKIDEXAMPLE",
                "AWS_SECRET_ACCESS_KEY",
                SECRET,
                "AWS_ENDPOINT_URL",
                "http://127.0.0.1:" + signed.getPort());
    }

    @Test
    void aPrefixIsADirectoryAndNotTheBeginningOfAName() throws Exception {
        for (String uri : List.of("s3://bucket/model", "s3://bucket/model/")) {
            try (StorageLease stored = Given.fetch(storage, uri, credentials())) {
                assertThat(Given.files(stored.path()))
                        .isEqualTo(Map.of(
                                "a.bin", "content of model/a.bin",
                                "sub/b.bin", "content of model/sub/b.bin",
                                "sub/with space+plus=ü.txt",
                                        new String(
                                                "content of model/sub/with space+plus=ü.txt"
                                                        .getBytes(StandardCharsets.UTF_8),
                                                StandardCharsets.ISO_8859_1),
                                "empty.txt", ""));
            }
        }
    }

    @Test
    void aKeyIsOneFile() throws Exception {
        try (StorageLease stored = Given.fetch(storage, "s3://bucket/single.bin", credentials())) {
            assertThat(Given.files(stored.path())).isEqualTo(Map.of("single.bin", "content of single.bin"));
        }
    }

    @Test
    void aBigObjectComesInSignedParts() throws Exception {
        try (StorageLease stored = Given.fetch(storage, "s3://bucket/big", credentials())) {
            assertThat(Files.readAllBytes(stored.path().resolve("big.bin"))).isEqualTo(Given.random(20 << 20, 11));
        }
    }

    @Test
    void listingsOfManyPagesAreRead() throws Exception {
        try (StorageLease stored = Given.fetch(storage, "s3://bucket/many", credentials())) {
            assertThat(Given.files(stored.path())).hasSize(1100);
        }
    }

    @Test
    void aSingleArchiveIsUnpacked() throws Exception {
        try (StorageLease stored = Given.fetch(storage, "s3://bucket/zipped", credentials())) {
            assertThat(Given.files(stored.path())).isEqualTo(Map.of("inner.txt", "from the zip"));
        }
    }

    @Test
    void patternsChoose() throws Exception {
        StorageRequest request =
                new StorageRequest("s3://bucket/model", credentials(), List.of("*.bin"), List.of("sub/*"));
        try (StorageLease stored = Given.get(storage.fetch(request, ProgressListener.none()))) {
            assertThat(Given.files(stored.path())).containsOnlyKeys("a.bin");
        }
        Map<String, String> environment = new java.util.HashMap<>(credentials());
        environment.put("STORAGE_ALLOW_PATTERNS", "[\"sub/b.*\"]");
        try (StorageLease stored = Given.fetch(storage, "s3://bucket/model", environment)) {
            assertThat(Given.files(stored.path())).containsOnlyKeys("sub/b.bin");
        }
    }

    @Test
    void emptyIsAnErrorThatNamesTheUri() {
        assertThatThrownBy(() -> Given.fetch(storage, "s3://bucket/mode", credentials()))
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.NOT_FOUND))
                .hasMessage("Failed to fetch model. No model found in s3://bucket/mode.");
        assertThatThrownBy(() -> Given.fetch(storage, "s3://nobucket/model", credentials()))
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.NOT_FOUND))
                .hasMessageContaining("NoSuchBucket");
    }

    @Test
    void aWrongSecretIsRefusedByTheServerAndNotShown() {
        Map<String, String> wrong = new java.util.HashMap<>(credentials());
        wrong.put("AWS_SECRET_ACCESS_KEY", "not-the-secret");
        assertThatThrownBy(() -> Given.fetch(storage, "s3://bucket/model", wrong))
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.PERMISSION_DENIED))
                .hasMessageContaining("SignatureDoesNotMatch")
                .hasMessageNotContaining("not-the-secret");
    }

    @Test
    void openBucketsNeedNoKeys() throws Exception {
        Map<String, String> open = Map.of(
                "S3_ENDPOINT",
                "127.0.0.1:" + anonymous.getPort(),
                "S3_USE_HTTPS",
                "0",
                "awsAnonymousCredential",
                "true");
        try (StorageLease stored = Given.fetch(storage, "s3://bucket/single.bin", open)) {
            assertThat(Given.files(stored.path())).containsOnlyKeys("single.bin");
        }
    }

    @Test
    void anObjectIsWrittenWithItsTypeAndAnotherTimeInItsPlace() throws Exception {
        Bucket bucket = storage.bucket("s3://bucket/logs/today/", S3StoreTests::credentials);
        String key = "ns/iris/with space+plus=ü%2F-request.json";
        bucket.put(key, "first".getBytes(StandardCharsets.UTF_8));
        bucket.put(key, "{\"a\":1}".getBytes(StandardCharsets.UTF_8));
        storage.bucket("s3://bucket", S3StoreTests::credentials).put("top.csv", new byte[0]);
        var written = context.getBlobStore().getBlob("bucket", "logs/today/" + key);
        assertThat(written.getPayload().openStream().readAllBytes()).asString().isEqualTo("{\"a\":1}");
        assertThat(written.getMetadata().getContentMetadata().getContentType()).isEqualTo("application/json");
        assertThat(context.getBlobStore().blobMetadata("bucket", "top.csv").getSize())
                .isZero();
    }

    @Test
    void whatTheStoreDoesNotTakeIsToldAndLaterCredentialsCount() {
        Map<String, String> given = new java.util.HashMap<>(credentials());
        given.put("AWS_SECRET_ACCESS_KEY", "not-the-secret");
        Bucket bucket = storage.bucket("s3://bucket/late", () -> Map.copyOf(given));
        assertThatThrownBy(() -> bucket.put("a.json", new byte[] {1}))
                .isInstanceOfSatisfying(ServingException.class, e -> {
                    assertThat(e.code()).as(e.describe()).isEqualTo(ErrorCode.PERMISSION_DENIED);
                    assertThat(e.remedy()).contains("may write");
                })
                .hasMessageContaining("s3://bucket/late/a.json")
                .hasMessageContaining("SignatureDoesNotMatch")
                .hasMessageNotContaining("not-the-secret");
        given.put("AWS_SECRET_ACCESS_KEY", SECRET);
        bucket.put("a.json", new byte[] {1});
        assertThat(context.getBlobStore().blobExists("bucket", "late/a.json")).isTrue();
        assertThatThrownBy(() -> storage.bucket("s3://nobucket/x", S3StoreTests::credentials)
                        .put("a", new byte[] {1}))
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.NOT_FOUND));
        storage.close();
        assertThatThrownBy(() -> bucket.put("b.json", new byte[] {1}))
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.CANCELLED));
    }
}
