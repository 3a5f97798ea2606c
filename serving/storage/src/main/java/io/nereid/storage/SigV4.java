// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage;

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

/** Signatures of AWS, version 4. Stateless. */
final class SigV4 {
    private static final DateTimeFormatter TIME =
            DateTimeFormatter.ofPattern("yyyyMMdd'T'HHmmss'Z'", Locale.ROOT).withZone(ZoneOffset.UTC);
    private static final String EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    private SigV4() {}

    /**
     * Who signs. Immutable; never shown.
     *
     * @param session the token of a temporary key, or null
     */
    record Key(String id, String secret, @Nullable String session) {
        @Override
        public String toString() {
            return "Key[***]";
        }
    }

    /** As the other one, for a request without a body. */
    static Map<String, String> sign(
            Key key, String region, String service, String method, URI uri, Map<String, String> more, Instant now) {
        return sign(key, region, service, method, uri, more, EMPTY, now);
    }

    /**
     * The headers that sign a request; its path and query are encoded already, as {@link HttpCall#encode} does.
     *
     * @param digest the SHA-256 of the body, in hexadecimal
     */
    static Map<String, String> sign(
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
        String text = "AWS4-HMAC-SHA256\n" + time + "\n" + scope + "\n" + Digests.sha256(request);
        byte[] secret = ("AWS4" + key.secret()).getBytes(StandardCharsets.UTF_8);
        byte[] signing =
                Digests.hmac(Digests.hmac(Digests.hmac(Digests.hmac(secret, date), region), service), "aws4_request");
        signed.remove("host");
        signed.put(
                "Authorization",
                "AWS4-HMAC-SHA256 Credential=" + key.id() + "/" + scope + ", SignedHeaders=" + names + ", Signature="
                        + Digests.hex(Digests.hmac(signing, text)));
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
