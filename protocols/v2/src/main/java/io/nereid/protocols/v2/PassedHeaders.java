// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2;

import java.util.Set;

/** Which headers and metadata go along when a request is asked in another form than its own. Holds nothing. */
final class PassedHeaders {
    /** What is about the request's connection or the form of its body. */
    private static final Set<String> OWN = Set.of(
            "host",
            "connection",
            "te",
            "trailer",
            "transfer-encoding",
            "upgrade",
            "keep-alive",
            "expect",
            "accept",
            "accept-encoding",
            "content-type",
            "content-length",
            "content-encoding");

    private PassedHeaders() {}

    /** @param name in lower case */
    static boolean passes(String name) {
        return !OWN.contains(name) && !name.startsWith("grpc-") && !name.startsWith(":") && !name.endsWith("-bin");
    }
}
