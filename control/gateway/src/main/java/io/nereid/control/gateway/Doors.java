// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway;

import io.nereid.control.core.Route.Door;
import io.nereid.transport.api.VirtualHosts;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/**
 * Names under which services are found: hosts, and beginnings of paths on a host or on any. Thread-safe: finding takes no lock;
 * changes are made by one thread at a time.
 */
final class Doors {
    /** What a name leads to. Immutable. */
    record Lead(ServiceEntry service, Door door) {}

    private static final class Host {
        volatile @Nullable Lead bare;
        final Map<String, Lead> prefixes = new ConcurrentHashMap<>();

        /** How long prefixes are; only ever widened. */
        volatile int shortest = Integer.MAX_VALUE;

        volatile int longest;

        @Nullable
        Lead byPath(String path) {
            int end = path.length();
            if (end < shortest) {
                return null;
            }
            if (end > longest) {
                end = path.lastIndexOf('/', longest);
            }
            while (end >= shortest && end > 0) {
                Lead found = prefixes.get(path.substring(0, end));
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

    /** The door that a request takes: its host's and path's, its host's, then its path's alone; null for none. */
    @Nullable
    Lead find(@Nullable String authority, String path) {
        if (authority != null) {
            Host host = hosts.get(host(authority));
            if (host != null) {
                Lead byPath = host.byPath(path);
                Lead found = byPath == null ? host.bare : byPath;
                if (found != null) {
                    return found;
                }
            }
        }
        return anyHost.byPath(path);
    }

    /** Whether a request may be for a service that is not known yet: a POST to a name that is none of the machine's own. */
    static boolean mayLead(VirtualHosts.Head head) {
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

    /** An authority's host in lower case, without a port and a last dot. */
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

    void add(Door door, ServiceEntry service) {
        Host host = door.host().isEmpty() ? anyHost : hosts.computeIfAbsent(host(door.host()), h -> new Host());
        Lead lead = new Lead(service, door);
        String prefix = prefix(door);
        if (prefix.isEmpty()) {
            if (host != anyHost) {
                host.bare = lead;
            }
            return;
        }
        if (prefix.length() < host.shortest) {
            host.shortest = prefix.length();
        }
        if (prefix.length() > host.longest) {
            host.longest = prefix.length();
        }
        host.prefixes.put(prefix, lead);
    }

    /** Takes a door away, if it still leads to this service. */
    void remove(Door door, ServiceEntry service) {
        Host host = door.host().isEmpty() ? anyHost : hosts.get(host(door.host()));
        if (host == null) {
            return;
        }
        String prefix = prefix(door);
        if (prefix.isEmpty()) {
            Lead lead = host.bare;
            if (lead != null && lead.service == service) {
                host.bare = null;
            }
        } else {
            host.prefixes.computeIfPresent(prefix, (p, lead) -> lead.service == service ? null : lead);
        }
        if (host != anyHost && host.bare == null && host.prefixes.isEmpty()) {
            hosts.remove(host(door.host()), host);
        }
    }

    static String prefix(Door door) {
        String prefix = door.pathPrefix();
        return prefix.endsWith("/") ? prefix.substring(0, prefix.length() - 1) : prefix;
    }
}
