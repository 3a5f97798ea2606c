// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.storage.object.ContentDigests;
import io.nereid.storage.object.TestServer;
import io.nereid.storage.request.StorageCredentials;
import io.nereid.storage.request.StorageJson;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.security.KeyPairGenerator;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Writing to stores that a web server simulates; S3 is tested in {@code S3Test}. */
class BucketTest {
    private final Map<String, String> bodies = new ConcurrentHashMap<>();
    private TestServer server;
    private Storage storage;

    @TempDir
    Path directory;

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

    private void take(String path, int status, String answer) {
        server.handlers.put(path, exchange -> {
            bodies.put(path, new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8));
            TestServer.json(exchange, status, answer);
        });
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    @Test
    void googlesStorageTakesAnObjectWithATokenThatMayWrite() throws Exception {
        take("/upload/storage/v1/b/logs/o", 200, "{}");
        take("/token", 200, "{\"access_token\": \"tok\", \"expires_in\": 3600}");
        KeyPairGenerator generator = KeyPairGenerator.getInstance("RSA");
        generator.initialize(2048);
        String account = StorageJson.object()
                .put("type", "service_account")
                .put("client_email", "me@project")
                .put(
                        "private_key",
                        "-----BEGIN PRIVATE KEY-----\n"
                                + Base64.getMimeEncoder()
                                        .encodeToString(generator
                                                .generateKeyPair()
                                                .getPrivate()
                                                .getEncoded())
                                + "\n-----END PRIVATE KEY-----\n")
                .put("token_uri", server.url() + "/token")
                .toString();
        String entry = StorageJson.object()
                .put("type", "gs")
                .put("base64_service_account", Base64.getEncoder().encodeToString(bytes(account)))
                .toString();
        Map<String, String> credentials = new HashMap<>(StorageCredentials.writing(
                "gs://logs/iris", entry, List.of(), Map.of(), Map.of(), StorageCredentials.Names.defaults()));
        credentials.put("STORAGE_EMULATOR_HOST", server.url());
        Bucket bucket = storage.bucket("gs://logs/iris", () -> credentials);
        bucket.put("a b/1-request.csv", bytes("x,y"));
        TestServer.Seen seen = server.seen.get(1);
        assertThat(seen.method()).isEqualTo("POST");
        assertThat(seen.query()).isEqualTo("uploadType=media&name=iris%2Fa%20b%2F1-request.csv");
        assertThat(seen.header("Authorization")).isEqualTo("Bearer tok");
        assertThat(seen.header("Content-type")).isEqualTo("text/csv");
        assertThat(bodies).containsEntry("/upload/storage/v1/b/logs/o", "x,y");
        String assertion = bodies.get("/token");
        String claims = new String(Base64.getUrlDecoder().decode(assertion.split("\\.")[1]), StandardCharsets.UTF_8);
        assertThat(claims).contains("devstorage.read_write");
        bucket.put("2.csv", bytes("z"));
        assertThat(server.count("POST", "/token")).isEqualTo(1);
    }

    @ParameterizedTest
    @CsvSource({
        "500, UNAVAILABLE",
        "429, UNAVAILABLE",
        "408, UNAVAILABLE",
        "401, UNAUTHENTICATED",
        "403, PERMISSION_DENIED",
        "404, NOT_FOUND"
    })
    void anObjectIsSentOnceAndWhatTheStoreSaidIsTold(int status, ErrorCode code) {
        take("/upload/storage/v1/b/logs/o", status, "{\"error\": {\"message\": \"because\"}}");
        Bucket bucket = storage.bucket("gs://logs/", () -> Map.of("STORAGE_EMULATOR_HOST", server.url()));
        assertThatThrownBy(() -> bucket.put("k.json", bytes("{}")))
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.code()).isEqualTo(code))
                .hasMessage("gs://logs/k.json: the store answered " + status + " because");
        assertThat(server.count("POST", "/upload/storage/v1/b/logs/o")).isEqualTo(1);
    }

    @Test
    void aStoreThatIsNotThereMayBeLater() {
        String url = server.url();
        server.close();
        Bucket bucket = storage.bucket("gs://logs/", () -> Map.of("STORAGE_EMULATOR_HOST", url));
        assertThatThrownBy(() -> bucket.put("k.json", bytes("{}")))
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.UNAVAILABLE))
                .hasMessageContaining("the store cannot be reached: ");
    }

    @Test
    void azureTakesABlobWithASharedKeyThatSignsItsLengthAndType() {
        take("/cont/a/b ü/1-request.json", 201, "");
        Map<String, String> key = Map.of(
                "AZURE_STORAGE_BLOB_ENDPOINT",
                server.url(),
                "AZURE_STORAGE_ACCESS_KEY",
                Base64.getEncoder().encodeToString(bytes("key")));
        storage.bucket("abfss://cont@acct.dfs.core.windows.net/a/b ü", () -> key)
                .put("1-request.json", bytes("{\"a\":1}"));
        TestServer.Seen put = server.seen.get(0);
        assertThat(put.method()).isEqualTo("PUT");
        assertThat(put.header("X-ms-blob-type")).isEqualTo("BlockBlob");
        assertThat(bodies).containsEntry("/cont/a/b ü/1-request.json", "{\"a\":1}");
        String text = "PUT\n\n\n7\n\napplication/json\n\n\n\n\n\n\nx-ms-blob-type:BlockBlob\nx-ms-date:"
                + put.header("X-ms-date") + "\nx-ms-version:" + put.header("X-ms-version")
                + "\n/acct/cont/a/b%20%C3%BC/1-request.json";
        assertThat(put.header("Authorization"))
                .isEqualTo("SharedKey acct:"
                        + Base64.getEncoder().encodeToString(ContentDigests.hmac(bytes("key"), text)));
    }

    @Test
    void azureTakesABlobWithASignatureOfTheSecret() {
        take("/cont/x.parquet", 201, "");
        Map<String, String> given = new HashMap<>(StorageCredentials.writing(
                "abfs://cont@acct/",
                "{\"type\":\"azure\",\"AZURE_STORAGE_SAS_TOKEN\":\"?sv=1&sig=s3cr%2Bet\"}",
                List.of(),
                Map.of(),
                Map.of("type", "azure"),
                StorageCredentials.Names.defaults()));
        given.put("AZURE_STORAGE_BLOB_ENDPOINT", server.url());
        storage.bucket("abfs://cont@acct/", () -> given).put("x.parquet", bytes("PAR1"));
        assertThat(server.seen.get(0).query()).isEqualTo("sv=1&sig=s3cr%2Bet");
        assertThat(server.seen.get(0).header("Content-type")).isEqualTo("application/vnd.apache.parquet");
    }

    @ParameterizedTest
    @CsvSource({
        "abfs://c@a, https://a.blob.core.windows.net/c",
        "abfss://c@a.dfs.core.chinacloudapi.cn/p/q, https://a.blob.core.chinacloudapi.cn/c/p/q",
        "abfss://c@a.blob.core.windows.net/p, https://a.blob.core.windows.net/c/p",
        "s3://b/p, s3://b/p",
        "https://a.blob.core.windows.net/c/p, https://a.blob.core.windows.net/c/p"
    })
    void aPlaceIsReadAsDownloadsKnowIt(String uri, String known) {
        assertThat(Bucket.readable(uri)).isEqualTo(known);
    }

    @ParameterizedTest
    @CsvSource({
        "abfs://container/path, abfss://CONTAINER@ACCOUNT",
        "abfs://c@a/p?sv=1, abfss://CONTAINER@ACCOUNT",
        "hf://a/b, s3://bucket/path",
        "https://elsewhere/x, s3://bucket/path",
        "s3:///x, s3://bucket/path"
    })
    void aPlaceThatNothingCanBeWrittenToIsRefusedWithWhatCan(String uri, String expected) {
        assertThatThrownBy(() -> storage.bucket(uri, Map::of)).isInstanceOfSatisfying(ServingException.class, e -> {
            assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
            assertThat(e.describe()).contains(expected).doesNotContain("sv=1");
        });
    }

    @Test
    void aLoggersSettingsComeOfItsEntryElseOfTheAccount() {
        StorageCredentials.Secret secret = new StorageCredentials.Secret(
                "s", Map.of("AWS_ACCESS_KEY_ID", "i", "AWS_SECRET_ACCESS_KEY", "k"), Map.of());
        var names = StorageCredentials.Names.defaults();
        Map<String, String> region = Map.of("region", "eu", "type", "s3", "bucket", "b");
        assertThat(StorageCredentials.writing("s3://b/x", null, List.of(secret), Map.of(), region, names))
                .isEqualTo(Map.of("AWS_ACCESS_KEY_ID", "i", "AWS_SECRET_ACCESS_KEY", "k", "AWS_DEFAULT_REGION", "eu"));
        String entry = "{\"type\":\"s3\",\"access_key_id\":\"e\",\"secret_access_key\":\"f\",\"region\":\"us\"}";
        assertThat(StorageCredentials.writing("s3://b/x", entry, List.of(secret), Map.of(), region, names))
                .isEqualTo(Map.of("AWS_ACCESS_KEY_ID", "e", "AWS_SECRET_ACCESS_KEY", "f", "AWS_DEFAULT_REGION", "eu"));
        assertThatThrownBy(() -> StorageCredentials.writing("s3://b", "no", List.of(), Map.of(), Map.of(), names))
                .hasMessageContaining("not a JSON object");
    }

    @ParameterizedTest
    @CsvSource({
        "s3://b/x, regoin, eu, regoin",
        "gs://b/x, region, eu, region",
        "abfs://c@a, endpoint_url, x, endpoint_url",
        "s3://b/x, type, gs, the URL determines",
        "gs://b, bucket, c, the URL names",
        "abfs://c@a/x, bucket, a, the URL names"
    })
    void aParameterThatHasNoUseIsRefused(String uri, String name, String value, String text) {
        assertThatThrownBy(() -> StorageCredentials.checkWriting(uri, Map.of(name, value)))
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.describe()).contains(text));
    }
}
