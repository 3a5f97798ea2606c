// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.apiserver.http;

import io.nereid.transport.api.HttpExchange;
import java.util.Locale;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Rejects requests of web pages: a client that can create resources can start programs, and a page in the user's
 * browser can reach this port. Requests of a page's scripts carry an {@code Origin} header; a page that uses DNS
 * rebinding to reach this machine sends its own name in the {@code Host} header. Immutable.
 */
public final class CrossOriginFilter {
    private final Set<String> hosts;

    /**
     * Creates a filter.
     *
     * @param hosts accepted host names in lower case, in addition to the loopback names; {@code *} for any
     */
    public CrossOriginFilter(Set<String> hosts) {
        this.hosts = hosts;
    }

    /** The reason why a request is rejected; null when it is accepted. */
    public @Nullable String rejection(HttpExchange exchange) {
        String origin = exchange.header("origin");
        if (origin != null) {
            return "requests of web pages are rejected (Origin: " + shown(origin)
                    + "); use nereid, kubectl or another program that is not a browser";
        }
        String authority = exchange.header("host");
        if (authority == null) {
            authority = exchange.header(":authority");
        }
        if (authority == null || hosts.contains("*")) {
            return null;
        }
        String host = host(authority);
        if (isLoopback(host) || hosts.contains(host)) {
            return null;
        }
        return "the host '" + shown(host) + "' is not one of this server's names; call it localhost or 127.0.0.1, or"
                + " start it with this name: --control-host " + shown(host);
    }

    private static String shown(String text) {
        return text.length() <= 100 ? text : text.substring(0, 100) + "...";
    }

    static String host(String authority) {
        String host = authority.toLowerCase(Locale.ROOT);
        int colon = host.lastIndexOf(':');
        if (host.startsWith("[")) {
            int end = host.indexOf(']');
            return end < 0 ? host : host.substring(1, end);
        }
        host = colon < 0 ? host : host.substring(0, colon);
        return host.endsWith(".") ? host.substring(0, host.length() - 1) : host;
    }

    private static boolean isLoopback(String host) {
        return host.equals("localhost")
                || host.endsWith(".localhost")
                || host.equals("::1")
                || host.matches("127\\.\\d{1,3}\\.\\d{1,3}\\.\\d{1,3}");
    }
}
