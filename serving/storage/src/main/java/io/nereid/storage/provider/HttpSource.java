// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.provider;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.storage.http.HttpCall;
import io.nereid.storage.http.HttpObject;
import io.nereid.storage.http.HttpSession;
import io.nereid.storage.object.ContentDigests;
import io.nereid.storage.object.ObjectPaths;
import io.nereid.storage.request.StorageJson;
import io.nereid.storage.request.StorageUris;
import io.nereid.storage.spi.Checksum;
import io.nereid.storage.spi.ChecksumAlgorithm;
import io.nereid.storage.spi.ObjectEntry;
import io.nereid.storage.spi.ObjectSource;
import io.nereid.storage.spi.StorageSettings;
import io.nereid.storage.spi.StorageUri;
import java.net.URI;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** {@code http://} and {@code https://}: a file of a web server. Thread-safe. */
final class HttpSource implements ObjectSource {
    private final String uri;
    private final HttpSession session;
    private final URI target;
    private final Map<String, String> headers;

    HttpSource(String uri, StorageSettings settings, HttpSession session) {
        this.uri = uri;
        this.session = session;
        this.target = StorageUris.parse(uri);
        this.headers = headers(target, settings);
    }

    /**
     * Headers of the setting {@code {host}-headers}, or {@code {host}:{port}-headers}, as JSON or lines of
     * {@code Name: value}.
     */
    private static Map<String, String> headers(URI target, StorageSettings settings) {
        Map<String, String> headers = new LinkedHashMap<>();
        String user = target.getRawUserInfo();
        if (user != null) {
            headers.put(
                    "Authorization",
                    "Basic "
                            + Base64.getEncoder()
                                    .encodeToString(URLDecoder.decode(user, StandardCharsets.UTF_8)
                                            .getBytes(StandardCharsets.UTF_8)));
        }
        String name = target.getHost() + "-headers";
        String value = settings.first(target.getRawAuthority() + "-headers", name);
        if (value == null) {
            return headers;
        }
        if (value.trim().startsWith("{")) {
            headers.putAll(StorageJson.fields(value, "storage setting " + name));
            return headers;
        }
        for (String line : value.split("\n")) {
            int colon = line.indexOf(':');
            if (colon > 0) {
                headers.put(
                        line.substring(0, colon).trim(),
                        line.substring(colon + 1).trim());
            } else if (!line.isBlank()) {
                throw ServingException.invalidArgument(
                        "storage setting " + name + " is neither a JSON object nor lines of 'Name: value'");
            }
        }
        return headers;
    }

    private URI place() {
        String raw = target.toString();
        String user = target.getRawUserInfo();
        return user == null ? target : URI.create(raw.replaceFirst(java.util.regex.Pattern.quote(user + "@"), ""));
    }

    @Override
    public Listing list() {
        URI place = place();
        String what = StorageUri.shown(uri);
        HttpSession.Answer answer = session.send(what, () -> HttpCall.head(place, headers));
        long size = answer.headers().firstValueAsLong("Content-Length").orElse(-1);
        if (answer.status() == 403 || answer.status() == 405 || answer.status() == 501 || answer.status() == 400) {
            // A signed URL may permit GET only, so HEAD fails: request one byte instead.
            answer = session.send(what, () -> HttpCall.get(place, headers).range(0, 1));
            String range = answer.header("Content-Range");
            size = answer.status() == 206
                    ? total(range)
                    : answer.headers().firstValueAsLong("Content-Length").orElse(-1);
        }
        if (!answer.ok()) {
            throw session.failed(what, answer);
        }
        String name =
                ObjectPaths.last(URLDecoder.decode(target.getRawPath().replace("+", "%2B"), StandardCharsets.UTF_8));
        String type = answer.header("Content-Type").toLowerCase(Locale.ROOT);
        if (name.isEmpty()) {
            throw StorageUris.invalid(uri, "it does not name a file");
        }
        name += archiveOfQuery(name);
        if (type.startsWith("text/html") && !name.toLowerCase(Locale.ROOT).endsWith(".html")) {
            throw ServingException.of(
                    ErrorCode.FAILED_PRECONDITION,
                    "URI: " + what + " did not respond with 'Content-Type': 'application/octet-stream'"
                            + ", but with a page of HTML",
                    "give the URL of the file itself, and the headers that it needs in a secret with https-host");
        }
        String tag = answer.header("ETag");
        String modified = answer.header("Last-Modified");
        String version = tag.isEmpty() ? modified : tag;
        boolean strong = tag.startsWith("\"");
        String condition = strong ? tag : tag.isEmpty() ? modified : "";
        boolean encoded = !answer.header("Content-Encoding").isEmpty();
        boolean ranges = size >= 0
                && !encoded
                && !condition.isEmpty()
                && (answer.status() == 206
                        || answer.header("Accept-Ranges")
                                .toLowerCase(Locale.ROOT)
                                .contains("bytes"));
        ObjectEntry item = new HttpObject(
                        name,
                        encoded ? -1 : size,
                        version,
                        strong ? tag : null,
                        checksum(answer),
                        ranges ? HttpObject.Ranges.HEADER : HttpObject.Ranges.NONE,
                        (from, to) -> {
                            HttpCall call = HttpCall.get(place, headers).range(from, to);
                            return call.headers().containsKey("Range") && !condition.isEmpty()
                                    ? call.with("If-Range", condition)
                                    : call;
                        })
                .entry(session, StorageUri.shown(uri));
        return new Listing("http " + place, List.of(item), Shape.FILES);
    }

    /** The extension of the archive that the query names, as in {@code /download?file=model.tar.gz}; else empty. */
    private String archiveOfQuery(String name) {
        String query = target.getQuery();
        if (query == null || name.contains(".") || !ObjectPaths.archive(query)) {
            return "";
        }
        String lower = query.toLowerCase(Locale.ROOT);
        return lower.endsWith(".tar.gz") ? ".tar.gz" : lower.substring(lower.lastIndexOf('.'));
    }

    private static long total(String range) {
        try {
            return Long.parseLong(range.substring(range.indexOf('/') + 1));
        } catch (NumberFormatException e) {
            return -1;
        }
    }

    private static @Nullable Checksum checksum(HttpSession.Answer answer) {
        for (String hashes : answer.headers().allValues("x-goog-hash")) {
            for (String hash : hashes.split(",")) {
                if (hash.trim().startsWith("md5=")) {
                    return base64(ChecksumAlgorithm.MD5, hash.trim().substring(4));
                }
                if (hash.trim().startsWith("crc32c=")) {
                    return base64(ChecksumAlgorithm.CRC32C, hash.trim().substring(7));
                }
            }
        }
        String md5 = answer.header("Content-MD5");
        return md5.isEmpty() ? null : base64(ChecksumAlgorithm.MD5, md5);
    }

    /** A checksum in base64, as most stores write it, or null if the text is invalid. */
    static @Nullable Checksum base64(ChecksumAlgorithm algorithm, String text) {
        try {
            byte[] bytes = Base64.getDecoder().decode(text);
            int length = algorithm == ChecksumAlgorithm.CRC32C ? 4 : 16;
            return bytes.length == length ? new Checksum(algorithm, ContentDigests.hex(bytes)) : null;
        } catch (IllegalArgumentException e) {
            return null;
        }
    }
}
