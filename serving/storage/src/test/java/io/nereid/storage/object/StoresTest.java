// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.object;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.storage.Archives;
import io.nereid.storage.Given;
import io.nereid.storage.Storage;
import io.nereid.storage.request.StorageCredentials;
import io.nereid.storage.request.StorageJson;
import io.nereid.storage.request.StorageLease;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.Signature;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.zip.CRC32C;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Each store against a server that speaks the public HTTP API of that store. */
class StoresTest {
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

    private static String query(String raw, String name) {
        return Arrays.stream(raw.split("&"))
                .filter(part -> part.startsWith(name + "="))
                .map(part -> URLDecoder.decode(part.substring(name.length() + 1), StandardCharsets.UTF_8))
                .findFirst()
                .orElse("");
    }

    private static String crc32c(byte[] bytes) {
        CRC32C crc = new CRC32C();
        crc.update(bytes);
        int value = (int) crc.getValue();
        return Base64.getEncoder()
                .encodeToString(
                        new byte[] {(byte) (value >> 24), (byte) (value >> 16), (byte) (value >> 8), (byte) value});
    }

    private void google(String bucket, Map<String, byte[]> objects, Map<String, String> checksums) {
        server.handlers.put("/storage/v1/b/" + bucket + "/o", exchange -> {
            String raw = exchange.getRequestURI().getRawQuery();
            String prefix = query(raw, "prefix");
            List<String> names = objects.keySet().stream()
                    .filter(name -> name.startsWith(prefix))
                    .sorted()
                    .toList();
            // One object a page.
            String token = query(raw, "pageToken");
            int at = token.isEmpty() ? 0 : Integer.parseInt(token);
            var page = StorageJson.object();
            if (at < names.size()) {
                String name = names.get(at);
                page.putArray("items")
                        .addObject()
                        .put("name", name)
                        .put("size", String.valueOf(objects.get(name).length))
                        .put("generation", "17")
                        .put("crc32c", checksums.getOrDefault(name, crc32c(objects.get(name))));
            }
            if (at + 1 < names.size()) {
                page.put("nextPageToken", String.valueOf(at + 1));
            }
            TestServer.json(exchange, 200, page.toString());
        });
        objects.forEach((name, bytes) -> server.objects.put(
                "/download/storage/v1/b/" + bucket + "/o/" + name,
                new TestServer.Held(bytes, "", "application/octet-stream")));
    }

    @Test
    void googlesStorageIsListedByPagesAndBroughtByGeneration() throws Exception {
        Map<String, byte[]> objects = Map.of(
                "iris/model.joblib",
                "one".getBytes(StandardCharsets.UTF_8),
                "iris/sub/x",
                "two".getBytes(StandardCharsets.UTF_8),
                "iris2/x",
                "no".getBytes(StandardCharsets.UTF_8));
        google("bucket", objects, Map.of());
        Map<String, String> emulator = Map.of("STORAGE_EMULATOR_HOST", server.url());
        try (StorageLease stored = Given.fetch(storage, "gs://bucket/iris", emulator)) {
            assertThat(Given.files(stored.path())).isEqualTo(Map.of("model.joblib", "one", "sub/x", "two"));
        }
        assertThat(server.seen)
                .filteredOn(s -> s.path().startsWith("/download"))
                .allMatch(s -> s.query().contains("generation=17") && s.query().contains("alt=media"));
        assertThat(server.seen).allMatch(s -> s.header("Authorization").isEmpty());
    }

    @Test
    void aWrongChecksumIsTriedOnceMoreAndThenRefused() {
        google(
                "bucket",
                Map.of("m/a", "real".getBytes(StandardCharsets.UTF_8)),
                Map.of("m/a", crc32c("other".getBytes(StandardCharsets.UTF_8))));
        assertThatThrownBy(() -> Given.fetch(storage, "gs://bucket/m", Map.of("STORAGE_EMULATOR_HOST", server.url())))
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.DATA_LOSS))
                .hasMessageContaining("'a' does not have the checksum");
        assertThat(server.count("GET", "/download/storage/v1/b/bucket/o/m/a")).isEqualTo(2);
        assertThat(storage.held()).isZero();
    }

    @Test
    void aServiceAccountOfGoogleSignsForItsToken() throws Exception {
        KeyPairGenerator generator = KeyPairGenerator.getInstance("RSA");
        generator.initialize(2048);
        KeyPair keys = generator.generateKeyPair();
        google("bucket", Map.of("m/a", "x".getBytes(StandardCharsets.UTF_8)), Map.of());
        boolean[] valid = {false};
        server.handlers.put("/token", exchange -> {
            String body = new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.US_ASCII);
            String[] jwt = query(body, "assertion").split("\\.");
            try {
                Signature signature = Signature.getInstance("SHA256withRSA");
                signature.initVerify(keys.getPublic());
                signature.update((jwt[0] + "." + jwt[1]).getBytes(StandardCharsets.US_ASCII));
                valid[0] = signature.verify(Base64.getUrlDecoder().decode(jwt[2]))
                        && new String(Base64.getUrlDecoder().decode(jwt[1]), StandardCharsets.UTF_8)
                                .contains("me@project");
            } catch (java.security.GeneralSecurityException e) {
                throw new IllegalStateException(e);
            }
            TestServer.json(exchange, 200, "{\"access_token\": \"ya29.tok\", \"expires_in\": 3600}");
        });
        String pem = "-----BEGIN PRIVATE KEY-----\n"
                + Base64.getMimeEncoder().encodeToString(keys.getPrivate().getEncoded())
                + "\n-----END PRIVATE KEY-----\n";
        String account = StorageJson.object()
                .put("type", "service_account")
                .put("client_email", "me@project")
                .put("private_key_id", "k1")
                .put("private_key", pem)
                .put("token_uri", server.url() + "/token")
                .toString();
        Map<String, String> credentials = StorageCredentials.settings(
                List.of(new StorageCredentials.Secret(
                        "gcs", Map.of("gcloud-application-credentials.json", account), Map.of())),
                Map.of());
        Map<String, String> all = new HashMap<>(credentials);
        all.put("STORAGE_EMULATOR_HOST", server.url());
        Given.fetch(storage, "gs://bucket/m", all).close();
        Given.fetch(storage, "gs://bucket/m", all).close();
        assertThat(valid[0]).isTrue();
        assertThat(server.count("POST", "/token")).isEqualTo(1);
        assertThat(server.seen)
                .filteredOn(s -> !s.path().equals("/token"))
                .allMatch(s -> s.header("Authorization").equals("Bearer ya29.tok"));
    }

    private void azure(Map<String, String> blobs) {
        server.handlers.put("/cont", exchange -> {
            String prefix = query(exchange.getRequestURI().getRawQuery(), "prefix");
            StringBuilder xml = new StringBuilder("<?xml version='1.0'?><EnumerationResults><Blobs>");
            blobs.keySet().stream().filter(name -> name.startsWith(prefix)).forEach(name -> {
                TestServer.Held held = server.objects.get("/cont/" + name);
                xml.append("<Blob><Name>")
                        .append(name)
                        .append("</Name><Properties><Content-Length>")
                        .append(held.bytes().length)
                        .append("</Content-Length><Etag>")
                        .append(held.tag())
                        .append("</Etag><Content-MD5>")
                        .append(Base64.getEncoder()
                                .encodeToString(ContentDigests.of("MD5").digest(held.bytes())))
                        .append("</Content-MD5></Properties></Blob>");
            });
            TestServer.xml(
                    exchange,
                    200,
                    xml.append("</Blobs><NextMarker/></EnumerationResults>").toString());
        });
        blobs.forEach((name, text) -> server.put("/cont/" + name, text));
    }

    @Test
    void azuresBlobsComeWithASharedKeyASignatureOrATokenOrNothing() throws Exception {
        azure(Map.of("iris/a.bin", "1", "iris/b/c.bin", "2", "iris.bak/x", "3", "one.onnx", "4"));
        String uri = "https://acct.blob.core.windows.net/cont/iris";
        Map<String, String> base = Map.of("AZURE_STORAGE_BLOB_ENDPOINT", server.url());
        try (StorageLease stored = Given.fetch(storage, uri, base)) {
            assertThat(Given.files(stored.path())).isEqualTo(Map.of("a.bin", "1", "b/c.bin", "2"));
        }
        assertThat(server.seen).allMatch(s -> s.header("Authorization").isEmpty());
        try (StorageLease stored = Given.fetch(storage, "https://acct.blob.core.windows.net/cont/one.onnx", base)) {
            assertThat(Given.files(stored.path())).isEqualTo(Map.of("one.onnx", "4"));
        }

        server.seen.clear();
        Given.fetch(storage, uri + "?sv=2021&sig=s3cr%2Bet", base).close();
        assertThat(server.seen).allMatch(s -> s.query().contains("sig=s3cr%2Bet"));

        server.seen.clear();
        Map<String, String> key = new HashMap<>(base);
        key.put("AZURE_STORAGE_ACCESS_KEY", Base64.getEncoder().encodeToString("key".getBytes(StandardCharsets.UTF_8)));
        Given.fetch(storage, uri, key).close();
        TestServer.Seen listing = server.seen.get(0);
        String text = "GET\n\n\n\n\n\n\n\n\n\n\n\n" + "x-ms-date:" + listing.header("X-ms-date") + "\nx-ms-version:"
                + listing.header("X-ms-version")
                + "\n/acct/cont\ncomp:list\nprefix:iris/\nrestype:container";
        assertThat(listing.header("Authorization"))
                .isEqualTo("SharedKey acct:"
                        + Base64.getEncoder()
                                .encodeToString(ContentDigests.hmac("key".getBytes(StandardCharsets.UTF_8), text)));

        server.seen.clear();
        server.handlers.put("/tenant/oauth2/v2.0/token", exchange -> {
            String body = new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.US_ASCII);
            boolean right = query(body, "client_id").equals("client")
                    && query(body, "client_secret").equals("cl-secret")
                    && query(body, "scope").equals("https://storage.azure.com/.default");
            TestServer.json(exchange, right ? 200 : 400, "{\"access_token\": \"aad\", \"expires_in\": 3600}");
        });
        Map<String, String> principal = new HashMap<>(base);
        principal.putAll(Map.of(
                "AZ_TENANT_ID", "tenant",
                "AZ_CLIENT_ID", "client",
                "AZ_CLIENT_SECRET", "cl-secret",
                "AZURE_AUTHORITY_HOST", server.url()));
        Given.fetch(storage, uri, principal).close();
        assertThat(server.seen)
                .filteredOn(s -> s.method().equals("GET"))
                .isNotEmpty()
                .allMatch(s -> s.header("Authorization").equals("Bearer aad"));
        principal.put("AZ_CLIENT_SECRET", "wrong-secret");
        assertThatThrownBy(() -> Given.fetch(storage, uri, principal))
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.UNAUTHENTICATED))
                .hasMessageNotContaining("wrong-secret");
    }

    private static String status(String name, String type, int length) {
        return "{\"pathSuffix\":\"" + name + "\",\"type\":\"" + type + "\",\"length\":" + length
                + ",\"modificationTime\":5,\"fileId\":7}";
    }

    @Test
    void hdfsIsReadRecursivelyAndInParts() throws Exception {
        byte[] big = Given.random(20 << 20, 12);
        server.handlers.put("/webhdfs/v1/root/models/m", exchange -> {
            String operation = query(exchange.getRequestURI().getRawQuery(), "op");
            TestServer.json(
                    exchange,
                    200,
                    operation.equals("GETFILESTATUS")
                            ? "{\"FileStatus\":" + status("", "DIRECTORY", 0) + "}"
                            : "{\"FileStatuses\":{\"FileStatus\":[" + status("big.bin", "FILE", big.length) + ","
                                    + status("sub", "DIRECTORY", 0) + "]}}");
        });
        server.handlers.put(
                "/webhdfs/v1/root/models/m/sub",
                exchange -> TestServer.json(
                        exchange, 200, "{\"FileStatuses\":{\"FileStatus\":[" + status("x.txt", "FILE", 2) + "]}}"));
        // The namenode sends to a datanode.
        server.handlers.put("/webhdfs/v1/root/models/m/big.bin", exchange -> {
            exchange.getResponseHeaders()
                    .set(
                            "Location",
                            server.url() + "/data/big.bin?"
                                    + exchange.getRequestURI().getRawQuery());
            TestServer.status(exchange, 307);
        });
        server.handlers.put("/data/big.bin", exchange -> {
            String raw = exchange.getRequestURI().getRawQuery();
            int offset = Integer.parseInt(query(raw, "offset"));
            String length = query(raw, "length");
            int end = length.isEmpty() ? big.length : offset + Integer.parseInt(length);
            TestServer.bytes(exchange, 200, Arrays.copyOfRange(big, offset, end));
        });
        server.handlers.put(
                "/webhdfs/v1/root/models/m/sub/x.txt",
                exchange -> TestServer.bytes(exchange, 200, "hi".getBytes(StandardCharsets.UTF_8)));
        server.handlers.put(
                "/standby/webhdfs/v1/root/models/m",
                exchange -> TestServer.json(
                        exchange,
                        403,
                        "{\"RemoteException\":{\"exception\":\"StandbyException\",\"message\":\"standby\"}}"));
        Map<String, String> settings = Map.of(
                "HDFS_NAMENODE", server.url() + "/standby;" + server.url(),
                "HDFS_ROOTPATH", "/root",
                "USER_PROXY", "someone",
                "HEADERS", "{\"X-Auth\": \"yes\"}");
        try (StorageLease stored = Given.fetch(storage, "hdfs://models/m", settings)) {
            assertThat(java.nio.file.Files.readAllBytes(stored.path().resolve("big.bin")))
                    .isEqualTo(big);
            assertThat(stored.path().resolve("sub/x.txt")).hasContent("hi");
        }
        assertThat(server.seen)
                .filteredOn(s -> s.path().startsWith("/webhdfs"))
                .allMatch(s ->
                        s.query().contains("doas=someone") && s.header("X-auth").equals("yes"));
        assertThatThrownBy(() -> Given.fetch(
                        storage, "hdfs://m", Map.of("HDFS_NAMENODE", server.url(), "KERBEROS_PRINCIPAL", "p")))
                .hasMessageContaining("Kerberos");
    }

    @Test
    void theHubsFilesComeOfOneCommitAndWithTheirDigests() throws Exception {
        byte[] weights = Given.random(9 << 20, 13);
        byte[] config = "{}".getBytes(StandardCharsets.UTF_8);
        String blob =
                ContentDigests.hex(ContentDigests.of("SHA-1").digest("blob 2\0{}".getBytes(StandardCharsets.UTF_8)));
        String info = "{\"sha\":\"c0ffee\",\"siblings\":[{\"rfilename\":\"config.json\",\"size\":2,\"blobId\":\"" + blob
                + "\"},{\"rfilename\":\"onnx/model.onnx\",\"size\":" + weights.length
                + ",\"blobId\":\"abc\",\"lfs\":{\"sha256\":\"" + ContentDigests.sha256(weights) + "\",\"size\":"
                + weights.length + "}}]}";
        server.handlers.put("/api/models/me/iris/revision/v1", exchange -> TestServer.json(exchange, 200, info));
        server.put("/me/iris/resolve/c0ffee/config.json", config);
        try (TestServer cdn = new TestServer()) {
            cdn.put("/blob", weights);
            server.handlers.put("/me/iris/resolve/c0ffee/onnx/model.onnx", exchange -> {
                exchange.getResponseHeaders().set("Location", cdn.url() + "/blob?signature=1");
                TestServer.status(exchange, 302);
            });
            Map<String, String> settings = Map.of("HF_ENDPOINT", server.url(), "HF_TOKEN", "hf_secret");
            try (StorageLease stored = Given.fetch(storage, "hf://me/iris:v1", settings)) {
                assertThat(stored.path().resolve("config.json")).hasContent("{}");
                assertThat(java.nio.file.Files.readAllBytes(stored.path().resolve("onnx/model.onnx")))
                        .isEqualTo(weights);
            }
            assertThat(server.seen).allMatch(s -> s.header("Authorization").equals("Bearer hf_secret"));
            assertThat(cdn.seen)
                    .hasSize(2)
                    .allMatch(s -> s.header("Authorization").isEmpty());
        }
        Path token = java.nio.file.Files.writeString(directory.resolve("token"), "hf_file\n");
        server.seen.clear();
        server.handlers.put(
                "/api/models/me/one/revision/refs/pr/1",
                exchange -> TestServer.json(
                        exchange, 200, "{\"sha\":\"c1\",\"siblings\":[{\"rfilename\":\"a\",\"size\":1}]}"));
        server.put("/me/one/resolve/c1/a", "a");
        Given.fetch(
                        storage,
                        "hf://me/one:refs/pr/1",
                        Map.of("HF_ENDPOINT", server.url(), "HF_TOKEN_PATH", token.toString()))
                .close();
        assertThat(server.seen)
                .isNotEmpty()
                .allMatch(s -> s.header("Authorization").equals("Bearer hf_file"));
        assertThatThrownBy(() -> Given.fetch(
                        storage, "hf://me/one", Map.of("HF_ENDPOINT", server.url(), "HF_TOKEN_PATH", "/no/token")))
                .hasMessageContaining("HF_TOKEN_PATH cannot be read: /no/token");
        server.handlers.put("/api/models/me/gone/revision/main", exchange -> TestServer.status(exchange, 401));
        assertThatThrownBy(() -> Given.fetch(storage, "hf://me/gone", Map.of("HF_ENDPOINT", server.url())))
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.describe()).contains("needs HF_TOKEN"));
    }

    private String blob(byte[] bytes) {
        String digest = "sha256:" + ContentDigests.sha256(bytes);
        server.put("/v2/team/model/blobs/" + digest, bytes);
        return digest;
    }

    private static String layer(String type, String digest, int size) {
        return "{\"mediaType\":\"application/vnd.oci.image.layer.v1." + type + "\",\"digest\":\"" + digest
                + "\",\"size\":" + size + "}";
    }

    @Test
    void anImageGivesWhatIsBelowModelsOfAllItsLayers() throws Exception {
        byte[] base = Archives.gzip(new Archives()
                .file("bin/sh", "shell")
                .file("models/a.bin", "old")
                .file("models/gone.bin", "x")
                .file("modelsother/x", "x")
                .tar());
        byte[] top = new Archives()
                .file("models/a.bin", "new")
                .file("models/.wh.gone.bin", "")
                .file("models/sub/b.bin", "b")
                .tar();
        String manifest = "{\"schemaVersion\":2,\"layers\":[" + layer("tar+gzip", blob(base), base.length) + ","
                + layer("tar", blob(top), top.length) + "]}";
        String digest = "sha256:" + ContentDigests.sha256(manifest);
        String index = "{\"schemaVersion\":2,\"manifests\":[{\"digest\":\"sha256:" + "0".repeat(64)
                + "\",\"platform\":{\"os\":\"linux\",\"architecture\":\"s390x\"}},{\"digest\":\"" + digest
                + "\",\"platform\":{\"os\":\"linux\",\"architecture\":\"amd64\"}},{\"digest\":\"" + digest
                + "\",\"platform\":{\"os\":\"linux\",\"architecture\":\"arm64\"}}]}";
        TestServer.Handler challenge = exchange -> {
            exchange.getResponseHeaders()
                    .set(
                            "WWW-Authenticate",
                            "Bearer realm=\"" + server.url()
                                    + "/auth\",service=\"reg\",scope=\"repository:team/model:pull\"");
            TestServer.status(exchange, 401);
        };
        Map<String, String> manifests =
                Map.of("/v2/team/model/manifests/v1", index, "/v2/team/model/manifests/" + digest, manifest);
        manifests.forEach((path, text) -> server.handlers.put(path, exchange -> {
            if ("Bearer reg-token".equals(exchange.getRequestHeaders().getFirst("Authorization"))) {
                TestServer.json(exchange, 200, text);
            } else {
                challenge.handle(exchange);
            }
        }));
        server.handlers.put(
                "/auth",
                exchange -> TestServer.json(
                        exchange,
                        exchange.getRequestHeaders().getFirst("Authorization").equals("Basic dTpw") ? 200 : 401,
                        "{\"token\":\"reg-token\"}"));
        String docker = "{\"auths\":{\"127.0.0.1:" + server.port() + "\":{\"username\":\"u\",\"password\":\"p\"}}}";
        Map<String, String> settings = StorageCredentials.settings(
                List.of(new StorageCredentials.Secret("pull", Map.of(".dockerconfigjson", docker), Map.of())),
                Map.of());
        String uri = "oci://127.0.0.1:" + server.port() + "/team/model:v1";
        try (StorageLease stored = Given.fetch(storage, uri, settings)) {
            assertThat(Given.files(stored.path())).isEqualTo(Map.of("a.bin", "new", "sub/b.bin", "b"));
        }
        assertThat(server.seen)
                .filteredOn(s -> s.path().contains("/blobs/"))
                .hasSize(2)
                .allMatch(s -> s.header("Authorization").equals("Bearer reg-token"));
    }

    @Test
    void anImageWithZstdOrFalseBytesIsRefusedByName() {
        String host = "oci://127.0.0.1:" + server.port() + "/team/model";
        server.handlers.put(
                "/v2/team/model/manifests/latest",
                exchange -> TestServer.json(
                        exchange, 200, "{\"layers\":[" + layer("tar+zstd", "sha256:" + "1".repeat(64), 3) + "]}"));
        assertThatThrownBy(() -> Given.fetch(storage, host))
                .hasMessageContaining("tar+zstd")
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.remedy()).contains("instead of zstd"));
        String pinned = "sha256:" + "2".repeat(64);
        server.handlers.put("/v2/team/model/manifests/" + pinned, exchange -> TestServer.json(exchange, 200, "{}"));
        assertThatThrownBy(() -> Given.fetch(storage, host + "@" + pinned))
                .hasMessageContaining("does not have the digest");
        byte[] layer = new Archives().file("other/x", "x").tar();
        String manifest = "{\"layers\":[" + layer("tar", blob(layer), layer.length) + "]}";
        server.handlers.put("/v2/team/model/manifests/none", exchange -> TestServer.json(exchange, 200, manifest));
        assertThatThrownBy(() -> Given.fetch(storage, host + ":none")).hasMessageContaining("No model found in oci://");
    }
}
