// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway;

import io.nereid.control.core.Route.IngressRule;
import io.nereid.transport.api.VirtualHosts;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/**
 * Finds a service by host and path prefix: by a host, by a prefix on a host, or by a prefix on any host. Thread-safe:
 * lookups take no lock; one thread at a time makes changes.
 */
final class HostPathTable {
    /** A table entry: the service, and the host and path that lead to it. Immutable. */
    record Entry(ServiceRoute service, IngressRule rule) {}

    private static final class Host {
        volatile @Nullable Entry bare;
        final Map<String, Entry> prefixes = new ConcurrentHashMap<>();

        /** The range of the prefixes' lengths, which bounds the lookups. It only grows. */
        volatile int shortest = Integer.MAX_VALUE;

        volatile int longest;

        /** The entry with the longest prefix that ends at a slash or at the end of the path. */
        @Nullable Entry byPath(String path) {
            int end = path.length();
            if (end < shortest) {
                return null;
            }
            if (end > longest) {
                end = path.lastIndexOf('/', longest);
            }
            while (end >= shortest && end > 0) {
                Entry found = prefixes.get(path.substring(0, end));
                if (found != null) {
                    return found;
                }
                end = path.lastIndexOf('/', end - 1);
            }
            return null;
        }
    }

    private final Map<String, Host> hosts = new ConcurrentHashMap<>();
    private final Host anyHost = new Host();

    /** Finds the entry for a request: first by host and path, then by host, then by path alone; null for none. */
    @Nullable Entry find(@Nullable String authority, String path) {
        if (authority != null) {
            Host host = hosts.get(host(authority));
            if (host != null) {
                Entry byPath = host.byPath(path);
                Entry found = byPath == null ? host.bare : byPath;
                if (found != null) {
                    return found;
                }
            }
        }
        return anyHost.byPath(path);
    }

    /**
     * Whether a request may be for a service that is not known yet: a POST to a name that is not one of this machine's
     * own names.
     */
    static boolean mayBeForService(VirtualHosts.Head head) {
        if (!head.method().equals("POST")) {
            return false;
        }
        String authority = head.authority();
        String host = authority == null ? "" : host(authority);
        boolean named = !host.isEmpty()
                && !host.equals("localhost")
                && !host.startsWith("[")
                && !Character.isDigit(host.charAt(host.length() - 1));
        return named || head.path().startsWith("/serving/");
    }

    /** The host of an authority in lower case, without its port and a trailing dot. */
    static String host(String authority) {
        int end = authority.length();
        if (authority.startsWith("[")) {
            int bracket = authority.indexOf(']');
            end = bracket < 0 ? end : bracket + 1;
        } else {
            int colon = authority.indexOf(':');
            end = colon < 0 ? end : colon;
        }
        if (end > 0 && authority.charAt(end - 1) == '.') {
            end--;
        }
        return authority.substring(0, end).toLowerCase(Locale.ROOT);
    }

    void add(IngressRule rule, ServiceRoute service) {
        Host host = rule.host().isEmpty() ? anyHost : hosts.computeIfAbsent(host(rule.host()), h -> new Host());
        Entry entry = new Entry(service, rule);
        String prefix = prefix(rule);
        if (prefix.isEmpty()) {
            if (host != anyHost) {
                host.bare = entry;
            }
            return;
        }
        if (prefix.length() < host.shortest) {
            host.shortest = prefix.length();
        }
        if (prefix.length() > host.longest) {
            host.longest = prefix.length();
        }
        host.prefixes.put(prefix, entry);
    }

    /** Removes an entry, unless it leads to another service by now. */
    void remove(IngressRule rule, ServiceRoute service) {
        Host host = rule.host().isEmpty() ? anyHost : hosts.get(host(rule.host()));
        if (host == null) {
            return;
        }
        String prefix = prefix(rule);
        if (prefix.isEmpty()) {
            Entry entry = host.bare;
            if (entry != null && entry.service == service) {
                host.bare = null;
            }
        } else {
            host.prefixes.computeIfPresent(prefix, (p, entry) -> entry.service == service ? null : entry);
        }
        if (host != anyHost && host.bare == null && host.prefixes.isEmpty()) {
            hosts.remove(host(rule.host()), host);
        }
    }

    static String prefix(IngressRule rule) {
        String prefix = rule.pathPrefix();
        return prefix.endsWith("/") ? prefix.substring(0, prefix.length() - 1) : prefix;
    }
}
