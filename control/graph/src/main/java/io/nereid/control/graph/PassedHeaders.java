// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.graph;

import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.regex.Pattern;

/**
 * Which headers of a client go on to the steps. Immutable.
 *
 * @param propagate patterns for whole names, in the spelling {@code X-Request-Id} or in lower case
 */
record PassedHeaders(List<Pattern> propagate) {
    /** What is passed on whatever the settings say: it belongs to the request, not to the connection. */
    private static final Set<String> ALWAYS = Set.of("traceparent", "tracestate", "baggage", "x-request-id");

    /** What belongs to the connection, to the server's own address or to the form of the body, which a step's call has of its own. */
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

    /** Whether a header of this name, in lower case, goes on. */
    boolean passes(String name) {
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

    /** {@code X-Request-Id}. */
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
