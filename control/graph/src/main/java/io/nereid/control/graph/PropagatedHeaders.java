// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.graph;

import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.regex.Pattern;

/**
 * Decides which headers of a client are propagated to the steps (KServe's {@code propagateHeaders}). Immutable.
 *
 * @param propagate patterns for whole names, in the form {@code X-Request-Id} or in lower case
 */
record PropagatedHeaders(List<Pattern> propagate) {
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
        for (Pattern pattern : propagate) {
            if (pattern.matcher(canonical(name)).matches()
                    || pattern.matcher(name).matches()) {
                return true;
            }
        }
        return false;
    }

    /** The name in Go's canonical form, {@code X-Request-Id}, which KServe's patterns are written for. */
    private static String canonical(String name) {
        StringBuilder b = new StringBuilder(name.length());
        for (String word : name.split("-", -1)) {
            if (!b.isEmpty()) {
                b.append('-');
            }
            b.append(word.isEmpty() ? "" : word.substring(0, 1).toUpperCase(Locale.ROOT) + word.substring(1));
        }
        return b.toString();
    }
}
