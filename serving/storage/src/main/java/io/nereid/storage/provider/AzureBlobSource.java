// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.provider;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.storage.credentials.InstanceMetadataCredentials;
import io.nereid.storage.credentials.TokenCache;
import io.nereid.storage.http.HttpCall;
import io.nereid.storage.http.HttpObject;
import io.nereid.storage.http.HttpSession;
import io.nereid.storage.http.XmlParser;
import io.nereid.storage.object.ContentDigests;
import io.nereid.storage.object.ListingUtil;
import io.nereid.storage.object.ObjectPaths;
import io.nereid.storage.request.StorageUris;
import io.nereid.storage.spi.ChecksumAlgorithm;
import io.nereid.storage.spi.ObjectEntry;
import io.nereid.storage.spi.ObjectSource;
import io.nereid.storage.spi.StorageSettings;
import io.nereid.storage.spi.StorageUri;
import io.nereid.storage.spi.UploadTarget;
import java.io.IOException;
import java.net.URI;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;
import org.w3c.dom.Element;

/** {@code https://account.blob.core.windows.net/container/prefix}: Azure Blob Storage. Thread-safe. */
public final class AzureBlobSource implements ObjectSource, UploadTarget {
    private static final byte[] NOTHING = {};
    private static final String VERSION = "2021-08-06";
    private static final DateTimeFormatter HTTP_TIME = DateTimeFormatter.ofPattern(
                    "EEE, dd MMM yyyy HH:mm:ss 'GMT'", Locale.ROOT)
            .withZone(ZoneOffset.UTC);

    private final String uri;
    private final StorageSettings settings;
    private final HttpSession session;
    private final TokenCache tokens;
    private final String account;
    private final String root;
    private final String container;
    private final String prefix;
    private final String sas;

    public AzureBlobSource(String uri, StorageSettings settings, HttpSession session, TokenCache tokens) {
        this.uri = uri;
        this.settings = settings;
        this.session = session;
        this.tokens = tokens;
        URI parsed = StorageUris.parse(uri);
        String host = parsed.getHost();
        this.account = host.substring(0, host.indexOf('.'));
        String endpoint = settings.get("AZURE_STORAGE_BLOB_ENDPOINT", "https://" + host);
        this.root = endpoint.endsWith("/") ? endpoint.substring(0, endpoint.length() - 1) : endpoint;
        String path = URLDecoder.decode(parsed.getRawPath().replace("+", "%2B"), StandardCharsets.UTF_8)
                .substring(1);
        int slash = path.indexOf('/');
        this.container = slash < 0 ? path : path.substring(0, slash);
        this.prefix = slash < 0 ? "" : path.substring(slash + 1);
        String query = parsed.getRawQuery();
        String token = query == null ? settings.get("AZURE_STORAGE_SAS_TOKEN", "") : query;
        this.sas = token.startsWith("?") ? token.substring(1) : token;
    }

    private HttpCall call(String method, String path, Map<String, String> query, Map<String, String> more) {
        return call(method, path, query, more, NOTHING);
    }

    private HttpCall call(
            String method, String path, Map<String, String> query, Map<String, String> more, byte[] body) {
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
        headers.put("x-ms-version", VERSION);
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

    @Override
    public void put(String key, String type, byte[] bytes) {
        String name = UploadTarget.below(prefix, key);
        String what = root + "/" + container + "/" + name;
        Map<String, String> headers = Map.of("Content-Type", type, "x-ms-blob-type", "BlockBlob");
        HttpSession.Answer answer =
                session.send(what, () -> call("PUT", container + "/" + name, Map.of(), headers, bytes));
        if (!answer.ok()) {
            throw session.rejected(what, answer);
        }
    }

    @Override
    public int maxReads() {
        int files = settings.count("AZURE_MAX_FILE_CONCURRENCY", Integer.MAX_VALUE);
        int chunks = settings.count("AZURE_MAX_CHUNK_CONCURRENCY", Integer.MAX_VALUE);
        return (int) Math.min(Integer.MAX_VALUE, (long) files * chunks);
    }

    @Override
    public Listing list() {
        List<ObjectEntry> items = new ArrayList<>();
        String directory = prefix.isEmpty() || prefix.endsWith("/") ? prefix : prefix + "/";
        String marker = "";
        do {
            Map<String, String> query = new LinkedHashMap<>();
            query.put("restype", "container");
            query.put("comp", "list");
            query.put("prefix", directory);
            if (!marker.isEmpty()) {
                query.put("marker", marker);
            }
            HttpSession.Answer answer =
                    session.expect(StorageUri.shown(uri), () -> call("GET", container, query, Map.of()));
            try {
                Element page = XmlParser.root(answer.body());
                Element blobs = XmlParser.child(page, "Blobs");
                for (Element blob : blobs == null ? List.<Element>of() : XmlParser.children(blobs, "Blob")) {
                    add(blob, items);
                }
                marker = XmlParser.text(page, "NextMarker");
            } catch (IOException e) {
                throw session.unreachable(StorageUri.shown(uri), e);
            }
        } while (!marker.isEmpty());
        boolean files = items.stream()
                .anyMatch(item -> !item.path().isEmpty() && !item.path().endsWith("/"));
        if (!files && !prefix.isEmpty() && !prefix.endsWith("/")) {
            HttpSession.Answer answer = session.send(
                    StorageUri.shown(uri), () -> call("HEAD", container + "/" + prefix, Map.of(), Map.of()));
            if (answer.ok()) {
                items.clear();
                items.add(item(
                        prefix,
                        ObjectPaths.last(prefix),
                        answer.headers().firstValueAsLong("Content-Length").orElse(-1),
                        answer.header("ETag"),
                        answer.header("Content-MD5")));
            } else if (answer.status() != 404) {
                throw session.failed(StorageUri.shown(uri), answer);
            }
        }
        return new Listing("azure " + root + "/" + container + "/" + prefix, items, Shape.FILES);
    }

    private void add(Element blob, List<ObjectEntry> items) {
        Element named = XmlParser.child(blob, "Name");
        Element properties = XmlParser.child(blob, "Properties");
        if (named == null || XmlParser.text(properties, "ResourceType").equals("directory")) {
            return;
        }
        String raw = named.getTextContent();
        String name = named.getAttribute("Encoded").equals("true")
                ? URLDecoder.decode(raw.replace("+", "%2B"), StandardCharsets.UTF_8)
                : raw;
        String below = ListingUtil.below(name, prefix);
        if (below != null) {
            items.add(item(
                    name,
                    below,
                    Long.parseLong("0" + XmlParser.text(properties, "Content-Length")),
                    XmlParser.text(properties, "Etag"),
                    XmlParser.text(properties, "Content-MD5")));
        }
    }

    private ObjectEntry item(String name, String path, long size, String tag, String md5) {
        String bare = tag.replace("\"", "");
        Map<String, String> match = bare.isEmpty() ? Map.of() : Map.of("If-Match", "\"" + bare + "\"");
        return new HttpObject(
                        path,
                        size,
                        bare,
                        null,
                        md5.isEmpty() ? null : HttpSource.base64(ChecksumAlgorithm.MD5, md5),
                        HttpObject.Ranges.HEADER,
                        (from, to) -> {
                            Map<String, String> more = new LinkedHashMap<>(match);
                            if (from > 0 || to >= 0) {
                                more.put("Range", "bytes=" + from + "-" + (to < 0 ? "" : String.valueOf(to - 1)));
                            }
                            return call("GET", container + "/" + name, Map.of(), more);
                        })
                .entry(session, StorageUri.shown(uri));
    }
}
