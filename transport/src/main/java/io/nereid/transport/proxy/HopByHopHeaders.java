// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.proxy;

import java.util.HashSet;
import java.util.Locale;
import java.util.Set;

/**
 * The hop-by-hop headers of one message (RFC 9110, section 7.6.1), which a proxy must not forward: the well-known ones
 * and those that the {@code connection} header names. Confined to one thread.
 */
final class HopByHopHeaders {
    private static final Set<String> KNOWN = Set.of(
            "connection",
            "keep-alive",
            "te",
            "trailer",
            "transfer-encoding",
            "upgrade",
            "proxy-connection",
            // settings of an upgrade to HTTP/2
            "http2-settings",
            // gateways of scripting languages give these names and those with a hyphen to an application as the same
            "transfer_encoding",
            "content_length");

    private Set<String> named = Set.of();

    /** Adds the headers that a value of {@code connection} names. */
    void connection(String value) {
        Set<String> all = new HashSet<>(named);
        for (String name : value.split(",", -1)) {
            all.add(name.strip().toLowerCase(Locale.ROOT));
        }
        named = all;
    }

    /** Whether a header must not be forwarded. */
    boolean drops(String lowerCaseName) {
        return KNOWN.contains(lowerCaseName) || lowerCaseName.startsWith("proxy-") || named.contains(lowerCaseName);
    }
}
