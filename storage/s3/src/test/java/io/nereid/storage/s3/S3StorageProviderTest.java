// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.s3;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.net.httpserver.HttpServer;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.storage.Given;
import io.nereid.storage.Storage;
import io.nereid.storage.request.S3StoreTests;
import io.nereid.storage.request.StorageAccess;
import io.nereid.storage.request.StorageLease;
import io.nereid.storage.spi.CancellationToken;
import io.nereid.storage.spi.ObjectSource;
import io.nereid.storage.spi.ObjectStream;
import io.nereid.storage.spi.RetryPolicy;
import io.nereid.storage.spi.StorageContext;
import io.nereid.storage.spi.StorageProvider;
import io.nereid.storage.spi.StorageSettings;
import java.io.File;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.ServiceLoader;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** The provider through the server's storage, with a real S3 server; and what only it can do, with fakes. */
class S3StorageProviderTest extends S3StoreTests {
    private final S3StorageProvider provider = new S3StorageProvider();
    private final LinkedBlockingQueue<com.sun.net.httpserver.HttpExchange> seen = new LinkedBlockingQueue<>();
    private HttpServer fake;

    @Override
    protected Storage open() {
        return new Storage(Given.options(directory), Clock.system(), List.of(provider));
    }

    @AfterEach
    void stopFake() {
        if (fake != null) {
            fake.stop(0);
        }
    }

    private String fake(com.sun.net.httpserver.HttpHandler handler) throws Exception {
        fake = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        fake.createContext("/", exchange -> {
            seen.add(exchange);
            handler.handle(exchange);
        });
        fake.start();
        return "http://127.0.0.1:" + fake.getAddress().getPort();
    }

    private StorageContext context(String uri, Map<String, String> request, Map<String, String> environment) {
        StorageSettings settings = StorageSettings.of(request, environment, List.of(provider.identitySettings()));
        RetryPolicy retries = new RetryPolicy(Duration.ofSeconds(2), Duration.ofSeconds(20), 3);
        return new StorageContext(uri, settings, provider.retries(settings, retries), new CancellationToken());
    }

    private static void answer(com.sun.net.httpserver.HttpExchange exchange, int status, String body)
            throws java.io.IOException {
        try (exchange) {
            byte[] bytes = body.getBytes(StandardCharsets.UTF_8);
            exchange.getResponseHeaders().set("Content-Type", "application/xml");
            exchange.sendResponseHeaders(status, bytes.length);
            exchange.getResponseBody().write(bytes);
        }
    }

    private static final String ONE = "<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>m/a</Key>"
            + "<Size>3</Size><ETag>\"900150983cd24fb0d6963f7d28e17f72\"</ETag></Contents></ListBucketResult>";

    @Test
    void addressesThatPolicyRefusesAreNotReached() throws Exception {
        String refused = fake(exchange -> answer(exchange, 200, ONE));
        String redirecting = "http://localhost:" + fake.getAddress().getPort();
        StorageAccess strict = StorageAccess.of(List.of(), false, Map.of());
        try (Storage storage = new Storage(
                Given.options(directory.resolve("strict")).withStale(false).withAccess(strict),
                Clock.system(),
                List.of(provider))) {
            for (String endpoint : List.of(
                    refused,
                    redirecting,
                    "http://169.254.169.254",
                    "http://[fe80::1]",
                    "http://[::ffff:169.254.169.254]",
                    "http://metadata.google.internal")) {
                Map<String, String> request =
                        Map.of("AWS_ENDPOINT_URL", endpoint, "AWS_ACCESS_KEY_ID", "K", "AWS_SECRET_ACCESS_KEY", "S");
                assertThatThrownBy(() -> Given.fetch(storage, "s3://bucket/m", request))
                        .isInstanceOfSatisfying(
                                ServingException.class,
                                e -> assertThat(e.code())
                                        .as(endpoint + " " + e.getMessage())
                                        .isEqualTo(ErrorCode.PERMISSION_DENIED));
            }
            // The token service of a role is checked like the store.
            Map<String, String> role = Map.of(
                    "AWS_ENDPOINT_URL_STS",
                    refused,
                    "AWS_ROLE_ARN",
                    "arn:aws:iam::1:role/r",
                    "AWS_WEB_IDENTITY_TOKEN_FILE",
                    Files.writeString(directory.resolve("token"), "t").toString());
            assertThatThrownBy(() -> Given.fetch(storage, "s3://bucket/m", role))
                    .isInstanceOf(ServingException.class)
                    .hasMessageContaining("that of this machine");
        }
        assertThat(seen).isEmpty();
    }

    @Test
    void aRedirectOfTheStoreIsNotFollowedToAnotherHost() throws Exception {
        HttpServer inner = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        LinkedBlockingQueue<String> reached = new LinkedBlockingQueue<>();
        inner.createContext("/", exchange -> {
            reached.add(exchange.getRequestURI().toString());
            answer(exchange, 200, ONE);
        });
        inner.start();
        try {
            String endpoint = fake(exchange -> {
                exchange.getResponseHeaders()
                        .set(
                                "Location",
                                "http://127.0.0.1:" + inner.getAddress().getPort() + "/bucket");
                answer(exchange, 307, "");
            });
            Map<String, String> request =
                    Map.of("AWS_ENDPOINT_URL", endpoint, "AWS_ACCESS_KEY_ID", "K", "AWS_SECRET_ACCESS_KEY", "S");
            assertThatThrownBy(() -> Given.fetch(storage, "s3://bucket/m", request))
                    .isInstanceOf(ServingException.class);
            assertThat(reached).isEmpty();
        } finally {
            inner.stop(0);
        }
    }

    @Test
    void itIsFoundThroughTheServiceLoader() {
        assertThat(ServiceLoader.load(StorageProvider.class)).hasOnlyElementsOfType(S3StorageProvider.class);
    }

    @Test
    void accessPointsAreNamedByTheirArns() {
        String arn = "arn:aws:s3:eu-west-1:123456789012:accesspoint";
        assertThat(S3Location.parse("s3://" + arn + "/mine/models/iris"))
                .isEqualTo(new S3Location(arn + "/mine", "models/iris"));
        assertThat(S3Location.parse("s3://" + arn + ":mine")).isEqualTo(new S3Location(arn + ":mine", ""));
        String outpost = "arn:aws:s3-outposts:us-west-2:123456789012:outpost/op-1/accesspoint/mine";
        assertThat(S3Location.parse("s3://" + outpost + "/m/")).isEqualTo(new S3Location(outpost, "m/"));
        assertThat(S3Location.parse("s3://bucket/a:b/c")).isEqualTo(new S3Location("bucket", "a:b/c"));
        for (String uri : List.of("s3://", "s3:///key", "s3://arn:aws:s3:::bucket/key")) {
            assertThatThrownBy(() -> S3Location.parse(uri)).isInstanceOfSatisfying(ServingException.class, e -> {
                assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
                assertThat(e.describe()).contains("accesspoint/NAME");
            });
        }
    }

    @Test
    void aRoleIsAssumedWithTheWebIdentityAndKeptForOtherFetches() throws Exception {
        AtomicInteger assumed = new AtomicInteger();
        String endpoint = fake(exchange -> {
            if (exchange.getRequestMethod().equals("POST")) {
                assertThat(new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8))
                        .contains("WebIdentityToken=the-token");
                assumed.incrementAndGet();
                answer(
                        exchange,
                        200,
                        "<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials>"
                                + "<AccessKeyId>TEMPORARY</AccessKeyId><SecretAccessKey>s</SecretAccessKey>"
                                + "<SessionToken>session</SessionToken><Expiration>2099-01-01T00:00:00Z</Expiration>"
                                + "</Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>");
            } else {
                answer(exchange, 200, ONE);
            }
        });
        Path token = Files.writeString(directory.resolve("token"), "the-token");
        Map<String, String> environment = Map.of(
                "AWS_ROLE_ARN",
                "arn:aws:iam::123456789012:role/models",
                "AWS_WEB_IDENTITY_TOKEN_FILE",
                token.toString(),
                "AWS_ENDPOINT_URL_STS",
                endpoint,
                "AWS_ENDPOINT_URL",
                endpoint);
        for (int i = 0; i < 2; i++) {
            try (ObjectSource source = provider.open(context("s3://bucket/m", Map.of(), environment))) {
                assertThat(source.list().items()).hasSize(1);
            }
        }
        assertThat(assumed).hasValue(1);
        seen.take();
        assertThat(seen.take().getRequestHeaders().getFirst("Authorization")).contains("Credential=TEMPORARY/");
    }

    @Test
    void profilesAreReadFromTheNamedFiles() throws Exception {
        String endpoint = fake(exchange -> answer(exchange, 200, ONE));
        Path credentials = Files.writeString(
                directory.resolve("credentials"),
                "[models]\naws_access_key_id = OFPROFILE\naws_secret_access_key = s\n");
        Map<String, String> request = Map.of(
                "AWS_ENDPOINT_URL",
                endpoint,
                "AWS_PROFILE",
                "models",
                "AWS_SHARED_CREDENTIALS_FILE",
                credentials.toString());
        try (ObjectSource source = provider.open(context("s3://bucket/m", request, Map.of()))) {
            source.list();
        }
        assertThat(seen.take().getRequestHeaders().getFirst("Authorization")).contains("Credential=OFPROFILE/");
    }

    @Test
    void theServersIdentityIsNotSentToAnEndpointOfTheRequest() throws Exception {
        String endpoint = fake(exchange -> answer(exchange, 200, ONE));
        Map<String, String> environment =
                Map.of("AWS_ACCESS_KEY_ID", "OWN", "AWS_SECRET_ACCESS_KEY", "own-secret", "HOME", directory.toString());
        Map<String, String> request = Map.of("AWS_ENDPOINT_URL", endpoint);
        try (ObjectSource source = provider.open(context("s3://bucket/m", request, environment))) {
            source.list();
        }
        assertThat(seen.take().getRequestHeaders()).doesNotContainKey("Authorization");
    }

    @Test
    void aFailedListingIsRepeatedAndAFullyFailedOneIsUnavailable() throws Exception {
        AtomicInteger calls = new AtomicInteger();
        String endpoint = fake(exchange ->
                answer(exchange, calls.incrementAndGet() == 2 ? 200 : 503, calls.get() == 2 ? ONE : "<Error/>"));
        Map<String, String> request = Map.of("AWS_ENDPOINT_URL", endpoint, "awsAnonymousCredential", "true");
        try (ObjectSource source = provider.open(context("s3://bucket/m", request, Map.of()))) {
            assertThat(source.list().items()).hasSize(1);
            assertThat(calls).hasValue(2);
            assertThatThrownBy(source::list)
                    .isInstanceOfSatisfying(
                            ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.UNAVAILABLE));
            assertThat(calls).hasValue(5);
        }
    }

    @Test
    void aCancellationEndsARequestThatWaitsForItsResponse() throws Exception {
        CountDownLatch release = new CountDownLatch(1);
        String endpoint = fake(exchange -> {
            try {
                release.await();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
            exchange.close();
        });
        Map<String, String> request = Map.of("AWS_ENDPOINT_URL", endpoint, "awsAnonymousCredential", "true");
        StorageContext context = context("s3://bucket/m", request, Map.of());
        try (ObjectSource source = provider.open(context)) {
            Thread canceller = io.nereid.base.Threads.named("canceller").newThread(() -> {
                try {
                    if (seen.poll(30, TimeUnit.SECONDS) != null) {
                        context.cancel().cancel();
                    }
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
            });
            canceller.start();
            long before = System.nanoTime();
            assertThatThrownBy(source::list)
                    .isInstanceOfSatisfying(
                            ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.CANCELLED));
            // The read timeout is 20 s.
            assertThat(Duration.ofNanos(System.nanoTime() - before)).isLessThan(Duration.ofSeconds(15));
            canceller.join();
        } finally {
            release.countDown();
        }
    }

    @Test
    void aContentWithAnotherChecksumThanTheStoreGivesIsRejected() throws Exception {
        String endpoint = fake(exchange -> {
            if (exchange.getRequestURI().getQuery() != null
                    && exchange.getRequestURI().getQuery().contains("list-type")) {
                answer(exchange, 200, ONE);
                return;
            }
            exchange.getResponseHeaders().set("x-amz-checksum-crc32c", "AAAAAA==");
            exchange.getResponseHeaders().set("ETag", "\"900150983cd24fb0d6963f7d28e17f72\"");
            answer(exchange, 200, "abc");
        });
        Map<String, String> request =
                new HashMap<>(Map.of("AWS_ENDPOINT_URL", endpoint, "awsAnonymousCredential", "true"));
        request.put("AWS_RESPONSE_CHECKSUM_VALIDATION", "when_supported");
        try (ObjectSource source = provider.open(context("s3://bucket/m", request, Map.of()));
                ObjectStream stream = source.list().items().get(0).reader().open(0, -1, new CancellationToken())) {
            assertThatThrownBy(() -> stream.read(new byte[10], 10))
                    .isInstanceOfSatisfying(
                            ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.DATA_LOSS));
        }
    }

    /**
     * A profile with a role needs parts of the SDK that it looks for by itself. As in the server, the provider has a class
     * loader of its own, with the interfaces of the server alone, and the thread has another one.
     */
    @Test
    void aRoleOfAProfileIsAssumedInTheClassLoaderOfAPlugin() throws Exception {
        String endpoint = fake(
                exchange -> answer(exchange, 200, exchange.getRequestMethod().equals("POST") ? ROLE : ONE));
        Path config = Files.writeString(
                directory.resolve("config"),
                "[profile models]\nrole_arn = arn:aws:iam::123456789012:role/m\nsource_profile = base\n"
                        + "region = us-east-1\n[profile base]\naws_access_key_id = BASE\naws_secret_access_key = s\n");
        Map<String, String> request =
                Map.of("AWS_ENDPOINT_URL", endpoint, "AWS_PROFILE", "models", "AWS_CONFIG_FILE", config.toString());
        String before = System.setProperty("aws.endpointUrlSts", endpoint);
        Thread thread = Thread.currentThread();
        ClassLoader own = thread.getContextClassLoader();
        try (URLClassLoader loader = new URLClassLoader("plugin s3", jars(), new Interfaces())) {
            StorageProvider isolated = ServiceLoader.load(StorageProvider.class, loader)
                    .findFirst()
                    .orElseThrow();
            assertThat(isolated.getClass()).isNotEqualTo(S3StorageProvider.class);
            thread.setContextClassLoader(ClassLoader.getPlatformClassLoader());
            try (ObjectSource source = isolated.open(context("s3://bucket/m", request, Map.of()))) {
                assertThat(source.list().items()).hasSize(1);
            }
        } finally {
            thread.setContextClassLoader(own);
            if (before == null) {
                System.clearProperty("aws.endpointUrlSts");
            } else {
                System.setProperty("aws.endpointUrlSts", before);
            }
        }
        assertThat(seen.take().getRequestHeaders().getFirst("Authorization")).contains("Credential=BASE/");
        assertThat(seen.take().getRequestHeaders().getFirst("Authorization")).contains("Credential=ASSUMED/");
    }

    private static final String ROLE = "<AssumeRoleResponse><AssumeRoleResult><Credentials>"
            + "<AccessKeyId>ASSUMED</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken>"
            + "<Expiration>2099-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>";

    private static URL[] jars() throws Exception {
        List<URL> jars = new ArrayList<>();
        String path = System.getProperty("surefire.test.class.path", System.getProperty("java.class.path"));
        for (String entry : path.split(File.pathSeparator)) {
            if (entry.contains("awssdk")
                    || entry.contains("reactivestreams")
                    || entry.matches(".*storage/s3/target/classes")) {
                jars.add(Path.of(entry).toUri().toURL());
            }
        }
        return jars.toArray(URL[]::new);
    }

    /** Exposes the interfaces that a plugin is compiled against. */
    private static final class Interfaces extends ClassLoader {
        Interfaces() {
            super("interfaces", ClassLoader.getPlatformClassLoader());
        }

        @Override
        protected Class<?> findClass(String name) throws ClassNotFoundException {
            if (name.startsWith("io.nereid.base.")
                    || name.startsWith("io.nereid.storage.spi.")
                    || name.startsWith("org.slf4j.")) {
                return Class.forName(name);
            }
            throw new ClassNotFoundException(name);
        }
    }

    @Test
    void theCertificatesOfTheSettingsAndOfTheClusterAreRead() throws Exception {
        Path bundle = Files.writeString(directory.resolve("cabundle.crt"), "-----BEGIN CERTIFICATE-----\nx\n");
        for (Map<String, String> settings : List.of(
                Map.of("AWS_CA_BUNDLE", bundle.toString()),
                Map.of("CA_BUNDLE_CONFIGMAP_NAME", "bundle", "CA_BUNDLE_VOLUME_MOUNT_POINT", directory.toString()))) {
            assertThatThrownBy(() -> provider.open(context("s3://bucket/m", Map.of(), settings)))
                    .isInstanceOfSatisfying(
                            ServingException.class,
                            e -> assertThat(e.describe()).contains("certificates of the storage settings"));
        }
        assertThatThrownBy(() ->
                        provider.open(context("s3://bucket/m", Map.of("AWS_CA_BUNDLE_CONFIGMAP", "bundle"), Map.of())))
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.describe()).contains("s3-cabundle"));
    }

    @Test
    void withoutTheProviderTheServersOwnClientReads() throws Exception {
        try (Storage plain = new Storage(Given.options(directory.resolve("plain")), Clock.system(), List.of());
                StorageLease stored = Given.fetch(plain, "s3://bucket/single.bin", credentials())) {
            assertThat(Given.files(stored.path())).containsOnlyKeys("single.bin");
        }
    }
}
