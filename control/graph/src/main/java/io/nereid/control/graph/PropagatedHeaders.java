// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.graph;

import io.nereid.control.api.config.HeaderPattern;
import java.util.List;
import java.util.Set;

/**
 * Decides which headers of a client are propagated to the steps (KServe's {@code propagateHeaders}). Immutable.
 *
 * @param propagate patterns for names
 */
record PropagatedHeaders(List<HeaderPattern> propagate) {
    /** Headers that are propagated whatever the settings: they belong to the request, not to the connection. */
    private static final Set<String> ALWAYS = Set.of("traceparent", "tracestate", "baggage", "x-request-id");

    /**
     * Headers that belong to the connection, to the server's own address or to the encoding of the body: a step's call
     * has its own.
     */
    private static final Set<String> NEVER = Set.of(
            "host",
            "connection",
            "keep-alive",
            "proxy-connection",
            "te",
            "trailer",
            "transfer-encoding",
            "upgrade",
            "expect",
            "content-length",
            "content-encoding",
            "accept-encoding");

    /**
     * Whether a header is propagated.
     *
     * @param name its name in lower case
     */
    boolean includes(String name) {
        if (ALWAYS.contains(name)) {
            return true;
        }
        if (NEVER.contains(name) || name.startsWith("grpc-") || name.startsWith(":")) {
            return false;
        }
        for (HeaderPattern pattern : propagate) {
            if (pattern.matches(name)) {
                return true;
            }
        }
        return false;
    }
}
