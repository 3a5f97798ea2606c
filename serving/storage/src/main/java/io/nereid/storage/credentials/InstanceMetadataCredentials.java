// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.credentials;

import com.fasterxml.jackson.databind.JsonNode;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.storage.http.HttpCall;
import io.nereid.storage.http.HttpSession;
import io.nereid.storage.request.StorageJson;
import io.nereid.storage.request.StorageUris;
import io.nereid.storage.spi.StorageSettings;
import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.time.format.DateTimeParseException;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Credentials from the metadata services of AWS, Azure and Google Cloud, or of a container. They are requested only if
 * no other credentials exist, and only if the environment or the machine's hardware names indicate such a service, so
 * that other machines do not wait for a timeout. The timeout is short, and a failure is remembered for five minutes.
 * Thread-safe: tokens are in {@link TokenCache}.
 */
public final class InstanceMetadataCredentials {
    private static final Duration TIMEOUT = Duration.ofSeconds(1);
    private static final long FAILURE_TTL_MILLIS = 300_000;
    private static final Path HARDWARE = Path.of("/sys/class/dmi/id");
    private static final String AZURE_CHASSIS = "7783-7084-3265-9085-8269-3286-77";
    private static final Set<String> CONTAINER_HOSTS =
            Set.of("169.254.170.2", "169.254.170.23", "[fd00:ec2::23]", "localhost", "127.0.0.1", "[::1]");

    private final StorageSettings settings;
    private final HttpSession session;
    private final TokenCache tokens;

    public InstanceMetadataCredentials(StorageSettings settings, HttpSession session, TokenCache tokens) {
        this.settings = settings;
        this.session = session.brief(TIMEOUT);
        this.tokens = tokens;
    }

    private static boolean hardware(String file, String begins) {
        try {
            return Files.readString(HARDWARE.resolve(file)).trim().startsWith(begins);
        } catch (IOException | RuntimeException e) {
            return false;
        }
    }

    /** Requests credentials; null if the metadata service does not answer. */
    private TokenCache.@Nullable Token ask(String identity, Supplier<TokenCache.Token> question) {
        TokenCache.Token token = tokens.of(identity, () -> {
            try {
                return question.get();
            } catch (ServingException e) {
                if (e.code() == ErrorCode.CANCELLED) {
                    throw e;
                }
                return new TokenCache.Token("", tokens.millis() + FAILURE_TTL_MILLIS);
            }
        });
        return token.value().isEmpty() ? null : token;
    }

    // ---- AWS ----

    /** The keys of the container's role, else of the instance's role; null if there are none. */
    SigV4Signer.@Nullable Key aws() {
        if (!settings.ambient("AWS_ACCESS_KEY_ID")) {
            return null;
        }
        String relative = settings.get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
        String full = settings.get("AWS_CONTAINER_CREDENTIALS_FULL_URI");
        if (relative != null || full != null) {
            // An explicitly configured endpoint must answer, so its failure is reported.
            String url = relative != null ? "http://169.254.170.2" + relative : full;
            return key(tokens.of("container " + url, () -> container(String.valueOf(url))));
        }
        String endpoint = settings.get("AWS_EC2_METADATA_SERVICE_ENDPOINT");
        boolean there = endpoint != null || hardware("sys_vendor", "Amazon EC2");
        if (!there || settings.flag("AWS_EC2_METADATA_DISABLED", false)) {
            return null;
        }
        String root = endpoint == null
                ? settings.get("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE", "IPv4").equalsIgnoreCase("IPv6")
                        ? "http://[fd00:ec2::254]"
                        : "http://169.254.169.254"
                : endpoint.endsWith("/") ? endpoint.substring(0, endpoint.length() - 1) : endpoint;
        TokenCache.Token token = ask("ec2 " + root, () -> instance(root));
        return token == null ? null : key(token);
    }

    private TokenCache.Token container(String url) {
        URI target = StorageUris.parse(url);
        String host = String.valueOf(target.getHost());
        if (!"https".equals(target.getScheme()) && !CONTAINER_HOSTS.contains(host)) {
            throw ServingException.invalidArgument(
                    "AWS_CONTAINER_CREDENTIALS_FULL_URI names the host '" + host + "' over plain http",
                    "it may be the container's own (169.254.170.2, 169.254.170.23, localhost), or https");
        }
        String authorization = settings.get("AWS_CONTAINER_AUTHORIZATION_TOKEN");
        String file = settings.get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
        if (file != null) {
            try {
                authorization = Files.readString(Path.of(file)).trim();
            } catch (IOException | RuntimeException e) {
                throw ServingException.of(
                        ErrorCode.FAILED_PRECONDITION,
                        "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE cannot be read: " + file);
            }
        }
        Map<String, String> headers = authorization == null ? Map.of() : Map.of("Authorization", authorization);
        return keys(session.expect("the container's AWS credentials", () -> HttpCall.get(target, headers)));
    }

    private TokenCache.Token instance(String root) {
        String what = "the machine's AWS credentials";
        String pass = session.expect(
                        what,
                        () -> new HttpCall(
                                "PUT",
                                URI.create(root + "/latest/api/token"),
                                Map.of("X-aws-ec2-metadata-token-ttl-seconds", "21600"),
                                new byte[0]))
                .text()
                .trim();
        Map<String, String> headers = Map.of("X-aws-ec2-metadata-token", pass);
        String roles = root + "/latest/meta-data/iam/security-credentials/";
        String role = session.expect(what, () -> HttpCall.get(URI.create(roles), headers))
                .text()
                .lines()
                .findFirst()
                .orElse("")
                .trim();
        if (role.isEmpty()) {
            throw ServingException.of(ErrorCode.NOT_FOUND, what + ": the machine has no role");
        }
        return keys(session.expect(
                what, () -> HttpCall.get(URI.create(roles + HttpCall.encode(role, false)), headers)));
    }

    private static TokenCache.Token keys(HttpSession.Answer answer) {
        JsonNode given = StorageJson.read(answer.text(), "the answer with AWS credentials");
        String id = given.path("AccessKeyId").asText();
        String secret = given.path("SecretAccessKey").asText();
        if (id.isEmpty() || secret.isEmpty()) {
            throw ServingException.of(ErrorCode.UNAVAILABLE, "the answer holds no AWS credentials");
        }
        long expires;
        try {
            expires = Instant.parse(given.path("Expiration").asText()).toEpochMilli();
        } catch (DateTimeParseException e) {
            expires = Long.MAX_VALUE;
        }
        return new TokenCache.Token(
                id + "\n" + secret + "\n" + given.path("Token").asText(), expires);
    }

    private static SigV4Signer.Key key(TokenCache.Token token) {
        String[] parts = token.value().split("\n", -1);
        return new SigV4Signer.Key(parts[0], parts[1], parts[2].isEmpty() ? null : parts[2]);
    }

    // ---- Azure ----

    /**
     * The token of the managed identity: of the client id in the settings, else of the machine; null if there is none.
     */
    public @Nullable String azure() {
        if (!settings.ambient("AZURE_CLIENT_ID")) {
            return null;
        }
        String client = settings.first("AZ_CLIENT_ID", "AZURE_CLIENT_ID");
        String endpoint = settings.get("IDENTITY_ENDPOINT");
        String header = settings.get("IDENTITY_HEADER");
        String host = settings.get("AZURE_POD_IDENTITY_AUTHORITY_HOST");
        boolean service = endpoint != null && header != null;
        if (!service && host == null && client == null && !hardware("chassis_asset_tag", AZURE_CHASSIS)) {
            return null;
        }
        String root = host == null ? "http://169.254.169.254" : host.contains("://") ? host : "http://" + host;
        String url = (service
                        ? endpoint + "?api-version=2019-08-01"
                        : (root.endsWith("/") ? root.substring(0, root.length() - 1) : root)
                                + "/metadata/identity/oauth2/token?api-version=2018-02-01")
                + "&resource=https%3A%2F%2Fstorage.azure.com%2F"
                + (client == null ? "" : "&client_id=" + HttpCall.encode(client, false));
        Map<String, String> headers =
                service ? Map.of("X-IDENTITY-HEADER", String.valueOf(header)) : Map.of("Metadata", "true");
        Supplier<TokenCache.Token> question =
                () -> bearer("the managed identity's token", StorageUris.parse(url), headers);
        TokenCache.Token token = client == null ? ask("azure " + url, question) : tokens.of("azure " + url, question);
        return token == null ? null : token.value();
    }

    // ---- Google ----

    /** The token of the machine's service account; null if there is none. */
    public @Nullable String google() {
        if (!settings.ambient("GOOGLE_APPLICATION_CREDENTIALS") || settings.flag("NO_GCE_CHECK", false)) {
            return null;
        }
        String host = settings.get("GCE_METADATA_HOST");
        if (host == null && !hardware("product_name", "Google")) {
            return null;
        }
        String url = "http://" + (host == null ? "169.254.169.254" : host)
                + "/computeMetadata/v1/instance/service-accounts/default/token";
        Map<String, String> headers = Map.of("Metadata-Flavor", "Google");
        TokenCache.Token token =
                ask("google " + url, () -> bearer("the machine's token", StorageUris.parse(url), headers));
        return token == null ? null : token.value();
    }

    private TokenCache.Token bearer(String what, URI target, Map<String, String> headers) {
        JsonNode given = StorageJson.read(
                session.expect(what, () -> HttpCall.get(target, headers)).text(), what);
        String token = given.path("access_token").asText();
        if (token.isEmpty()) {
            throw ServingException.of(ErrorCode.UNAUTHENTICATED, what + ": the answer does not contain a token");
        }
        return new TokenCache.Token(
                token, tokens.millis() + given.path("expires_in").asLong(300) * 1000);
    }
}
