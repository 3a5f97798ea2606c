// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.grpc.CallOptions;
import io.grpc.ManagedChannel;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.netty.GrpcSslContexts;
import io.grpc.netty.NegotiationType;
import io.grpc.netty.NettyChannelBuilder;
import io.grpc.stub.ClientCalls;
import io.nereid.base.ServingException;
import io.nereid.transport.ServerOptions.Purpose;
import io.nereid.transport.api.ForwardOptions;
import io.nereid.transport.proxy.PooledUpstreamClient;
import io.nereid.transport.server.Server;
import io.nereid.transport.tls.Identity;
import io.nereid.transport.tls.TlsOptions;
import io.nereid.transport.tls.TlsOptions.ClientVerify;
import io.nereid.transport.tls.TlsOptions.Pem;
import io.netty.handler.ssl.SslContextBuilder;
import io.netty.handler.ssl.SslProvider;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.cert.X509Certificate;
import java.time.Duration;
import java.util.List;
import java.util.Random;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.UnaryOperator;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLException;
import javax.net.ssl.SSLSocket;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Clients of the field over TLS: the JDK's for HTTP/1.1 and HTTP/2, and grpc-java. */
@SuppressWarnings("NullAway.Init") // set before all tests
class TlsTest {
    private static final Duration LONG = Duration.ofSeconds(30);
    private static Identity authority;
    private static Identity server;
    private static Identity client;
    private static Identity stranger;

    @BeforeAll
    static void makeKeys() throws GeneralSecurityException {
        authority = Identity.authority("test authority");
        server = authority.issue("server", "EC");
        client = authority.issue("alice", "RSA");
        stranger = Identity.authority("other authority").issue("mallory", "EC");
    }

    private static TlsOptions options() throws GeneralSecurityException {
        return TlsOptions.of(Pem.text(server.certificatePem()), Pem.text(server.keyPem()));
    }

    private static TlsOptions verifying(ClientVerify verify) throws GeneralSecurityException {
        return options().withClients(Pem.text(authority.certificatePem()), verify);
    }

    private static UnaryOperator<ServerOptions.Builder> encrypted(TlsOptions tls) {
        return o -> only(tls).eventLoops(1);
    }

    private static ServerOptions.Builder only(TlsOptions tls) {
        return ServerOptions.builder().listen("127.0.0.1", 0, Purpose.ALL, tls);
    }

    private static HttpClient http(SSLContext context, HttpClient.Version version) {
        return HttpClient.newBuilder()
                .sslContext(context)
                .version(version)
                .connectTimeout(LONG)
                .build();
    }

    private static HttpRequest.Builder to(Rig rig, String path) {
        return HttpRequest.newBuilder(URI.create("https://localhost:" + rig.port + path))
                .timeout(LONG);
    }

    private static String get(HttpClient http, Rig rig, String path) throws IOException, InterruptedException {
        return http.send(to(rig, path).build(), HttpResponse.BodyHandlers.ofString())
                .body();
    }

    private static int asked(Rig rig, PooledUpstreamClient.Trust trust) throws Exception {
        PooledUpstreamClient.Options options = PooledUpstreamClient.Options.DEFAULT.withTrust(trust);
        try (PooledUpstreamClient relay = new PooledUpstreamClient(options)) {
            var answer = relay.send(
                            "GET",
                            "https://localhost:" + rig.port + "/ok",
                            List.of(),
                            new byte[0],
                            ForwardOptions.DEFAULT)
                    .toCompletableFuture()
                    .get(LONG.toSeconds(), TimeUnit.SECONDS);
            answer.body().release();
            return answer.status();
        }
    }

    @Test
    void httpsVerifiesTheTrustedCertificates() throws Exception {
        try (Rig rig = new Rig(encrypted(options()))) {
            String pem = authority.certificatePem();
            assertThat(asked(rig, PooledUpstreamClient.Trust.of("a test", pem))).isEqualTo(200);
            assertThat(asked(rig, PooledUpstreamClient.Trust.ANY_CERTIFICATE)).isEqualTo(200);
            assertThatThrownBy(() -> asked(rig, PooledUpstreamClient.Trust.JVM))
                    .hasCauseInstanceOf(ServingException.class);
            String other = stranger.certificatePem();
            assertThatThrownBy(() -> asked(rig, PooledUpstreamClient.Trust.of("a test", other)))
                    .hasCauseInstanceOf(ServingException.class);
            assertThatThrownBy(() -> PooledUpstreamClient.Trust.of("a test", "nothing"))
                    .hasMessageContaining("a test");
        }
    }

    @ParameterizedTest
    @EnumSource(HttpClient.Version.class)
    void httpIsSpokenInTheVersionThatIsNegotiated(HttpClient.Version version) throws Exception {
        try (Rig rig = new Rig(encrypted(options()))) {
            HttpClient http = http(authority.client(null), version);
            HttpResponse<String> ok = http.send(to(rig, "/ok").build(), HttpResponse.BodyHandlers.ofString());
            assertThat(ok.version()).isEqualTo(version);
            assertThat(ok.body()).isEqualTo("{\"ok\":true}");
            for (int size : new int[] {0, 1, 16_383, 16_384, 100_000, 5_000_000}) {
                byte[] body = new byte[size];
                new Random(size).nextBytes(body);
                assertThat(http.send(
                                        to(rig, "/echo")
                                                .POST(HttpRequest.BodyPublishers.ofByteArray(body))
                                                .build(),
                                        HttpResponse.BodyHandlers.ofByteArray())
                                .body())
                        .as("body of %d", size)
                        .isEqualTo(body);
                assertThat(http.send(
                                        to(rig, "/echo-elsewhere")
                                                .POST(HttpRequest.BodyPublishers.ofInputStream(
                                                        () -> new ByteArrayInputStream(body)))
                                                .build(),
                                        HttpResponse.BodyHandlers.ofByteArray())
                                .body())
                        .as("chunked body of %d", size)
                        .isEqualTo(body);
            }
            assertThat(get(http, rig, "/stream/3")).isEqualTo("<0,1,2,");
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"TLSv1.2", "TLSv1.3"})
    void clientsWithoutAlpnAreUnderstoodByTheirFirstBytes(String version) throws Exception {
        try (Rig rig = new Rig(encrypted(options()));
                SSLSocket socket =
                        (SSLSocket) authority.client(null).getSocketFactory().createSocket("127.0.0.1", rig.port)) {
            socket.setEnabledProtocols(new String[] {version});
            socket.getOutputStream().write("GET /ok HTTP/1.1\r\nhost: x\r\n\r\n".getBytes(StandardCharsets.US_ASCII));
            byte[] head = socket.getInputStream().readNBytes(15);
            assertThat(new String(head, StandardCharsets.US_ASCII)).isEqualTo("HTTP/1.1 200 OK");
            assertThat(socket.getSession().getProtocol()).isEqualTo(version);
            assertThat(socket.getApplicationProtocol()).isEmpty();
        }
    }

    @Test
    void onlyTheVersionsAllowedAreSpoken() throws Exception {
        assertThatThrownBy(() -> options().withProtocols(List.of("TLSv1.1")))
                .hasMessageContaining("TLS version 'TLSv1.1' is not offered");
        try (Rig rig = new Rig(encrypted(options().withProtocols(List.of("TLSv1.3"))));
                SSLSocket old =
                        (SSLSocket) authority.client(null).getSocketFactory().createSocket("127.0.0.1", rig.port)) {
            old.setEnabledProtocols(new String[] {"TLSv1.2"});
            assertThatThrownBy(old::startHandshake).isInstanceOf(SSLException.class);
            assertThat(get(http(authority.client(null), HttpClient.Version.HTTP_2), rig, "/ok"))
                    .contains("true");
            assertThat(rig.server.stats().failedHandshakes()).isEqualTo(1);
        }
    }

    // ---- gRPC

    private static final MethodDescriptor.Marshaller<byte[]> BYTES = new MethodDescriptor.Marshaller<>() {
        @Override
        public InputStream stream(byte[] value) {
            return new ByteArrayInputStream(value);
        }

        @Override
        public byte[] parse(InputStream stream) {
            try {
                return stream.readAllBytes();
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }
    };

    private static ManagedChannel grpc(Rig rig, @Nullable Identity own) throws SSLException {
        SslContextBuilder tls = SslContextBuilder.forClient().trustManager(authority.certificate);
        if (own != null) {
            tls.keyManager(own.key, own.certificate);
        }
        return NettyChannelBuilder.forAddress("localhost", rig.port)
                .negotiationType(NegotiationType.TLS)
                .sslContext(GrpcSslContexts.configure(tls, SslProvider.JDK).build())
                .maxInboundMessageSize(100 << 20)
                .build();
    }

    private static final MethodDescriptor<byte[], byte[]> UNARY = MethodDescriptor.newBuilder(BYTES, BYTES)
            .setFullMethodName("t.T/Unary")
            .setType(MethodDescriptor.MethodType.UNARY)
            .build();

    private static byte[] unary(ManagedChannel channel, byte[] message) {
        return ClientCalls.blockingUnaryCall(
                channel, UNARY, CallOptions.DEFAULT.withDeadlineAfter(20, TimeUnit.SECONDS), message);
    }

    private static Status refusal(ManagedChannel channel) {
        try {
            unary(channel, new byte[3]);
            return Status.OK;
        } catch (StatusRuntimeException e) {
            return e.getStatus();
        }
    }

    @Test
    void grpcAndHttpShareAnEncryptedPort() throws Exception {
        try (Rig rig = new Rig(encrypted(options()))) {
            ManagedChannel channel = grpc(rig, null);
            byte[] message = new byte[3_000_000];
            new Random(3).nextBytes(message);
            assertThat(unary(channel, message)).isEqualTo(message);
            assertThat(get(http(authority.client(null), HttpClient.Version.HTTP_1_1), rig, "/ok"))
                    .contains("true");
            assertThat(unary(channel, new byte[7])).hasSize(7);
            channel.shutdownNow();
        }
    }

    // ---- clients with certificates

    @Test
    void clientsWithoutAGoodCertificateAreTurnedAwayWhereOneIsRequired() throws Exception {
        BlockingQueue<AccessLog.Entry> log = new LinkedBlockingQueue<>();
        TlsOptions required = verifying(ClientVerify.REQUIRED);
        try (Rig rig = new Rig(o -> only(required).eventLoops(1).accessLog(log::add))) {
            ManagedChannel known = grpc(rig, client);
            assertThat(unary(known, new byte[5])).hasSize(5);
            assertThat(entry(log)).isEqualTo("CN=alice");
            ManagedChannel anonymous = grpc(rig, null);
            assertThat(refusal(anonymous).getCode()).isEqualTo(Status.Code.UNAVAILABLE);
            ManagedChannel foreign = grpc(rig, stranger);
            assertThat(refusal(foreign).getCode()).isEqualTo(Status.Code.UNAVAILABLE);
            assertThat(unary(known, new byte[6])).hasSize(6);
            assertThat(entry(log)).isEqualTo("CN=alice");
            assertThat(rig.server.stats().failedHandshakes()).isGreaterThanOrEqualTo(2);
            for (HttpClient.Version version : HttpClient.Version.values()) {
                assertThat(get(http(authority.client(client), version), rig, "/ok"))
                        .contains("true");
                assertThat(entry(log)).isEqualTo("CN=alice");
                HttpClient bare = http(authority.client(null), version);
                assertThatThrownBy(() -> get(bare, rig, "/ok")).isInstanceOf(IOException.class);
            }
            for (ManagedChannel channel : List.of(known, anonymous, foreign)) {
                channel.shutdownNow();
            }
        }
    }

    private static @Nullable String entry(BlockingQueue<AccessLog.Entry> log) throws InterruptedException {
        return java.util.Objects.requireNonNull(log.poll(10, TimeUnit.SECONDS)).peer();
    }

    @Test
    void whereACertificateIsOptionalItIsCheckedOnlyWhenShown() throws Exception {
        BlockingQueue<AccessLog.Entry> log = new LinkedBlockingQueue<>();
        TlsOptions optional = verifying(ClientVerify.OPTIONAL);
        try (Rig rig = new Rig(o -> only(optional).eventLoops(1).accessLog(log::add))) {
            assertThat(get(http(authority.client(null), HttpClient.Version.HTTP_1_1), rig, "/ok"))
                    .contains("true");
            assertThat(entry(log)).isNull();
            assertThat(get(http(authority.client(client), HttpClient.Version.HTTP_1_1), rig, "/ok"))
                    .contains("true");
            assertThat(entry(log)).isEqualTo("CN=alice");
        }
        assertThatThrownBy(() -> options()
                        .withClients(Pem.text(""), ClientVerify.REQUIRED)
                        .check())
                .hasMessageContaining("the client authorities")
                .hasMessageContaining("holds no certificate");
        TlsOptions anonymous = options();
        assertThatThrownBy(() -> new TlsOptions(
                        anonymous.certificate(),
                        anonymous.key(),
                        null,
                        ClientVerify.REQUIRED,
                        anonymous.protocols(),
                        LONG,
                        LONG))
                .hasMessageContaining("no certificate authority is given");
    }

    // ---- certificates that change

    @Test
    void aNewCertificateIsTakenUpAndABadOneChangesNothing(@TempDir Path dir) throws Exception {
        Path certificate = dir.resolve("tls.crt");
        Path key = dir.resolve("tls.key");
        Files.writeString(certificate, server.certificatePem());
        Files.writeString(key, server.keyPem());
        TlsOptions tls = TlsOptions.of(Pem.file(certificate), Pem.file(key)).withReloadInterval(Duration.ofMillis(20));
        SSLContext trust = authority.client(null);
        try (Rig rig = new Rig(encrypted(tls));
                Socket open = trust.getSocketFactory().createSocket("127.0.0.1", rig.port)) {
            assertThat(shown((SSLSocket) open)).isEqualTo(server.certificate);
            Identity next = authority.issue("next", "RSA");
            Files.writeString(certificate, next.certificatePem()); // the key does not belong to it yet
            assertThat(stays(trust, rig, server.certificate)).isTrue();
            Files.writeString(key, next.oldKeyPem());
            awaitShown(trust, rig, next.certificate);
            Files.delete(key);
            assertThat(stays(trust, rig, next.certificate)).isTrue();
            Identity third = authority.issue("third", "EC");
            Files.writeString(certificate, third.certificatePem());
            Files.writeString(key, third.keyPem());
            awaitShown(trust, rig, third.certificate);
            // a connection from before the change stays open
            open.getOutputStream().write("GET /ok HTTP/1.1\r\nhost: x\r\n\r\n".getBytes(StandardCharsets.US_ASCII));
            assertThat(open.getInputStream().readNBytes(12))
                    .isEqualTo("HTTP/1.1 200".getBytes(StandardCharsets.US_ASCII));
        }
    }

    private static X509Certificate shown(SSLSocket socket) throws SSLException {
        return (X509Certificate) socket.getSession().getPeerCertificates()[0];
    }

    private static X509Certificate shown(SSLContext trust, Rig rig) throws IOException {
        try (SSLSocket socket = (SSLSocket) trust.getSocketFactory().createSocket("127.0.0.1", rig.port)) {
            return shown(socket);
        }
    }

    /** New connections for longer than several looks at the files. */
    private static boolean stays(SSLContext trust, Rig rig, X509Certificate expected) throws IOException {
        long from = System.nanoTime();
        while (System.nanoTime() - from < TimeUnit.MILLISECONDS.toNanos(150)) {
            if (!shown(trust, rig).equals(expected)) {
                return false;
            }
        }
        return true;
    }

    private static void awaitShown(SSLContext trust, Rig rig, X509Certificate expected) throws IOException {
        long from = System.nanoTime();
        while (!shown(trust, rig).equals(expected)) {
            assertThat(System.nanoTime() - from).isLessThan(LONG.toNanos());
        }
    }

    // ---- errors at the start

    private static void refuses(TlsOptions tls, String... texts) {
        assertThatThrownBy(() -> {
                    try (Server started = new Server(only(tls).build(), List.of())) {
                        started.start();
                    }
                })
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.describe()).contains(texts));
    }

    @Test
    void aServerThatCannotShowItsCertificateDoesNotStart(@TempDir Path dir) throws Exception {
        Path good = Files.writeString(dir.resolve("good.pem"), server.certificatePem() + server.keyPem());
        Path chain = Files.writeString(dir.resolve("chain.pem"), authority.certificatePem() + server.certificatePem());
        Path keystore = Files.write(dir.resolve("keys.p12"), new byte[] {0x30, 1, 2});
        Path absent = dir.resolve("absent.pem");
        TlsOptions.of(Pem.file(good), Pem.file(good)).check();
        refuses(
                TlsOptions.of(Pem.file(absent), Pem.file(good)),
                "'" + absent + "' cannot be read: there is no such file");
        refuses(
                TlsOptions.of(Pem.file(keystore), Pem.file(good)),
                "the server certificate in '" + keystore + "' holds no certificate: it is not in PEM form",
                "openssl pkcs12");
        refuses(
                TlsOptions.of(Pem.file(good), Pem.text(stranger.keyPem())),
                "the server key in the PEM text given does not belong to the certificate of CN=server",
                "give the key that the certificate was made for");
        refuses(
                TlsOptions.of(Pem.file(chain), Pem.file(good)),
                "does not belong to the certificate of CN=test authority",
                "the key belongs to the certificate of CN=server: put that first");
        assertThat(TlsOptions.of(Pem.file(good), Pem.text(server.keyPem())).toString())
                .contains("good.pem")
                .doesNotContain("PRIVATE");
    }

    // ---- clients that do not do as they should

    @Test
    void plainHttpGetsAnErrorThatAsksForTls() throws Exception {
        try (Rig rig = new Rig(encrypted(options()))) {
            try (Rig.Raw plain = rig.connect()) {
                Rig.Reply reply = plain.ask("GET /ok HTTP/1.1\r\nhost: x\r\n\r\n");
                assertThat(reply.status()).isEqualTo(400);
                assertThat(reply.text()).contains("this port requires TLS");
                assertThat(plain.closed()).isTrue();
            }
            try (RawHttp2 plain = new RawHttp2(rig.port)) {
                assertThat(plain.text()).startsWith("HTTP/1.1 400 ").contains("this port requires TLS");
            }
            try (Rig.Raw other = rig.connect()) {
                assertThat(other.send("\0\1\2\3").closed()).isTrue();
            }
            assertThat(get(http(authority.client(null), HttpClient.Version.HTTP_2), rig, "/ok"))
                    .contains("true");
        }
    }

    @Test
    void aGrpcClientWithoutTlsBacksOff() throws Exception {
        try (Rig rig = new Rig(encrypted(options()))) {
            ManagedChannel plain = NettyChannelBuilder.forAddress("localhost", rig.port)
                    .usePlaintext()
                    .build();
            try {
                Status status = Status.fromThrowable(catchThrowable(() -> ClientCalls.blockingUnaryCall(
                        plain,
                        UNARY,
                        CallOptions.DEFAULT.withWaitForReady().withDeadlineAfter(2500, TimeUnit.MILLISECONDS),
                        new byte[1])));
                assertThat(status.getCode()).isEqualTo(Status.Code.DEADLINE_EXCEEDED);
                // after about 0, 1 and 2.6 seconds, as gRPC's connection backoff says
                assertThat(rig.server.stats().accepted()).isBetween(1L, 4L);
            } finally {
                plain.shutdownNow();
            }
        }
    }

    @Test
    void tlsToAPlainPortIsClosedWithoutEffectOnOthers() throws Exception {
        try (Rig rig = new Rig();
                Rig.Raw plain = rig.connect()) {
            HttpClient http = http(authority.client(null), HttpClient.Version.HTTP_1_1);
            assertThatThrownBy(() -> get(http, rig, "/ok")).isInstanceOf(IOException.class);
            assertThat(plain.ask("GET /ok HTTP/1.1\r\nhost: x\r\n\r\n").status())
                    .isEqualTo(200);
            assertThat(rig.server.stats().rejected()).isPositive();
        }
    }

    @Test
    void aSlowHandshakeIsAbortedWithoutEffectOnOthers() throws Exception {
        TlsOptions tls = options().withHandshakeTimeout(Duration.ofMillis(200));
        try (Rig rig = new Rig(encrypted(tls))) {
            byte[] hello = clientHello();
            Rig.Raw[] slow = new Rig.Raw[50];
            for (int i = 0; i < slow.length; i++) {
                // some stop after the first byte, others in the middle, others before the last byte
                slow[i] = rig.connect().send(java.util.Arrays.copyOf(hello, 1 + i * (hello.length - 2) / slow.length));
            }
            HttpClient http = http(authority.client(null), HttpClient.Version.HTTP_1_1);
            assertThat(get(http, rig, "/ok")).contains("true");
            for (Rig.Raw connection : slow) {
                assertThat(connection.in.readAllBytes().length).isLessThan(100); // at most an alert
                connection.close();
            }
            assertThat(get(http, rig, "/ok")).contains("true");
            assertThat(rig.server.stats().failedHandshakes()).isEqualTo(slow.length);
        }
    }

    /** The first bytes that the JDK's client sends. */
    private static byte[] clientHello() throws Exception {
        try (ServerSocket listener = new ServerSocket(0);
                Socket out = new Socket("127.0.0.1", listener.getLocalPort());
                Socket in = listener.accept()) {
            SSLSocket client = (SSLSocket) authority
                    .client(null)
                    .getSocketFactory()
                    .createSocket(out, "localhost", listener.getLocalPort(), true);
            Thread thread = io.nereid.base.Threads.named("hello").newThread(() -> {
                try {
                    client.startHandshake();
                } catch (IOException e) {
                    // the other end has closed, as it should
                }
            });
            thread.start();
            byte[] head = in.getInputStream().readNBytes(5);
            byte[] rest = in.getInputStream().readNBytes((head[3] & 0xff) << 8 | head[4] & 0xff);
            in.close();
            thread.join();
            byte[] all = java.util.Arrays.copyOf(head, 5 + rest.length);
            System.arraycopy(rest, 0, all, 5, rest.length);
            return all;
        }
    }

    // ---- stopping, and odd ends

    @Test
    void encryptedConnectionsAreDrainedAsOthersAre() throws Exception {
        try (Rig rig = new Rig(encrypted(options()))) {
            HttpClient http = http(authority.client(null), HttpClient.Version.HTTP_1_1);
            assertThat(get(http, rig, "/ok")).contains("true"); // its connection is idle now
            ManagedChannel channel = grpc(rig, null);
            assertThat(unary(channel, new byte[2])).hasSize(2);
            try (Rig.Raw silent = rig.connect()) {
                assertThat(silent.socket.isConnected()).isTrue();
                assertThat(rig.server.drain(Duration.ofSeconds(20))).isTrue();
                assertThat(silent.closed()).isTrue();
            }
            assertThat(rig.server.stats().connections()).isZero();
            channel.shutdownNow();
        }
    }

    @Test
    void aRejectedBodyOverTlsStillGetsItsResponse() throws Exception {
        TlsOptions tls = options();
        try (Rig rig = new Rig(o -> only(tls).eventLoops(1).maxBodyBytes(1000))) {
            HttpClient http = http(authority.client(null), HttpClient.Version.HTTP_1_1);
            HttpResponse<String> refused = http.send(
                    to(rig, "/echo")
                            .POST(HttpRequest.BodyPublishers.ofByteArray(new byte[50_000]))
                            .build(),
                    HttpResponse.BodyHandlers.ofString());
            assertThat(refused.statusCode()).isEqualTo(413);
            assertThat(refused.body()).contains("1000 bytes");
        }
    }

    @Test
    void memoryOfEncryptedConnectionsIsGivenBack() throws Exception {
        TlsOptions tls = options();
        try (Rig rig = new Rig(encrypted(tls))) {
            HttpClient http = http(authority.client(null), HttpClient.Version.HTTP_1_1);
            for (int i = 0; i < 50; i++) {
                http.send(
                        to(rig, "/parts")
                                .POST(HttpRequest.BodyPublishers.ofByteArray(new byte[100_000]))
                                .build(),
                        HttpResponse.BodyHandlers.ofByteArray());
            }
            Rig.released(rig.options.budget());
        }
    }
}
