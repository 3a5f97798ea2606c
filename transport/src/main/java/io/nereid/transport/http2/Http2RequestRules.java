// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.http2;

import io.nereid.transport.codec.FieldSyntax;
import io.netty.handler.codec.http2.Http2Headers;
import io.netty.util.AsciiString;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Decides whether the fields of a request over HTTP/2 are malformed (RFC 9113, sections 8.2 and 8.3). Netty's decoder
 * has checked the names, the order of the pseudo-headers, the fields of connections and {@code content-length}; it does
 * not check values, nor what makes up a request. Holds no mutable state.
 */
final class Http2RequestRules {
    private static final AsciiString HOST = AsciiString.cached("host");
    private static final AsciiString PROTOCOL = AsciiString.cached(":protocol");
    private static final AsciiString OPTIONS = AsciiString.cached("OPTIONS");
    private static final AsciiString CONNECT = AsciiString.cached("CONNECT");

    private Http2RequestRules() {}

    /** What is wrong with the fields of a request; null for well-formed ones. */
    static @Nullable String malformedRequest(Http2Headers headers) {
        CharSequence method = headers.method();
        CharSequence path = headers.path();
        CharSequence scheme = headers.scheme();
        CharSequence authority = headers.authority();
        if (method == null || !FieldSyntax.isToken(method)) {
            return ":method is not a token";
        }
        if (CONNECT.contentEquals(method) || headers.contains(PROTOCOL)) {
            return "CONNECT is not supported";
        }
        if (scheme == null || !FieldSyntax.isScheme(scheme)) {
            return ":scheme is not a scheme";
        }
        if (path == null
                || !FieldSyntax.isTarget(path)
                        && !(path.length() == 1 && path.charAt(0) == '*' && OPTIONS.contentEquals(method))) {
            return ":path does not begin with a slash, or has characters that must be escaped";
        }
        if (authority != null && !FieldSyntax.isHost(authority)) {
            return ":authority is not a host";
        }
        CharSequence host = null;
        for (Map.Entry<CharSequence, CharSequence> field : headers) {
            CharSequence name = field.getKey();
            CharSequence value = field.getValue();
            if (name.length() == 4 && HOST.contentEquals(name)) {
                if (host != null || !FieldSyntax.isHost(value)) {
                    return "host is repeated or not a host";
                }
                host = value;
            } else if (!FieldSyntax.isValue(value)) {
                return "the value of a field has a control character, or white space at an end";
            }
        }
        if (host != null && authority != null && !sameHost(host, authority, scheme)) {
            return "host differs from :authority";
        }
        return null;
    }

    /** What is wrong with the fields of trailers; null for well-formed ones. */
    static @Nullable String malformedTrailers(Http2Headers headers) {
        for (Map.Entry<CharSequence, CharSequence> field : headers) {
            if (!FieldSyntax.isValue(field.getValue())) {
                return "the value of a trailer has a control character, or white space at an end";
            }
        }
        return null;
    }

    /** Whether two hosts are the same, regardless of case and of the scheme's port. */
    private static boolean sameHost(CharSequence a, CharSequence b, CharSequence scheme) {
        if (AsciiString.contentEqualsIgnoreCase(a, b)) {
            return true;
        }
        String port = AsciiString.contentEqualsIgnoreCase(scheme, "https") ? ":443" : ":80";
        return AsciiString.contentEqualsIgnoreCase(withoutPort(a, port), withoutPort(b, port));
    }

    private static CharSequence withoutPort(CharSequence host, String port) {
        int at = host.length() - port.length();
        return at >= 0 && port.contentEquals(host.subSequence(at, host.length())) ? host.subSequence(0, at) : host;
    }
}
