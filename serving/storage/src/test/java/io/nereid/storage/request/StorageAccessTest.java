// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.request;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.storage.Given;
import io.nereid.storage.Storage;
import io.nereid.storage.object.TestServer;
import java.net.InetAddress;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Requests of an API's clients cannot make the server call what only the server can reach. Over real sockets. */
@Timeout(60)
class StorageAccessTest {
    private TestServer server;
    private TestServer other;

    @TempDir
    Path directory;

    @BeforeEach
    void start() throws Exception {
        server = new TestServer();
        other = new TestServer();
        server.put("/m.bin", "model");
        other.put("/m.bin", "secret");
    }

    @AfterEach
    void stop() {
        server.close();
        other.close();
    }

    private Storage storage(List<String> allow, boolean loopback, Map<String, String> environment) {
        return new Storage(
                Given.options(directory)
                        .withEnvironment(environment)
                        .withAccess(StorageAccess.of(allow, loopback, environment)),
                Clock.system());
    }

    private void refused(Storage storage, String uri, Map<String, String> credentials, String... reasons) {
        assertThatThrownBy(() -> Given.fetch(storage, uri, credentials).close())
                .isInstanceOfSatisfying(ServingException.class, e -> {
                    assertThat(e.code()).isEqualTo(ErrorCode.PERMISSION_DENIED);
                    assertThat(e.getMessage()).contains(reasons);
                    assertThat(e.remedy()).contains("--storage-allow");
                });
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "http://169.254.169.254/latest/meta-data/iam",
                "http://2852039166/latest",
                "http://[::ffff:169.254.169.254]/latest",
                "http://[fd00:ec2::254]/latest",
                "http://[fe80::1]/latest",
                "http://[64:ff9b::a9fe:a9fe]/latest",
                "http://[2002:a9fe:a9fe::1]/latest",
                "http://[::169.254.169.254]/latest",
                "http://100.100.100.200/latest",
                "http://192.0.0.192/latest",
                "http://168.63.129.16/machine",
                "http://metadata.google.internal/computeMetadata/v1/",
                "http://METADATA.google.internal./computeMetadata/v1/",
                "http://0.0.0.0/x",
                "http://[::]/x",
                "http://224.0.0.1/x",
                "http://255.255.255.255/x"
            })
    void metadataServicesAreRefusedUnderEveryName(String uri) {
        try (Storage storage = storage(List.of(), true, Map.of())) {
            refused(storage, uri, Map.of(), "is not permitted");
        }
        try (Storage storage = storage(List.of("*", "https://*.example.com/"), true, Map.of())) {
            refused(storage, uri, Map.of(), "is not permitted");
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"http://127.0.0.1:", "http://localhost:", "http://2130706433:"})
    void servicesOfThisMachineAreRefusedUnlessPermitted(String host) {
        String uri = host + server.port() + "/m.bin";
        try (Storage storage = storage(List.of(), false, Map.of())) {
            refused(storage, uri, Map.of(), "that of this machine");
        }
        assertThat(server.seen).isEmpty();
        try (Storage storage = storage(List.of(), true, Map.of());
                StorageLease stored = Given.fetch(storage, uri)) {
            assertThat(stored.bytes()).isEqualTo(5);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"10.0.0.7", "172.16.3.4", "192.168.1.1", "8.8.8.8", "fd12:3456::1", "2606:4700::1111"})
    void privateAndPublicAddressesAreAllowed(String address) throws Exception {
        StorageAccess access = StorageAccess.of(List.of(), false, Map.of());
        assertThat(access.connections("https://models/x")
                        .refusal(URI.create("https://models/x"), InetAddress.getByName(address)))
                .isNull();
    }

    @Test
    void aPatternWithTheHostPermitsItsAddress() {
        String named = "http://127.0.0.1:" + server.port();
        try (Storage storage = storage(List.of("*", named), false, Map.of())) {
            Given.fetch(storage, named + "/m.bin").close();
            refused(storage, "http://127.0.0.1:" + other.port() + "/m.bin", Map.of(), "that of this machine");
            refused(storage, "http://localhost:" + server.port() + "/m.bin", Map.of(), "that of this machine");
        }
        assertThat(other.seen).isEmpty();
    }

    @Test
    void aRedirectIsCheckedAgain() {
        String named = "http://127.0.0.1:" + server.port();
        server.handlers.put("/r.bin", exchange -> {
            exchange.getResponseHeaders().set("Location", other.url() + "/m.bin");
            TestServer.status(exchange, 302);
        });
        server.handlers.put("/meta.bin", exchange -> {
            exchange.getResponseHeaders().set("Location", "http://169.254.169.254/latest/meta-data");
            TestServer.status(exchange, 307);
        });
        try (Storage storage = storage(List.of("*", named), false, Map.of())) {
            refused(storage, named + "/r.bin", Map.of(), "that of this machine");
            refused(storage, named + "/meta.bin", Map.of(), "link-local");
        }
        try (Storage storage = storage(List.of(named + "/"), true, Map.of())) {
            refused(storage, named + "/r.bin", Map.of(), "no pattern of --storage-allow matches");
        }
        assertThat(other.seen).isEmpty();
    }

    @Test
    void endpointsInTheEnvironmentAreTrustedAndThoseOfARequestAreNot() {
        server.handlers.put(
                "/b/",
                exchange -> TestServer.xml(
                        exchange,
                        200,
                        "<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>m/a.bin</Key><Size>5</Size>"
                                + "<ETag>\"x\"</ETag></Contents></ListBucketResult>"));
        server.put("/b/m/a.bin", "model");
        Map<String, String> anonymous = Map.of("awsAnonymousCredential", "true");
        Map<String, String> environment = Map.of("AWS_ENDPOINT_URL", server.url(), "awsAnonymousCredential", "true");
        try (Storage storage = storage(List.of(), false, environment)) {
            assertThatThrownBy(() -> Given.fetch(storage, "s3://b/m").close())
                    .isInstanceOfSatisfying(
                            ServingException.class,
                            e -> assertThat(e.code()).isNotEqualTo(ErrorCode.PERMISSION_DENIED));
        }
        assertThat(server.count("GET", "/b/")).isPositive();
        server.seen.clear();
        try (Storage storage = storage(List.of(), false, Map.of())) {
            refused(
                    storage,
                    "s3://b/m",
                    Map.of("AWS_ENDPOINT_URL", server.url(), "awsAnonymousCredential", "true"),
                    "that of this machine");
        }
        try (Storage storage = storage(List.of("s3://b/"), true, anonymous)) {
            refused(
                    storage,
                    "s3://b/m",
                    Map.of("AWS_ENDPOINT_URL", server.url(), "awsAnonymousCredential", "true"),
                    "no pattern of --storage-allow matches");
        }
        assertThat(server.seen).isEmpty();
    }

    @ParameterizedTest
    @CsvSource({
        "s3://models/,s3://models/iris,true",
        "s3://models/,s3://models,true",
        "s3://models,s3://models-of-others/x,false",
        "s3://models/team/,s3://models/team/x,true",
        "s3://models/team/,s3://models/teams/x,false",
        "s3://models/team/,s3://models/team/../x,false",
        "s3://models/,gs://models/x,false",
        "*,hf://org/model,true",
        "hf://org,hf://org/model:main,true",
        "hf://org/model,hf://org/other,false",
        "oci://registry.example.com:5000/team,oci://registry.example.com:5000/team/x,true",
        "oci://registry.example.com:5000/team,oci+fetch://registry.example.com:5000/team/x,true",
        "oci://registry.example.com:5000/team,oci://registry.example.com/team/x,false",
        "https://models.example.com,https://models.example.com/a,true",
        "https://models.example.com,https://MODELS.example.com:443/a,true",
        "https://models.example.com:443,https://models.example.com/a,true",
        "https://models.example.com:443,https://models.example.com:8443/a,false",
        "https://models.example.com,http://models.example.com/a,false",
        "https://models.example.com,https://models.example.com.evil.org/a,false",
        "https://models.example.com,https://models.example.com@evil.org/a,false",
        "https://*.example.com,https://a.example.com/a,true",
        "https://*.example.com,https://example.com/a,false",
        "https://*.example.com,https://evilexample.com/a,false",
        "https://h/a/,https://h/a/%2e%2e/b,false",
        "file:///srv/models,file:///srv/models/iris,true",
        "file:///srv/models,/srv/models/iris,true",
        "file:///srv/models,file:///srv/models/../other,false",
        "file:///srv/models,file:///etc,false",
        "pvc://claim,pvc://claim/x,true",
        "pvc://claim,pvc://other/x,false"
    })
    void patternsDecideAboutUris(String pattern, String uri, boolean allowed) {
        StorageAccess access = StorageAccess.of(List.of(pattern), false, Map.of());
        if (allowed) {
            access.check(uri);
        } else {
            assertThatThrownBy(() -> access.check(uri))
                    .isInstanceOfSatisfying(
                            ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.PERMISSION_DENIED));
        }
    }

    @ParameterizedTest
    @ValueSource(
            strings = {"", "models", "s3://", "http://h:x/", "http://a*b/", "https://h/?q", "file://models", "://h"})
    void patternsThatAreNotValidAreNamed(String pattern) {
        assertThatThrownBy(() -> StorageAccess.of(List.of(pattern), false, Map.of()))
                .isInstanceOf(ServingException.class)
                .hasMessageContaining("'" + pattern + "' is not valid (expected: scheme://host[:port][/prefix]");
    }

    @Test
    void aDirectoryPatternHoldsForTheTargetsOfLinks() throws Exception {
        Path models = Files.createDirectories(directory.toRealPath().resolve("models"));
        Path outside = Files.createDirectories(directory.resolve("outside"));
        Files.writeString(outside.resolve("secret.bin"), "secret");
        Files.createDirectories(models.resolve("iris"));
        Files.writeString(models.resolve("iris").resolve("m.bin"), "model");
        Files.createSymbolicLink(models.resolve("link"), outside.toAbsolutePath());
        try (Storage storage = storage(List.of("file://" + models), false, Map.of())) {
            Given.fetch(storage, "file://" + models + "/iris").close();
            refused(storage, "file://" + models + "/link", Map.of(), "is not permitted");
            refused(storage, "file://" + outside.toRealPath(), Map.of(), "is not permitted");
        }
    }

    @Test
    void theTokenOfTheHubDoesNotFollowARedirect() {
        String blob = "0".repeat(40);
        server.handlers.put(
                "/api/models/o/m/revision/main",
                exchange -> TestServer.json(
                        exchange,
                        200,
                        "{\"sha\":\"c\",\"siblings\":[{\"rfilename\":\"m.bin\",\"size\":6,\"blobId\":\"\"}]}"));
        server.handlers.put("/o/m/resolve/c/m.bin", exchange -> {
            exchange.getResponseHeaders().set("Location", "http://localhost:" + other.port() + "/m.bin");
            TestServer.status(exchange, 302);
        });
        Map<String, String> settings = Map.of("HF_ENDPOINT", server.url(), "HF_TOKEN", "hf_secret_" + blob);
        try (Storage storage = storage(List.of(), true, Map.of())) {
            Given.fetch(storage, "hf://o/m", settings).close();
        }
        assertThat(server.seen).allMatch(s -> s.header("Authorization").startsWith("Bearer hf_secret"));
        assertThat(other.seen)
                .isNotEmpty()
                .allMatch(s -> s.header("Authorization").isEmpty());
    }

    private Map<String, String> login(String... hosts) {
        StringBuilder auths = new StringBuilder();
        for (String host : hosts) {
            auths.append(auths.isEmpty() ? "" : ",")
                    .append("\"" + host + "\":{\"auth\":\""
                            + Base64.getEncoder().encodeToString(("user:" + host).getBytes(StandardCharsets.UTF_8))
                            + "\"}");
        }
        return Map.of(".dockerconfigjson", "{\"auths\":{" + auths + "}}");
    }

    private void registry(String realm) {
        server.handlers.put("/v2/team/model/manifests/v1", exchange -> {
            exchange.getResponseHeaders().set("WWW-Authenticate", "Bearer realm=\"" + realm + "\",service=\"reg\"");
            TestServer.status(exchange, 401);
        });
        TestServer.Handler token = exchange -> TestServer.json(exchange, 200, "{\"token\":\"t\"}");
        server.handlers.put("/auth", token);
        other.handlers.put("/auth", token);
    }

    private String sent(TestServer to) {
        return to.seen.stream()
                .filter(s -> s.path().equals("/auth"))
                .map(s -> s.header("Authorization").replace("Basic ", ""))
                .map(s -> new String(Base64.getDecoder().decode(s), StandardCharsets.UTF_8))
                .toList()
                .toString();
    }

    @Test
    void thePasswordOfARegistryIsForItsOwnTokenService() {
        String name = "127.0.0.1:" + server.port();
        String uri = "oci://" + name + "/team/model:v1";
        String foreign = "http://localhost:" + other.port() + "/auth";
        try (Storage storage = storage(List.of(), true, Map.of())) {
            registry("http://" + name + "/auth");
            assertThatThrownBy(() -> Given.fetch(storage, uri, login(name)).close());
            assertThat(sent(server)).isEqualTo("[user:" + name + "]");

            registry(foreign);
            assertThatThrownBy(() -> Given.fetch(storage, uri, login(name)).close());
            assertThat(sent(other)).isEqualTo("[]");
            other.seen.clear();
            assertThatThrownBy(
                    () -> Given.fetch(storage, uri, login(name, "localhost")).close());
            assertThat(sent(other)).isEqualTo("[user:localhost]");
            other.seen.clear();
        }
        try (Storage storage = storage(List.of("*", "http://localhost/"), true, Map.of())) {
            assertThatThrownBy(() -> Given.fetch(storage, uri, login(name)).close());
            assertThat(sent(other)).isEqualTo("[]");
        }
        try (Storage storage = storage(List.of("*", "http://localhost:" + other.port()), true, Map.of())) {
            other.seen.clear();
            assertThatThrownBy(() -> Given.fetch(storage, uri, login(name)).close());
            assertThat(sent(other)).isEqualTo("[user:" + name + "]");
        }
    }

    @Test
    void servicesOfTheMachineGiveCredentialsOnlyToTheServer() {
        // The connection to a credentials service is not used again for a request's own URI.
        Map<String, String> environment = Map.of("AWS_CONTAINER_CREDENTIALS_FULL_URI", server.url() + "/keys");
        server.handlers.put(
                "/keys",
                exchange -> TestServer.json(
                        exchange,
                        200,
                        "{\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"s\",\"Token\":\"t\","
                                + "\"Expiration\":\"2099-01-01T00:00:00Z\"}"));
        try (Storage storage = storage(
                List.of(),
                false,
                Map.of(
                        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
                        environment.get("AWS_CONTAINER_CREDENTIALS_FULL_URI"),
                        "AWS_ENDPOINT_URL",
                        "http://localhost:" + other.port()))) {
            assertThatThrownBy(() -> Given.fetch(storage, "s3://b/m").close());
            assertThat(server.count("GET", "/keys")).isEqualTo(1);
            refused(storage, server.url() + "/m.bin", Map.of(), "that of this machine");
            assertThat(server.count("HEAD", "/m.bin")).isZero();
        }
    }
}
