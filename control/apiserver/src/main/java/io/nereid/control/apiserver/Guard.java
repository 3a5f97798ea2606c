// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.apiserver;

import io.nereid.transport.api.HttpExchange;
import java.util.Locale;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Keeps web pages out: whoever can name resources can start programs, and a page in the user's browser can reach this port. Requests
 * that a page's script makes carry an origin, and a page whose host name was bent to this machine names that host. Immutable.
 */
final class Guard {
    private final Set<String> hosts;

    /**
     * A guard.
     *
     * @param hosts names beside those of this machine by which it may be called, in lower case; {@code *} for any
     */
    Guard(Set<String> hosts) {
        this.hosts = hosts;
    }

    /** Why a request is refused, or null. */
    @Nullable
    String refusal(HttpExchange exchange) {
        String origin = exchange.header("origin");
        if (origin != null) {
            return "requests of web pages are refused (Origin: " + shown(origin)
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
