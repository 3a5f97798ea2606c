// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.credentials;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.Clock;
import io.nereid.base.ServingException;
import io.nereid.storage.Given;
import io.nereid.storage.http.HttpClients;
import io.nereid.storage.http.HttpSession;
import io.nereid.storage.http.TlsSettings;
import io.nereid.storage.object.TestServer;
import io.nereid.storage.provider.AzureBlobSource;
import io.nereid.storage.provider.GcsSource;
import io.nereid.storage.provider.StorageProviders;
import io.nereid.storage.request.StorageAccess;
import io.nereid.storage.request.StorageOptions;
import io.nereid.storage.spi.CancellationToken;
import io.nereid.storage.spi.RetryPolicy;
import io.nereid.storage.spi.StorageSettings;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Credentials of metadata services, which a web server on loopback simulates. */
class InstanceMetadataCredentialsTest {
    private static final String KEYS = "{\"Code\":\"Success\",\"AccessKeyId\":\"ASIA1\",\"SecretAccessKey\":\"s\","
            + "\"Token\":\"session\",\"Expiration\":\"2099-01-01T00:00:00Z\"}";

    private TestServer server;
    private HttpClients http;

    @TempDir
    Path directory;

    @BeforeEach
    void start() throws Exception {
        server = new TestServer();
        http = new HttpClients(Given.options(directory), Clock.system());
    }

    @AfterEach
    void stop() {
        http.close();
        server.close();
    }

    private final TokenCache tokens = new TokenCache(Clock.system());

    private AwsCredentialsProvider aws(Map<String, String> request, Map<String, String> environment) {
        StorageSettings settings = StorageSettings.of(request, environment, StorageProviders.IDENTITIES);
        return new AwsCredentialsProvider(settings, session(settings), tokens);
    }

    private HttpSession session(StorageSettings settings) {
        StorageOptions options = http.options;
        return new HttpSession(
                http,
                TlsSettings.MACHINE,
                settings,
                new RetryPolicy(options.connectTimeout(), options.readTimeout(), 3),
                new CancellationToken(),
                StorageAccess.Connections.UNRESTRICTED);
    }

    private void machine() {
        server.handlers.put(
                "/latest/api/token",
                exchange -> TestServer.bytes(
                        exchange,
                        exchange.getRequestMethod().equals("PUT")
                                        && exchange.getRequestHeaders()
                                                .containsKey("X-aws-ec2-metadata-token-ttl-seconds")
                                ? 200
                                : 400,
                        "pass".getBytes(java.nio.charset.StandardCharsets.US_ASCII)));
        server.handlers.put(
                "/latest/meta-data/iam/security-credentials/",
                exchange -> TestServer.bytes(
                        exchange,
                        "pass".equals(exchange.getRequestHeaders().getFirst("X-aws-ec2-metadata-token")) ? 200 : 401,
                        "my-role\n".getBytes(java.nio.charset.StandardCharsets.US_ASCII)));
        server.handlers.put(
                "/latest/meta-data/iam/security-credentials/my-role",
                exchange -> TestServer.json(
                        exchange,
                        "pass".equals(exchange.getRequestHeaders().getFirst("X-aws-ec2-metadata-token")) ? 200 : 401,
                        KEYS));
    }

    @Test
    void aMachinesRoleGivesKeysWhenThereAreNoOthersAndIsAskedOnce() {
        machine();
        Map<String, String> environment = Map.of("AWS_EC2_METADATA_SERVICE_ENDPOINT", server.url() + "/");
        AwsCredentialsProvider keys = aws(Map.of(), environment);
        assertThat(keys.key("eu")).isEqualTo(new SigV4Signer.Key("ASIA1", "s", "session"));
        keys.key("eu");
        assertThat(server.seen).hasSize(3);
        Map<String, String> own = new HashMap<>(environment);
        own.putAll(Map.of("AWS_ACCESS_KEY_ID", "i", "AWS_SECRET_ACCESS_KEY", "k"));
        assertThat(aws(Map.of(), own).key("eu")).isEqualTo(new SigV4Signer.Key("i", "k", null));
        own = new HashMap<>(environment);
        own.put("AWS_EC2_METADATA_DISABLED", "true");
        assertThat(aws(Map.of(), own).key("eu")).isNull();
    }

    @Test
    void aRequestWithAPlaceOfItsOwnGetsNothingOfTheMachines() {
        machine();
        Map<String, String> environment = Map.of("AWS_EC2_METADATA_SERVICE_ENDPOINT", server.url());
        assertThat(aws(Map.of("AWS_ENDPOINT_URL", "http://elsewhere"), environment)
                        .key("eu"))
                .isNull();
        assertThat(aws(Map.of("awsAnonymousCredential", "true"), environment).key("eu"))
                .isNull();
        assertThat(server.seen).isEmpty();
    }

    @Test
    void aMachineThatDoesNotAnswerMeansNoKeysAndIsNotAskedAgain() {
        server.handlers.put("/latest/api/token", exchange -> {
            try {
                server.release.await();
            } catch (InterruptedException e) {
                throw new java.io.IOException(e);
            }
        });
        AwsCredentialsProvider keys = aws(Map.of(), Map.of("AWS_EC2_METADATA_SERVICE_ENDPOINT", server.url()));
        long begun = Clock.system().nanos();
        assertThat(keys.key("eu")).isNull();
        assertThat(keys.key("eu")).isNull();
        assertThat((Clock.system().nanos() - begun) / 1_000_000).isBetween(900L, 4_000L);
        assertThat(server.seen).hasSize(1);
    }

    @Test
    void aContainersRoleIsAskedForWithItsToken() throws Exception {
        server.handlers.put(
                "/creds",
                exchange -> TestServer.json(
                        exchange,
                        "of-file".equals(exchange.getRequestHeaders().getFirst("Authorization")) ? 200 : 403,
                        KEYS));
        Path file = Files.writeString(directory.resolve("token"), "of-file\n");
        Map<String, String> environment = Map.of(
                "AWS_CONTAINER_CREDENTIALS_FULL_URI",
                server.url() + "/creds",
                "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
                file.toString());
        assertThat(aws(Map.of(), environment).key("eu")).isEqualTo(new SigV4Signer.Key("ASIA1", "s", "session"));
        assertThatThrownBy(() -> aws(
                                Map.of(),
                                Map.of("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://elsewhere.example/creds"))
                        .key("eu"))
                .isInstanceOf(ServingException.class)
                .hasMessageContaining("elsewhere.example");
        assertThatThrownBy(() -> aws(
                                Map.of(), Map.of("AWS_CONTAINER_CREDENTIALS_FULL_URI", server.url() + "/creds?again"))
                        .key("eu"))
                .hasMessageContaining("the container's AWS credentials: the store answered 403");
    }

    @Test
    void aProfileThatIsAskedForAndNotThereIsToldInsteadOfIgnored() throws Exception {
        Path file = Files.writeString(directory.resolve("credentials"), "[default]\naws_access_key_id=i\n");
        for (String name :
                new String[] {file.toString(), directory.resolve("none").toString()}) {
            assertThatThrownBy(() -> aws(Map.of(), Map.of("AWS_PROFILE", "work", "AWS_SHARED_CREDENTIALS_FILE", name))
                            .key("eu"))
                    .isInstanceOf(ServingException.class)
                    .hasMessageContaining("AWS_PROFILE is 'work'");
        }
        assertThat(aws(
                                Map.of(),
                                Map.of(
                                        "AWS_SHARED_CREDENTIALS_FILE",
                                        file.toString(),
                                        "AWS_EC2_METADATA_DISABLED",
                                        "true"))
                        .key("eu"))
                .isNull();
    }

    private String authorization(Map<String, String> request, Map<String, String> environment) {
        server.put("/cont/m/a", "1");
        server.handlers.put(
                "/cont",
                exchange -> TestServer.xml(
                        exchange,
                        200,
                        "<EnumerationResults><Blobs><Blob><Name>m/a</Name><Properties><Content-Length>1</Content-Length>"
                                + "</Properties></Blob></Blobs><NextMarker/></EnumerationResults>"));
        StorageSettings settings = StorageSettings.of(request, environment, StorageProviders.IDENTITIES);
        new AzureBlobSource("https://acct.blob.core.windows.net/cont/m", settings, session(settings), tokens).list();
        return server.seen.get(server.seen.size() - 1).header("Authorization");
    }

    @Test
    void azuresManagedIdentityIsAskedWhereTheEnvironmentNamesIt() {
        server.handlers.put(
                "/metadata/identity/oauth2/token",
                exchange -> TestServer.json(
                        exchange,
                        "true".equals(exchange.getRequestHeaders().getFirst("Metadata")) ? 200 : 400,
                        "{\"access_token\":\"vm\",\"expires_in\":\"3600\"}"));
        server.handlers.put(
                "/msi",
                exchange -> TestServer.json(
                        exchange,
                        "h".equals(exchange.getRequestHeaders().getFirst("X-IDENTITY-HEADER")) ? 200 : 400,
                        "{\"access_token\":\"app\",\"expires_in\":\"3600\"}"));
        Map<String, String> base = Map.of("AZURE_STORAGE_BLOB_ENDPOINT", server.url());
        Map<String, String> vm = new HashMap<>(base);
        vm.put("AZURE_POD_IDENTITY_AUTHORITY_HOST", server.url());
        assertThat(authorization(Map.of(), vm)).isEqualTo("Bearer vm");
        assertThat(server.seen.get(0).query())
                .isEqualTo("api-version=2018-02-01&resource=https%3A%2F%2Fstorage.azure.com%2F");
        vm.put("AZURE_CLIENT_ID", "mine");
        assertThat(authorization(Map.of(), vm)).isEqualTo("Bearer vm");
        assertThat(server.seen).anyMatch(s -> s.query().endsWith("&client_id=mine"));
        Map<String, String> app = new HashMap<>(base);
        app.putAll(Map.of("IDENTITY_ENDPOINT", server.url() + "/msi", "IDENTITY_HEADER", "h"));
        assertThat(authorization(Map.of(), app)).isEqualTo("Bearer app");
        assertThat(authorization(base, app)).isEmpty();
        assertThatThrownBy(() -> authorization(Map.of("AZURE_CLIENT_ID", "theirs"), vm))
                .isInstanceOf(ServingException.class)
                .hasMessageContaining("AZURE_TENANT_ID is missing");
    }

    @Test
    void googlesMachineGivesATokenWhereTheEnvironmentNamesIt() {
        server.handlers.put(
                "/computeMetadata/v1/instance/service-accounts/default/token",
                exchange -> TestServer.json(
                        exchange,
                        "Google".equals(exchange.getRequestHeaders().getFirst("Metadata-Flavor")) ? 200 : 403,
                        "{\"access_token\":\"gce\",\"expires_in\":3600}"));
        server.handlers.put("/storage/v1/b/b/o", exchange -> TestServer.json(exchange, 200, "{\"items\":[]}"));
        Map<String, String> environment =
                Map.of("GCE_METADATA_HOST", "127.0.0.1:" + server.port(), "STORAGE_EMULATOR_HOST", server.url());
        StorageSettings settings = StorageSettings.of(Map.of(), environment, StorageProviders.IDENTITIES);
        new GcsSource("gs://b/", settings, session(settings), tokens, GcsSource.READS).list();
        assertThat(server.seen.get(1).header("Authorization")).isEqualTo("Bearer gce");
    }

    @Test
    void theProfileOfTheServersHomeIsNotForARequestWithItsOwnEndpoint() throws Exception {
        Files.writeString(
                Files.createDirectories(directory.resolve(".aws")).resolve("credentials"),
                "[default]\naws_access_key_id=OWN\naws_secret_access_key=s\n");
        Map<String, String> environment = Map.of("HOME", directory.toString(), "AWS_EC2_METADATA_DISABLED", "true");
        assertThat(aws(Map.of(), environment).key("us-east-1")).isNotNull();
        assertThat(aws(Map.of("AWS_ENDPOINT_URL", "http://elsewhere"), environment)
                        .key("us-east-1"))
                .isNull();
    }

    @Test
    void theTimesAndAttemptsOfS3AreSettings() {
        StorageProviders providers = new StorageProviders(http, tokens, Map.of());
        StorageSettings settings = StorageSettings.of(
                Map.of(),
                Map.of("S3_CONNECT_TIMEOUT", "7", "S3_READ_TIMEOUT", "9", "AWS_MAX_ATTEMPTS", "4"),
                StorageProviders.IDENTITIES);
        RetryPolicy patience = retries(providers, "s3://b/k", settings);
        assertThat(patience.connect()).hasSeconds(7);
        assertThat(patience.read()).hasSeconds(9);
        assertThat(patience.attempts()).isEqualTo(4);
        assertThat(retries(providers, "gs://b/k", settings).connect()).isEqualTo(http.options.connectTimeout());
    }

    private static RetryPolicy retries(StorageProviders providers, String uri, StorageSettings settings) {
        return providers
                .context(providers.of(uri), uri, settings, new CancellationToken())
                .retries();
    }
}
