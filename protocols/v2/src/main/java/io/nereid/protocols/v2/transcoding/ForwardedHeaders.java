// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.transcoding;

import java.util.Set;

/**
 * Selects the headers and metadata to forward with a request that is converted between REST and gRPC. Holds no state.
 */
final class ForwardedHeaders {
    /** Headers that describe the connection or the encoding of the body, which the converted request has of its own. */
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

    private ForwardedHeaders() {}

    /**
     * Whether to forward a header.
     *
     * @param name its name in lower case
     */
    static boolean passes(String name) {
        return !OWN.contains(name) && !name.startsWith("grpc-") && !name.startsWith(":") && !name.endsWith("-bin");
    }
}
