// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.credentials;

import io.nereid.storage.http.HttpCall;
import io.nereid.storage.object.ContentDigests;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/** Signs requests with AWS Signature Version 4. Stateless. */
public final class SigV4Signer {
    private static final DateTimeFormatter TIME =
            DateTimeFormatter.ofPattern("yyyyMMdd'T'HHmmss'Z'", Locale.ROOT).withZone(ZoneOffset.UTC);
    private static final String EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    private SigV4Signer() {}

    /**
     * An AWS access key. Immutable; never shown.
     *
     * @param session the token of a temporary key, or null
     */
    public record Key(String id, String secret, @Nullable String session) {
        @Override
        public String toString() {
            return "Key[***]";
        }
    }

    /** Signs a request without a body. */
    public static Map<String, String> sign(
            Key key, String region, String service, String method, URI uri, Map<String, String> more, Instant now) {
        return sign(key, region, service, method, uri, more, EMPTY, now);
    }

    /**
     * Returns the headers of a signed request. Path and query must be encoded as by {@link HttpCall#encode}.
     *
     * @param digest the SHA-256 of the body, in hexadecimal
     */
    public static Map<String, String> sign(
            Key key,
            String region,
            String service,
            String method,
            URI uri,
            Map<String, String> more,
            String digest,
            Instant now) {
        String time = TIME.format(now);
        String date = time.substring(0, 8);
        TreeMap<String, String> signed = new TreeMap<>();
        more.forEach((name, value) -> signed.put(name.toLowerCase(Locale.ROOT), value.strip()));
        signed.put("host", host(uri));
        signed.put("x-amz-date", time);
        if (service.equals("s3")) {
            signed.put("x-amz-content-sha256", digest);
        }
        if (key.session() != null) {
            signed.put("x-amz-security-token", key.session());
        }
        StringBuilder headers = new StringBuilder();
        signed.forEach(
                (name, value) -> headers.append(name).append(':').append(value).append('\n'));
        String names = String.join(";", signed.keySet());
        String path = uri.getRawPath().isEmpty() ? "/" : uri.getRawPath();
        String request =
                method + "\n" + path + "\n" + query(uri.getRawQuery()) + "\n" + headers + "\n" + names + "\n" + digest;
        String scope = date + "/" + region + "/" + service + "/aws4_request";
        String text = "AWS4-HMAC-SHA256\n" + time + "\n" + scope + "\n" + ContentDigests.sha256(request);
        byte[] secret = ("AWS4" + key.secret()).getBytes(StandardCharsets.UTF_8);
        byte[] signing = ContentDigests.hmac(
                ContentDigests.hmac(ContentDigests.hmac(ContentDigests.hmac(secret, date), region), service),
                "aws4_request");
        signed.remove("host");
        signed.put(
                "Authorization",
                "AWS4-HMAC-SHA256 Credential=" + key.id() + "/" + scope + ", SignedHeaders=" + names + ", Signature="
                        + ContentDigests.hex(ContentDigests.hmac(signing, text)));
        return signed;
    }

    private static String host(URI uri) {
        int port = uri.getPort();
        boolean usual = port < 0 || port == ("https".equals(uri.getScheme()) ? 443 : 80);
        return usual ? uri.getHost() : uri.getHost() + ":" + port;
    }

    private static String query(@Nullable String raw) {
        if (raw == null || raw.isEmpty()) {
            return "";
        }
        List<String> parts = new ArrayList<>(Arrays.asList(raw.split("&")));
        parts.replaceAll(part -> part.contains("=") ? part : part + "=");
        parts.sort((a, b) -> {
            int byName = a.substring(0, a.indexOf('=')).compareTo(b.substring(0, b.indexOf('=')));
            return byName != 0 ? byName : a.compareTo(b);
        });
        return String.join("&", parts);
    }
}
