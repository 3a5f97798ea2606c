// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.provider;

import com.fasterxml.jackson.databind.JsonNode;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.storage.credentials.InstanceMetadataCredentials;
import io.nereid.storage.credentials.TokenCache;
import io.nereid.storage.http.HttpCall;
import io.nereid.storage.http.HttpObject;
import io.nereid.storage.http.HttpSession;
import io.nereid.storage.object.ListingUtil;
import io.nereid.storage.object.ObjectPaths;
import io.nereid.storage.request.StorageJson;
import io.nereid.storage.request.StorageUris;
import io.nereid.storage.spi.Checksum;
import io.nereid.storage.spi.ChecksumAlgorithm;
import io.nereid.storage.spi.ObjectEntry;
import io.nereid.storage.spi.ObjectSource;
import io.nereid.storage.spi.StorageSettings;
import io.nereid.storage.spi.StorageUri;
import io.nereid.storage.spi.UploadTarget;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.PrivateKey;
import java.security.Signature;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** {@code gs://bucket/prefix}: Google Cloud Storage, by its JSON API. Thread-safe. */
public final class GcsSource implements ObjectSource, UploadTarget {
    /** OAuth scopes for reading and for writing. */
    public static final String READS = "https://www.googleapis.com/auth/devstorage.read_only";

    static final String WRITES = "https://www.googleapis.com/auth/devstorage.read_write";

    private final String uri;
    private final StorageSettings settings;
    private final HttpSession session;
    private final TokenCache tokens;
    private final String root;
    private final String bucket;
    private final String prefix;
    private final String scope;

    public GcsSource(String uri, StorageSettings settings, HttpSession session, TokenCache tokens, String scope) {
        this.scope = scope;
        this.uri = uri;
        this.settings = settings;
        this.session = session;
        this.tokens = tokens;
        String rest = uri.substring("gs://".length());
        int slash = rest.indexOf('/');
        this.bucket = slash < 0 ? rest : rest.substring(0, slash);
        this.prefix = slash < 0 ? "" : rest.substring(slash + 1);
        String emulator = settings.get("STORAGE_EMULATOR_HOST", "https://storage.googleapis.com");
        String url = emulator.contains("://") ? emulator : "http://" + emulator;
        this.root = url.endsWith("/") ? url.substring(0, url.length() - 1) : url;
    }

    private Map<String, String> headers() {
        String credentials = settings.text("GOOGLE_APPLICATION_CREDENTIALS", "{");
        if (credentials == null) {
            credentials = ambient();
        }
        if (credentials == null) {
            String token = settings.get("STORAGE_EMULATOR_HOST") != null && settings.get("GCE_METADATA_HOST") == null
                    ? null
                    : new InstanceMetadataCredentials(settings, session, tokens).google();
            return token == null ? Map.of() : Map.of("Authorization", "Bearer " + token);
        }
        String identity = credentials;
        JsonNode account = StorageJson.read(identity, "storage setting GOOGLE_APPLICATION_CREDENTIALS");
        String type = account.path("type").asText();
        TokenCache.Token token = switch (type) {
            case "service_account" -> tokens.of(scope + identity, () -> serviceAccount(account));
            case "authorized_user" -> tokens.of(identity, () -> user(account));
            default ->
                throw ServingException.invalidArgument(
                        "Google credentials of the type '" + type + "' are not supported",
                        "give a service_account or authorized_user file");
        };
        return Map.of("Authorization", "Bearer " + token.value());
    }

    /** The application default credentials of the gcloud tool, if the environment gives its directory. */
    private @Nullable String ambient() {
        String home = settings.get("HOME");
        String directory = settings.get("CLOUDSDK_CONFIG");
        if (settings.get("STORAGE_EMULATOR_HOST") != null || directory == null && home == null) {
            return null;
        }
        Path file = Path.of(directory != null ? directory : home + "/.config/gcloud")
                .resolve("application_default_credentials.json");
        try {
            return Files.isReadable(file) ? Files.readString(file) : null;
        } catch (java.io.IOException e) {
            return null;
        }
    }

    private TokenCache.Token serviceAccount(JsonNode account) {
        String endpoint = account.path("token_uri").asText("https://oauth2.googleapis.com/token");
        long now = tokens.millis() / 1000;
        String header = StorageJson.object()
                .put("alg", "RS256")
                .put("typ", "JWT")
                .put("kid", account.path("private_key_id").asText())
                .toString();
        String claims = StorageJson.object()
                .put("iss", account.path("client_email").asText())
                .put("scope", scope)
                .put("aud", endpoint)
                .put("iat", now)
                .put("exp", now + 3600)
                .toString();
        Base64.Encoder encoder = Base64.getUrlEncoder().withoutPadding();
        String text = encoder.encodeToString(header.getBytes(StandardCharsets.UTF_8)) + "."
                + encoder.encodeToString(claims.getBytes(StandardCharsets.UTF_8));
        String assertion = text + "."
                + encoder.encodeToString(sign(account.path("private_key").asText(), text));
        return token(
                endpoint, Map.of("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer", "assertion", assertion));
    }

    private static byte[] sign(String pem, String text) {
        try {
            String body = pem.replaceAll("-----[A-Z ]+-----", "").replaceAll("\\s", "");
            PrivateKey key = KeyFactory.getInstance("RSA")
                    .generatePrivate(new PKCS8EncodedKeySpec(Base64.getDecoder().decode(body)));
            Signature signature = Signature.getInstance("SHA256withRSA");
            signature.initSign(key);
            signature.update(text.getBytes(StandardCharsets.US_ASCII));
            return signature.sign();
        } catch (GeneralSecurityException | IllegalArgumentException e) {
            throw ServingException.invalidArgument("the private key of the Google service account cannot be used");
        }
    }

    private TokenCache.Token user(JsonNode account) {
        return token(
                account.path("token_uri").asText("https://oauth2.googleapis.com/token"),
                Map.of(
                        "grant_type", "refresh_token",
                        "client_id", account.path("client_id").asText(),
                        "client_secret", account.path("client_secret").asText(),
                        "refresh_token", account.path("refresh_token").asText()));
    }

    private TokenCache.Token token(String endpoint, Map<String, String> form) {
        return bearer(session, tokens, "a token for " + StorageUri.shown(uri), StorageUris.parse(endpoint), form);
    }

    /** Requests a token from an OAuth endpoint. */
    static TokenCache.Token bearer(
            HttpSession session, TokenCache tokens, String what, URI endpoint, Map<String, String> form) {
        HttpSession.Answer answer = session.send(what, () -> HttpCall.form(endpoint, form));
        if (!answer.ok()) {
            throw session.failed(
                    what, answer.status() == 400 ? 401 : answer.status(), "", "check the credentials of the service");
        }
        JsonNode given = StorageJson.read(answer.text(), what);
        String token = given.path("access_token").asText();
        if (token.isEmpty()) {
            throw ServingException.of(ErrorCode.UNAUTHENTICATED, what + ": the answer does not contain a token");
        }
        return new TokenCache.Token(
                token, tokens.millis() + given.path("expires_in").asLong(300) * 1000);
    }

    @Override
    public void put(String key, String type, byte[] bytes) {
        String name = UploadTarget.below(prefix, key);
        String what = "gs://" + bucket + "/" + name;
        URI target = URI.create(root + "/upload/storage/v1/b/" + HttpCall.encode(bucket, false)
                + "/o?uploadType=media&name=" + HttpCall.encode(name, false));
        HttpSession.Answer answer =
                session.send(what, () -> new HttpCall("POST", target, headers(), bytes).with("Content-Type", type));
        if (!answer.ok()) {
            throw session.rejected(what, answer);
        }
    }

    @Override
    public Listing list() {
        List<ObjectEntry> items = new ArrayList<>();
        String directory = prefix.isEmpty() || prefix.endsWith("/") ? prefix : prefix + "/";
        String page = "";
        do {
            String token = page;
            URI target = URI.create(root + "/storage/v1/b/" + HttpCall.encode(bucket, false) + "/o?prefix="
                    + HttpCall.encode(directory, false)
                    + (token.isEmpty() ? "" : "&pageToken=" + HttpCall.encode(token, false)));
            JsonNode answer = StorageJson.read(
                    session.expect(StorageUri.shown(uri), () -> HttpCall.get(target, headers()))
                            .text(),
                    "the answer of Google's storage");
            answer.path("items").forEach(object -> {
                String below = ListingUtil.below(object.path("name").asText(), prefix);
                if (below != null) {
                    items.add(item(object, below));
                }
            });
            page = answer.path("nextPageToken").asText();
        } while (!page.isEmpty());
        boolean files = items.stream()
                .anyMatch(item -> !item.path().isEmpty() && !item.path().endsWith("/"));
        if (!files && !prefix.isEmpty() && !prefix.endsWith("/")) {
            URI target = URI.create(
                    root + "/storage/v1/b/" + HttpCall.encode(bucket, false) + "/o/" + HttpCall.encode(prefix, false));
            HttpSession.Answer answer = session.send(StorageUri.shown(uri), () -> HttpCall.get(target, headers()));
            if (answer.ok()) {
                items.clear();
                items.add(item(
                        StorageJson.read(answer.text(), "the answer of Google's storage"), ObjectPaths.last(prefix)));
            } else if (answer.status() != 404) {
                throw session.failed(StorageUri.shown(uri), answer);
            }
        }
        return new Listing("gs " + root + "/" + bucket + "/" + prefix, items, Shape.FILES);
    }

    private ObjectEntry item(JsonNode object, String path) {
        String name = object.path("name").asText();
        String generation = object.path("generation").asText();
        // Google decompresses objects that were uploaded with gzip, so their size and checksum do not match the
        // response.
        boolean packed = object.path("contentEncoding").asText().equals("gzip");
        Checksum checksum = null;
        if (!packed) {
            checksum = object.has("md5Hash")
                    ? HttpSource.base64(
                            ChecksumAlgorithm.MD5, object.path("md5Hash").asText())
                    : HttpSource.base64(
                            ChecksumAlgorithm.CRC32C, object.path("crc32c").asText());
        }
        URI target = URI.create(root + "/download/storage/v1/b/" + HttpCall.encode(bucket, false) + "/o/"
                + HttpCall.encode(name, false) + "?alt=media"
                + (generation.isEmpty() ? "" : "&generation=" + HttpCall.encode(generation, false)));
        String version = generation.isEmpty() ? object.path("etag").asText() : generation;
        return new HttpObject(
                        path,
                        packed ? -1 : object.path("size").asLong(-1),
                        version,
                        null,
                        checksum,
                        packed ? HttpObject.Ranges.NONE : HttpObject.Ranges.HEADER,
                        (from, to) -> HttpCall.get(target, headers()).range(from, to))
                .entry(session, StorageUri.shown(uri));
    }
}
