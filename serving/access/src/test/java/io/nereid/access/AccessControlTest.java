// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.access;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.nimbusds.jose.JWSAlgorithm;
import com.nimbusds.jose.JWSHeader;
import com.nimbusds.jose.crypto.ECDSASigner;
import com.nimbusds.jose.crypto.MACSigner;
import com.nimbusds.jose.jwk.Curve;
import com.nimbusds.jose.jwk.ECKey;
import com.nimbusds.jose.jwk.JWKMatcher;
import com.nimbusds.jose.jwk.JWKSelector;
import com.nimbusds.jose.jwk.JWKSet;
import com.nimbusds.jose.jwk.gen.ECKeyGenerator;
import com.nimbusds.jwt.JWTClaimsSet;
import com.nimbusds.jwt.PlainJWT;
import com.nimbusds.jwt.SignedJWT;
import com.sun.net.httpserver.HttpServer;
import io.nereid.access.config.JwtConfig;
import io.nereid.access.credential.ApiKey;
import io.nereid.access.credential.ApiKeyFile;
import io.nereid.access.credential.JwkSource;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.access.Caller;
import io.nereid.base.access.Operation;
import io.nereid.transport.api.access.ClientConnection;
import io.nereid.transport.api.access.RequestHead;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.Base64;
import java.util.Date;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The access policy over all kinds of credentials. */
class AccessControlTest {
    @TempDir
    Path dir;

    private AccessControl access;

    @AfterEach
    void stop() {
        if (access != null) {
            access.close();
        }
    }

    /** A request head. */
    private static final class Head implements RequestHead {
        final Map<String, String> headers = new LinkedHashMap<>();
        boolean grpc;

        Head(String... pairs) {
            for (int i = 0; i < pairs.length; i += 2) {
                headers.put(pairs[i], pairs[i + 1]);
            }
        }

        @Override
        public String method() {
            return "POST";
        }

        @Override
        public String path() {
            return "/v2/models/iris/infer";
        }

        @Override
        public @Nullable String authority() {
            return headers.getOrDefault("host", "localhost:8080");
        }

        @Override
        public @Nullable String header(String lowerCaseName) {
            return headers.get(lowerCaseName);
        }

        @Override
        public boolean grpc() {
            return grpc;
        }

        @Override
        public boolean hasHeader(String lowerCaseName, String value) {
            return value.equals(headers.get(lowerCaseName));
        }

        @Override
        public void headers(BiConsumer<String, String> each) {
            headers.forEach(each);
        }
    }

    /** A client. */
    private static final class Client implements ClientConnection {
        boolean local = true;
        boolean unix;
        String address = "127.0.0.1";

        @Nullable String subject;

        @Nullable Object known;

        @Override
        public SocketAddress remote() {
            return new InetSocketAddress(address, 5000);
        }

        @Override
        public boolean secure() {
            return subject != null;
        }

        @Override
        public boolean unixSocket() {
            return unix;
        }

        @Override
        public boolean serverIsLocal() {
            return local;
        }

        @Override
        public @Nullable String peer() {
            return subject;
        }

        @Override
        public @Nullable Object remembered() {
            return known;
        }

        @Override
        public void remember(@Nullable Object result) {
            known = result;
        }
    }

    private Client client = new Client();

    private void start(boolean open, String... restrictions) {
        access = new AccessControl(new AccessOptions(
                null, null, open, Set.of(), List.of(restrictions), List.of(restrictions), null, null, Clock.system()));
    }

    private String key(String name, List<String> roles, @Nullable Duration valid) {
        Instant now = Instant.ofEpochMilli(Clock.system().millis());
        ApiKey.Created made = ApiKey.create(name, roles, now, valid == null ? null : now.plus(valid));
        new ApiKeyFile(dir.resolve("keys.json")).update(keys -> {
            List<ApiKey> all = new java.util.ArrayList<>(keys);
            all.add(made.key());
            return all;
        });
        return made.text();
    }

    private void startWithKeys(String config) throws Exception {
        Path rules = Files.writeString(dir.resolve("access.yaml"), config);
        access = new AccessControl(new AccessOptions(
                dir.resolve("keys.json"),
                rules,
                false,
                Set.of(),
                List.of(),
                List.of(),
                null,
                dir.resolve("audit.json"),
                Clock.system()));
    }

    private Caller admit(Operation operation, @Nullable String model, String... headers) {
        return access.admit(new Head(headers), client, operation, model);
    }

    private ErrorCode refusal(Operation operation, @Nullable String model, String... headers) {
        try {
            Caller unused = admit(operation, model, headers);
            return ErrorCode.OK;
        } catch (ServingException e) {
            return e.code();
        }
    }

    @Test
    void withoutCredentialsLocalClientsMayManageAndOthersMayRead() {
        start(false);
        assertThat(refusal(Operation.MODEL_CONTROL, "iris")).isEqualTo(ErrorCode.OK);
        assertThat(refusal(Operation.SHARED_MEMORY, null)).isEqualTo(ErrorCode.OK);
        client.address = "192.0.2.7";
        assertThat(refusal(Operation.MODEL_CONTROL, "iris")).isEqualTo(ErrorCode.PERMISSION_DENIED);
        assertThat(refusal(Operation.INFERENCE, "iris")).isEqualTo(ErrorCode.OK);
        assertThat(refusal(Operation.STATISTICS, null)).isEqualTo(ErrorCode.OK);
        client.address = "127.0.0.1";
        client.local = false;
        for (Operation guarded : List.of(
                Operation.MODEL_CONTROL,
                Operation.CONFIGURE_LOGGING,
                Operation.CONFIGURE_TRACE,
                Operation.SHARED_MEMORY,
                Operation.CONTROL,
                Operation.CONTROL_READ)) {
            assertThat(refusal(guarded, null)).as("%s", guarded).isEqualTo(ErrorCode.PERMISSION_DENIED);
        }
    }

    @Test
    void aProxyOrAWebPageIsNotALocalClient() {
        start(false);
        for (String[] headers : new String[][] {
            {"forwarded", "for=1.2.3.4"},
            {"via", "1.1 x"},
            {"x-forwarded-for", "1.2.3.4"},
            {"x-forwarded-anything", ""},
            {"origin", "http://evil.example"},
            {"origin", "null"},
            {"origin", "https://localhost:8080"},
            {"origin", "http://localhost:3000"},
            {"host", "evil.example"},
            {"host", "localhost.evil.example:8080"},
            {"host", "169.254.169.254"},
            {"host", "0.0.0.0:8080"}
        }) {
            assertThat(refusal(Operation.MODEL_CONTROL, null, headers))
                    .as(String.join(": ", headers))
                    .isEqualTo(ErrorCode.PERMISSION_DENIED);
        }
        assertThat(refusal(Operation.MODEL_CONTROL, null, "origin", "http://localhost:8080"))
                .isEqualTo(ErrorCode.OK);
        assertThat(refusal(Operation.MODEL_CONTROL, null, "host", "[::1]:8080")).isEqualTo(ErrorCode.OK);
    }

    @Test
    void theModeOfAUnixSocketDecides() {
        start(false);
        client.unix = true;
        client.local = false;
        assertThat(refusal(Operation.MODEL_CONTROL, null, "host", "anything")).isEqualTo(ErrorCode.OK);
        assertThat(refusal(Operation.MODEL_CONTROL, null, "x-forwarded-for", "1.2.3.4"))
                .isEqualTo(ErrorCode.PERMISSION_DENIED);
    }

    @Test
    void openManagementIsOpenToEveryone() {
        start(true);
        client.address = "192.0.2.7";
        client.local = false;
        assertThat(refusal(Operation.MODEL_CONTROL, null)).isEqualTo(ErrorCode.OK);
    }

    @Test
    void aRestrictedApiNeedsItsHeaderInItsProtocol() {
        start(false, "inference,model-repository:X-Key=secret");
        assertThat(refusal(Operation.INFERENCE, "iris")).isEqualTo(ErrorCode.PERMISSION_DENIED);
        assertThat(refusal(Operation.INFERENCE, "iris", "x-key", "secreT")).isEqualTo(ErrorCode.PERMISSION_DENIED);
        assertThat(refusal(Operation.INFERENCE, "iris", "x-key", "secret")).isEqualTo(ErrorCode.OK);
        client.local = false;
        assertThat(refusal(Operation.MODEL_CONTROL, "iris", "x-key", "secret")).isEqualTo(ErrorCode.OK);
        assertThat(refusal(Operation.CONFIGURE_LOGGING, null, "x-key", "secret"))
                .isEqualTo(ErrorCode.PERMISSION_DENIED);
        assertThat(refusal(Operation.METADATA, "iris")).isEqualTo(ErrorCode.OK);
        Head call = new Head("x-key", "secret");
        call.grpc = true;
        assertThatThrownBy(() -> access.admit(call, client, Operation.INFERENCE, null))
                .hasMessage("This protocol is restricted, expecting header 'triton-grpc-protocol-x-key'");
        call.headers.put("triton-grpc-protocol-x-key", "secret");
        assertThat(access.admit(call, client, Operation.INFERENCE, null)).isNotNull();
    }

    @Test
    void aContentTypeDoesNotChooseTheRestrictionsOfAnotherProtocol() {
        access = new AccessControl(new AccessOptions(
                null, null, false, Set.of(), List.of("inference:x-key=secret"), List.of(), null, null, Clock.system()));
        assertThat(refusal(Operation.INFERENCE, "iris", "content-type", "application/grpc"))
                .isEqualTo(ErrorCode.PERMISSION_DENIED);
    }

    @Test
    void aRefusalIsRecordedUnderTheCredentialsOfItsOwnRequest() throws Exception {
        String ops = key("ops", List.of("admin"), null);
        startWithKeys("{}");
        assertThat(refusal(Operation.MODEL_CONTROL, "m", "x-api-key", ops)).isEqualTo(ErrorCode.OK);
        assertThat(refusal(Operation.MODEL_CONTROL, "m")).isEqualTo(ErrorCode.UNAUTHENTICATED);
        access.close();
        assertThat(Files.readString(dir.resolve("audit.json")))
                .contains("\"caller\":\"anonymous\"")
                .doesNotContain("ops");
        access = null;
    }

    @Test
    void malformedRestrictionsAreRefusedWithoutTheirSecret() {
        assertThatThrownBy(() -> start(false, "nothing:a=b")).hasMessageContaining("unknown restricted api 'nothing'");
        assertThatThrownBy(() -> start(false, "health")).hasMessageContaining("is not of the form");
        assertThatThrownBy(() -> start(false, ":a=secret"))
                .hasMessageContaining("is not of the form")
                .hasMessageNotContaining("secret");
        assertThatThrownBy(() -> start(false, "health,health:a=b"))
                .hasMessageContaining("restricted api 'health' can not be specified in multiple config groups");
    }

    @Test
    void aKeyHasItsRolesForTheirModels() throws Exception {
        String app = key("app", List.of("narrow"), null);
        startWithKeys("""
                roles:
                  narrow: {permissions: [infer, metadata], models: [iris, 'fraud-*']}
                """);
        assertThat(refusal(Operation.INFERENCE, "iris")).isEqualTo(ErrorCode.UNAUTHENTICATED);
        assertThat(refusal(Operation.HEALTH, null)).isEqualTo(ErrorCode.OK);
        String[] bearer = {"authorization", "Bearer " + app};
        assertThat(admit(Operation.INFERENCE, "iris", bearer).name()).isEqualTo("app");
        assertThat(refusal(Operation.INFERENCE, "fraud-2", bearer)).isEqualTo(ErrorCode.OK);
        assertThat(refusal(Operation.INFERENCE, "other", bearer)).isEqualTo(ErrorCode.PERMISSION_DENIED);
        assertThat(refusal(Operation.INFERENCE, null, bearer)).isEqualTo(ErrorCode.OK);
        assertThat(refusal(Operation.MODEL_CONTROL, "iris", bearer)).isEqualTo(ErrorCode.PERMISSION_DENIED);
        assertThat(refusal(Operation.INFERENCE, "iris", "x-api-key", app)).isEqualTo(ErrorCode.OK);
        String basic = Base64.getEncoder().encodeToString(("any:" + app).getBytes(StandardCharsets.UTF_8));
        assertThat(refusal(Operation.INFERENCE, "iris", "authorization", "Basic " + basic))
                .isEqualTo(ErrorCode.OK);
    }

    @Test
    void expiredRevokedAndForgedKeysAreRefused() throws Exception {
        String expired = key("old", List.of("admin"), Duration.ofSeconds(-1));
        String good = key("good", List.of("admin"), null);
        startWithKeys("{}");
        assertThat(refusal(Operation.INFERENCE, "m", "x-api-key", expired)).isEqualTo(ErrorCode.UNAUTHENTICATED);
        assertThat(refusal(Operation.INFERENCE, "m", "x-api-key", good)).isEqualTo(ErrorCode.OK);
        for (String wrong : List.of(
                good.substring(0, good.length() - 1) + (good.endsWith("0") ? "1" : "0"), good + "0", "nrd_", "", "x")) {
            client = new Client();
            assertThat(refusal(Operation.INFERENCE, "m", "x-api-key", wrong))
                    .as(wrong)
                    .isIn(ErrorCode.UNAUTHENTICATED, ErrorCode.RESOURCE_EXHAUSTED);
        }
        assertThat(refusal(Operation.INFERENCE, "m", "x-api-key", good)).isEqualTo(ErrorCode.OK);
        new ApiKeyFile(dir.resolve("keys.json")).update(keys -> List.of());
        access.reload();
        assertThat(refusal(Operation.INFERENCE, "m", "x-api-key", good))
                .isIn(ErrorCode.UNAUTHENTICATED, ErrorCode.RESOURCE_EXHAUSTED);
    }

    @Test
    void aWrongFileLeavesTheRulesFromBeforeInForce() throws Exception {
        String app = key("app", List.of("client"), null);
        startWithKeys("{}");
        Files.writeString(dir.resolve("access.yaml"), "anonymus: [admin]");
        Files.writeString(dir.resolve("keys.json"), "{");
        access.reload();
        assertThat(refusal(Operation.INFERENCE, "m", "x-api-key", app)).isEqualTo(ErrorCode.OK);
        assertThat(refusal(Operation.MODEL_CONTROL, "m")).isEqualTo(ErrorCode.UNAUTHENTICATED);
    }

    @Test
    void aCertificateHasTheRolesOfItsSubject() throws Exception {
        startWithKeys("""
                bindings:
                  - {certificate: 'CN=ops,*', roles: [manager]}
                """);
        client.subject = "CN=ops,O=acme";
        assertThat(admit(Operation.MODEL_CONTROL, "m").name()).isEqualTo("CN=ops,O=acme");
        client = new Client();
        client.subject = "CN=app,O=acme";
        assertThat(refusal(Operation.MODEL_CONTROL, "m")).isEqualTo(ErrorCode.UNAUTHENTICATED);
    }

    // ---- tokens

    private static JWTClaimsSet.Builder claims() {
        return new JWTClaimsSet.Builder()
                .issuer("https://issuer.example")
                .audience("nereid")
                .subject("alice")
                .claim("groups", List.of("ml-team", "other"))
                .expirationTime(
                        Date.from(Instant.ofEpochMilli(Clock.system().millis()).plusSeconds(300)));
    }

    private static String signed(ECKey key, JWTClaimsSet claims) throws Exception {
        SignedJWT token = new SignedJWT(
                new JWSHeader.Builder(JWSAlgorithm.ES256).keyID(key.getKeyID()).build(), claims);
        token.sign(new ECDSASigner(key));
        return "Bearer " + token.serialize();
    }

    private void startWithTokens(ECKey... keys) throws Exception {
        Files.writeString(dir.resolve("jwks.json"), jwks(keys));
        startWithKeys("""
                tokens:
                  - {issuer: 'https://issuer.example', audience: nereid, jwks: jwks.json}
                bindings:
                  - {claim: groups, value: ml-team, roles: [client]}
                """);
    }

    private ErrorCode token(String authorization) {
        client = new Client();
        return refusal(Operation.INFERENCE, "m", "authorization", authorization);
    }

    @Test
    void aTokenIsVerifiedInEveryPart() throws Exception {
        ECKey key = new ECKeyGenerator(Curve.P_256).keyID("a").generate();
        ECKey other = new ECKeyGenerator(Curve.P_256).keyID("a").generate();
        startWithTokens(key);
        assertThat(token(signed(key, claims().build()))).isEqualTo(ErrorCode.OK);
        assertThat(refusal(Operation.MODEL_CONTROL, "m", "authorization", signed(key, claims().build())))
                .isEqualTo(ErrorCode.PERMISSION_DENIED);
        Set<ErrorCode> refused = Set.of(ErrorCode.UNAUTHENTICATED, ErrorCode.RESOURCE_EXHAUSTED);
        assertThat(token(signed(other, claims().build()))).isIn(refused);
        assertThat(token(signed(key, claims().audience("another").build()))).isIn(refused);
        assertThat(token(signed(key, claims().issuer("https://evil.example").build())))
                .isIn(refused);
        assertThat(token(signed(
                        key,
                        claims().expirationTime(Date.from(
                                        Instant.ofEpochMilli(Clock.system().millis())
                                                .minusSeconds(120)))
                                .build())))
                .isIn(refused);
        assertThat(token(signed(
                        key,
                        claims().expirationTime(Date.from(
                                        Instant.ofEpochMilli(Clock.system().millis())
                                                .minusSeconds(30)))
                                .build())))
                .as("within the clock skew")
                .isEqualTo(ErrorCode.OK);
        assertThat(token(signed(
                        key,
                        claims().notBeforeTime(Date.from(
                                        Instant.ofEpochMilli(Clock.system().millis())
                                                .plusSeconds(120)))
                                .build())))
                .isIn(refused);
        assertThat(token(signed(key, claims().expirationTime(null).build()))).isIn(refused);
        assertThat(token("Bearer " + new PlainJWT(claims().build()).serialize()))
                .as("alg none")
                .isIn(refused);
        SignedJWT confused = new SignedJWT(new JWSHeader(JWSAlgorithm.HS256), claims().build());
        confused.sign(new MACSigner(key.toPublicJWK().toString().getBytes(StandardCharsets.UTF_8)));
        assertThat(token("Bearer " + confused.serialize()))
                .as("the public key as an HMAC secret")
                .isIn(refused);
        assertThat(token(signed(key, claims().claim("groups", List.of("other")).build())))
                .as("a valid token without a role")
                .isEqualTo(ErrorCode.PERMISSION_DENIED);
    }

    /** Serves documents by path over HTTP; one that is absent is a 503. */
    private static HttpServer issuer(Map<String, String> documents) throws IOException {
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.createContext("/", x -> {
            String document = documents.get(x.getRequestURI().getPath());
            if (document != null && document.startsWith("http")) {
                x.getResponseHeaders().add("location", document);
                x.sendResponseHeaders(302, -1);
            } else if (document == null) {
                x.sendResponseHeaders(503, -1);
            } else {
                byte[] bytes = document.getBytes(StandardCharsets.UTF_8);
                x.sendResponseHeaders(200, bytes.length);
                x.getResponseBody().write(bytes);
            }
            x.close();
        });
        server.start();
        return server;
    }

    private static String jwks(ECKey... keys) {
        return new JWKSet(List.of((com.nimbusds.jose.jwk.JWK[]) keys)).toString();
    }

    /** The answer to a token once it is the expected one, or after ten seconds. */
    private ErrorCode eventually(ErrorCode expected, String authorization) throws InterruptedException {
        Clock clock = Clock.system();
        long due = clock.nanos() + Duration.ofSeconds(10).toNanos();
        ErrorCode code = token(authorization);
        while (code != expected && clock.nanos() - due < 0) {
            boolean unused = new CountDownLatch(1).await(20, TimeUnit.MILLISECONDS);
            code = token(authorization);
        }
        return code;
    }

    @Test
    void theKeysAreFoundAtTheIssuer() throws Exception {
        ECKey first = new ECKeyGenerator(Curve.P_256).keyID("a").generate();
        ECKey second = new ECKeyGenerator(Curve.P_256).keyID("b").generate();
        Map<String, String> documents = new ConcurrentHashMap<>();
        HttpServer server = issuer(documents);
        try {
            String url = "http://127.0.0.1:" + server.getAddress().getPort();
            documents.put(
                    "/.well-known/openid-configuration",
                    "{\"issuer\": \"" + url + "\", \"jwks_uri\": \"" + url + "/keys\"}");
            documents.put("/keys", jwks(first));
            startWithKeys("""
                    tokens:
                      - {issuer: 'URL', audience: nereid}
                    bindings:
                      - {claim: groups, value: ml-team, roles: [client]}
                    """.replace("URL", url));
            JWTClaimsSet claims = claims().issuer(url).build();
            assertThat(eventually(ErrorCode.OK, signed(first, claims))).isEqualTo(ErrorCode.OK);
            assertThat(token(signed(second, claims)))
                    .as("a key that the issuer does not have")
                    .isIn(ErrorCode.UNAUTHENTICATED, ErrorCode.RESOURCE_EXHAUSTED);
            documents.remove("/keys");
            documents.remove("/.well-known/openid-configuration");
            assertThat(token(signed(first, claims)))
                    .as("the issuer is away: its keys stay")
                    .isEqualTo(ErrorCode.OK);
        } finally {
            server.stop(0);
        }
    }

    @Test
    void keysAreNotFetchedFromAnotherHostOrThroughARedirect() throws Exception {
        ECKey key = new ECKeyGenerator(Curve.P_256).keyID("a").generate();
        Map<String, String> documents = new ConcurrentHashMap<>();
        HttpServer server = issuer(documents);
        try {
            int port = server.getAddress().getPort();
            String url = "http://127.0.0.1:" + port;
            documents.put("/elsewhere", jwks(key));
            documents.put(
                    "/other/.well-known/openid-configuration",
                    "{\"issuer\": \"" + url + "/other\", \"jwks_uri\": \"http://localhost:" + port + "/elsewhere\"}");
            documents.put(
                    "/liar/.well-known/openid-configuration",
                    "{\"issuer\": \"" + url + "\", \"jwks_uri\": \"" + url + "/elsewhere\"}");
            documents.put("/redirect/.well-known/openid-configuration", url + "/elsewhere");
            for (String path : List.of("/other", "/liar", "/redirect")) {
                JwkSource source = new JwkSource(
                        new JwtConfig(
                                url + path,
                                List.of("nereid"),
                                List.of("ES256"),
                                "",
                                List.of(),
                                Duration.ZERO,
                                "sub",
                                ""),
                        dir,
                        () -> {},
                        Clock.system());
                source.refresh();
                assertThatThrownBy(() -> source.get(new JWKSelector(new JWKMatcher.Builder().build()), null))
                        .as(path)
                        .hasMessageContaining("no keys yet");
            }
        } finally {
            server.stop(0);
        }
    }

    @Test
    void aRotatedKeyIsReadAgain() throws Exception {
        ECKey first = new ECKeyGenerator(Curve.P_256).keyID("a").generate();
        ECKey second = new ECKeyGenerator(Curve.P_256).keyID("b").generate();
        startWithTokens(first);
        Files.writeString(dir.resolve("jwks.json"), jwks(first, second));
        assertThat(eventually(ErrorCode.OK, signed(second, claims().build()))).isEqualTo(ErrorCode.OK);
        assertThat(token(signed(first, claims().build()))).isEqualTo(ErrorCode.OK);
    }

    @Test
    void refusalsAreInTheAuditLogWithoutSecrets() throws Exception {
        String app = key("app", List.of("client"), null);
        startWithKeys("{}");
        assertThat(refusal(Operation.MODEL_CONTROL, "m", "x-api-key", app)).isEqualTo(ErrorCode.PERMISSION_DENIED);
        access.close();
        String line = Files.readString(dir.resolve("audit.json"));
        assertThat(line)
                .contains("\"caller\":\"app\"")
                .contains("\"permission\":\"manage\"")
                .contains("\"model\":\"m\"")
                .contains("\"outcome\":\"denied\"")
                .doesNotContain(app.substring(18));
        access = null;
    }
}
