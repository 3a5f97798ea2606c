// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.http;

import io.nereid.storage.spi.StorageUri;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.TreeSet;

/**
 * An HTTP request to a store. Immutable.
 *
 * @param method GET, HEAD, POST or PUT
 * @param uri the target
 * @param headers of the request; a redirect to another origin keeps only range, condition and Accept headers
 * @param body of a POST or PUT, else empty
 */
public record HttpCall(String method, URI uri, Map<String, String> headers, byte[] body) {
    public HttpCall {
        headers = Map.copyOf(headers);
    }

    public static HttpCall get(URI uri, Map<String, String> headers) {
        return new HttpCall("GET", uri, headers, new byte[0]);
    }

    public static HttpCall head(URI uri, Map<String, String> headers) {
        return new HttpCall("HEAD", uri, headers, new byte[0]);
    }

    public static HttpCall form(URI uri, Map<String, String> fields) {
        StringBuilder body = new StringBuilder();
        fields.forEach((name, value) -> body.append(body.isEmpty() ? "" : "&")
                .append(encode(name, false))
                .append('=')
                .append(encode(value, false)));
        return new HttpCall(
                "POST",
                uri,
                Map.of("Content-Type", "application/x-www-form-urlencoded"),
                body.toString().getBytes(StandardCharsets.US_ASCII));
    }

    /** With a Range header, unless the range is the whole object. {@code to} is exclusive, or -1 for the end. */
    public HttpCall range(long from, long to) {
        if (from == 0 && to < 0) {
            return this;
        }
        return with("Range", "bytes=" + from + "-" + (to < 0 ? "" : String.valueOf(to - 1)));
    }

    public HttpCall with(String name, String value) {
        Map<String, String> more = new LinkedHashMap<>(headers);
        more.put(name, value);
        return new HttpCall(method, uri, more, body);
    }

    /** Whether the request has a body; such a request does not follow redirects. */
    boolean sends() {
        return method.equals("POST") || method.equals("PUT");
    }

    /** The request for the target of a redirect. Headers that may hold secrets are kept only for the same origin. */
    HttpCall redirected(URI target) {
        Map<String, String> kept = new LinkedHashMap<>(headers);
        boolean same = target.getScheme().equalsIgnoreCase(uri.getScheme())
                && target.getRawAuthority().equalsIgnoreCase(uri.getRawAuthority());
        if (!same) {
            kept.keySet().removeIf(name -> !name.startsWith("If-") && !name.equals("Range") && !name.equals("Accept"));
        }
        return new HttpCall(method, target, kept, body);
    }

    /** Percent-encodes a text for a path or query; {@code slashes} keeps slashes unencoded. */
    public static String encode(String text, boolean slashes) {
        StringBuilder encoded = new StringBuilder(text.length() + 16);
        for (byte b : text.getBytes(StandardCharsets.UTF_8)) {
            char c = (char) (b & 0xff);
            if (c >= 'A' && c <= 'Z'
                    || c >= 'a' && c <= 'z'
                    || c >= '0' && c <= '9'
                    || c == '-'
                    || c == '.'
                    || c == '_'
                    || c == '~'
                    || slashes && c == '/') {
                encoded.append(c);
            } else {
                encoded.append('%')
                        .append(Character.toUpperCase(Character.forDigit(c >> 4, 16)))
                        .append(Character.toUpperCase(Character.forDigit(c & 15, 16)));
            }
        }
        return encoded.toString();
    }

    /** The method, the URI without secrets, and the names of the headers. */
    @Override
    public String toString() {
        return method + " " + StorageUri.shown(uri.toString()) + " " + new TreeSet<>(headers.keySet());
    }
}
