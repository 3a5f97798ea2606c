// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.provider;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.storage.credentials.InstanceMetadataCredentials;
import io.nereid.storage.credentials.TokenCache;
import io.nereid.storage.http.HttpCall;
import io.nereid.storage.http.HttpSession;
import io.nereid.storage.object.ContentDigests;
import io.nereid.storage.request.StorageUris;
import io.nereid.storage.spi.StorageSettings;
import io.nereid.storage.spi.StorageUri;
import java.io.IOException;
import java.net.URI;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * Requests to a storage account of Azure, authorized by the first of: a shared access signature, a token (given, of a
 * service principal, of a federated or managed identity), the account's key; else anonymous. Thread-safe: tokens are in
 * {@link TokenCache}.
 */
final class AzureRequests {
    private static final DateTimeFormatter HTTP_TIME = DateTimeFormatter.ofPattern(
                    "EEE, dd MMM yyyy HH:mm:ss 'GMT'", Locale.ROOT)
            .withZone(ZoneOffset.UTC);

    private final String uri;
    private final StorageSettings settings;
    private final HttpSession session;
    private final TokenCache tokens;
    private final Map<String, String> common;
    private final String account;
    private final String root;
    private final String path;
    private final String sas;

    /**
     * Creates requests for the account that a URI names.
     *
     * @param endpoint the setting with another endpoint than the URI's host
     * @param common headers of each request
     */
    AzureRequests(
            String uri,
            StorageSettings settings,
            HttpSession session,
            TokenCache tokens,
            String endpoint,
            Map<String, String> common) {
        this.uri = uri;
        this.settings = settings;
        this.session = session;
        this.tokens = tokens;
        this.common = Map.copyOf(common);
        URI parsed = StorageUris.parse(uri);
        String host = parsed.getHost();
        this.account = host.substring(0, host.indexOf('.'));
        String url = settings.get(endpoint, "https://" + host);
        this.root = url.endsWith("/") ? url.substring(0, url.length() - 1) : url;
        this.path = URLDecoder.decode(parsed.getRawPath().replace("+", "%2B"), StandardCharsets.UTF_8)
                .substring(1);
        String query = parsed.getRawQuery();
        String token = query == null ? settings.get("AZURE_STORAGE_SAS_TOKEN", "") : query;
        this.sas = token.startsWith("?") ? token.substring(1) : token;
    }

    /** The endpoint, without a slash at the end. */
    String root() {
        return root;
    }

    /** The URI's path, decoded, without a slash at its begin. */
    String path() {
        return path;
    }

    HttpCall call(String method, String path, Map<String, String> query, Map<String, String> more, byte[] body) {
        StringBuilder url = new StringBuilder(root).append('/').append(HttpCall.encode(path, true));
        StringBuilder text = new StringBuilder();
        query.forEach((name, value) ->
                text.append(text.isEmpty() ? "" : "&").append(name).append('=').append(HttpCall.encode(value, false)));
        if (!sas.isEmpty()) {
            text.append(text.isEmpty() ? "" : "&").append(sas);
        }
        if (!text.isEmpty()) {
            url.append('?').append(text);
        }
        URI target = URI.create(url.toString());
        Map<String, String> headers = new LinkedHashMap<>(more);
        headers.putAll(common);
        if (!sas.isEmpty()) {
            return new HttpCall(method, target, headers, body);
        }
        headers.put("x-ms-date", HTTP_TIME.format(Instant.ofEpochMilli(tokens.millis())));
        String bearer = bearer();
        String key = settings.get("AZURE_STORAGE_ACCESS_KEY");
        if (bearer != null) {
            headers.put("Authorization", "Bearer " + bearer);
        } else if (key != null) {
            headers.put(
                    "Authorization",
                    "SharedKey " + account + ":" + sign(key, method, target, query, headers, body.length));
        }
        return new HttpCall(method, target, headers, body);
    }

    private @Nullable String bearer() {
        String given = settings.get("AZURE_ACCESS_TOKEN");
        if (given != null) {
            return given;
        }
        String tenant = settings.first("AZ_TENANT_ID", "AZURE_TENANT_ID");
        String client = settings.first("AZ_CLIENT_ID", "AZURE_CLIENT_ID");
        String secret = settings.first("AZ_CLIENT_SECRET", "AZURE_CLIENT_SECRET");
        String federated = settings.get("AZURE_FEDERATED_TOKEN_FILE");
        boolean key = settings.get("AZURE_STORAGE_ACCESS_KEY") != null;
        if (key && secret == null) {
            return null;
        }
        if (client == null || secret == null && federated == null && settings.ambient("AZURE_CLIENT_ID")) {
            return new InstanceMetadataCredentials(settings, session, tokens).azure();
        }
        if (tenant == null || secret == null && federated == null) {
            throw ServingException.invalidArgument(
                    "storage setting " + (tenant == null ? "AZURE_TENANT_ID" : "AZURE_CLIENT_SECRET") + " is missing",
                    "a service principal is AZURE_CLIENT_ID, AZURE_TENANT_ID and AZURE_CLIENT_SECRET; a managed "
                            + "identity is used when the server's own environment names it");
        }
        String authority = settings.get("AZURE_AUTHORITY_HOST", "https://login.microsoftonline.com");
        String url = authority.contains("://") ? authority : "https://" + authority;
        URI endpoint = StorageUris.parse(
                (url.endsWith("/") ? url : url + "/") + HttpCall.encode(tenant, false) + "/oauth2/v2.0/token");
        Map<String, String> form = new LinkedHashMap<>();
        form.put("grant_type", "client_credentials");
        form.put("client_id", client);
        form.put("scope", "https://storage.azure.com/.default");
        if (secret != null) {
            form.put("client_secret", secret);
        } else {
            form.put("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer");
            form.put("client_assertion", assertion(String.valueOf(federated)));
        }
        return tokens.of(
                        "azure " + endpoint + form,
                        () -> GcsSource.bearer(session, tokens, "a token for " + StorageUri.shown(uri), endpoint, form))
                .value();
    }

    private static String assertion(String file) {
        try {
            return Files.readString(Path.of(file)).trim();
        } catch (IOException | RuntimeException e) {
            throw ServingException.of(
                    ErrorCode.FAILED_PRECONDITION, "AZURE_FEDERATED_TOKEN_FILE cannot be read: " + file);
        }
    }

    /** Computes the Shared Key signature over the request's canonical form. */
    private String sign(
            String key, String method, URI target, Map<String, String> query, Map<String, String> headers, int length) {
        TreeMap<String, String> own = new TreeMap<>();
        headers.forEach((name, value) -> {
            String lower = name.toLowerCase(Locale.ROOT);
            if (lower.startsWith("x-ms-")) {
                own.put(lower, value.strip());
            }
        });
        StringBuilder text = new StringBuilder(method).append('\n');
        // Content-Encoding, -Language, -Length, -MD5, -Type, Date, If-Modified-Since.
        text.append("\n\n").append(length == 0 ? "" : String.valueOf(length)).append("\n\n");
        text.append(headers.getOrDefault("Content-Type", "")).append("\n\n\n");
        text.append(headers.getOrDefault("If-Match", "")).append('\n');
        text.append("\n\n");
        text.append(headers.getOrDefault("Range", "")).append('\n');
        own.forEach((name, value) -> text.append(name).append(':').append(value).append('\n'));
        text.append('/').append(account).append(target.getRawPath());
        new TreeMap<>(query)
                .forEach((name, value) -> text.append('\n')
                        .append(name.toLowerCase(Locale.ROOT))
                        .append(':')
                        .append(value));
        byte[] secret;
        try {
            secret = Base64.getDecoder().decode(key.trim());
        } catch (IllegalArgumentException e) {
            throw ServingException.invalidArgument("storage setting AZURE_STORAGE_ACCESS_KEY is not base64");
        }
        return Base64.getEncoder()
                .encodeToString(ContentDigests.hmac(secret, text.toString().getBytes(StandardCharsets.UTF_8)));
    }
}
