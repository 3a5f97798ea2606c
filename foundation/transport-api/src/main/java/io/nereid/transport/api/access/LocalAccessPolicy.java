// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.api.access;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.access.Caller;
import io.nereid.base.access.Operation;
import io.nereid.base.access.Permission;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.util.Locale;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * The policy of a server without credentials. What changes nothing is open to everyone. What changes or runs something
 * ({@link Permission#guarded}) is open to the users of this machine only, which is known only if all of this holds:
 *
 * <ul>
 *   <li>every address that the server listens on is a loopback address, and the client's end is one, too; or the client
 *       came through a Unix domain socket, whose file's mode decides;
 *   <li>no proxy has passed the request on ({@code Forwarded}, {@code X-Forwarded-*}, {@code Via}): behind a proxy or a
 *       sidecar every client has a loopback address;
 *   <li>the {@code Host} is a name of the loopback interface, and the {@code Origin}, if any, is the server's own: a web
 *       page in a browser on this machine can send requests, too, and can make its own name resolve to this machine.
 * </ul>
 *
 * <p>Immutable.
 */
public final class LocalAccessPolicy implements AccessPolicy {
    private static final Set<String> PROXY_HEADERS = Set.of("forwarded", "via", "x-real-ip", "x-client-ip");

    private final boolean openManagement;
    private final Set<String> hosts;

    /**
     * Creates a policy.
     *
     * @param openManagement whether everything is open to everyone
     * @param hosts names in lower case, beyond those of the loopback interface, by which local clients call the server
     */
    public LocalAccessPolicy(boolean openManagement, Set<String> hosts) {
        this.openManagement = openManagement;
        this.hosts = Set.copyOf(hosts);
    }

    @Override
    public Caller admit(RequestHead head, ClientConnection connection, Operation operation, @Nullable String model) {
        Permission permission = operation.permission();
        if (openManagement) {
            return Caller.LOCAL;
        }
        // operations that may turn into a change once the message is known need the full answer, too
        boolean local = (permission.guarded() || permission == Permission.OBSERVE) && refusal(head, connection) == null;
        if (local) {
            return Caller.LOCAL;
        }
        if (permission.guarded()) {
            throw ServingException.of(
                    ErrorCode.PERMISSION_DENIED,
                    "'" + permission.configName() + "' is closed: " + refusal(head, connection),
                    "start the server with --api-keys or --access-config and send credentials, or with"
                            + " --open-management to open it to everyone who reaches the port");
        }
        return Caller.ANONYMOUS;
    }

    /** Why the caller is not taken for a user of this machine; null when it is. */
    public @Nullable String refusal(RequestHead head, ClientConnection connection) {
        @Nullable String[] proxy = {null};
        head.headers((name, value) -> {
            if (name.startsWith("x-forwarded-") || name.startsWith("x-envoy-") || PROXY_HEADERS.contains(name)) {
                proxy[0] = name;
            }
        });
        if (proxy[0] != null) {
            return "the request came through a proxy (header " + shown(proxy[0]) + ")";
        }
        String origin = head.header("origin");
        String authority = head.authority();
        if (connection.unixSocket()) {
            return origin == null ? null : "the request came from a web page (header origin)";
        }
        if (!connection.serverIsLocal()) {
            return "the server listens on an address that other machines can reach";
        }
        if (!isLoopback(connection.remote())) {
            return "the client is not on this machine";
        }
        String host = authority == null ? null : hostOf(authority);
        if (host != null && !isLoopbackName(host) && !hosts.contains(host)) {
            return "the host '" + shown(host) + "' is not a name of this machine's loopback interface";
        }
        if (origin != null) {
            String own = (connection.secure() ? "https://" : "http://") + authority;
            if (!origin.toLowerCase(Locale.ROOT).equals(own)) {
                return "the request came from a web page of another origin, '" + shown(origin) + "'";
            }
        }
        return null;
    }

    private static boolean isLoopback(SocketAddress address) {
        return address instanceof InetSocketAddress inet
                && inet.getAddress() != null
                && inet.getAddress().isLoopbackAddress();
    }

    private static String shown(String text) {
        return text.length() <= 100 ? text : text.substring(0, 100) + "…";
    }

    /** The host of an authority in lower case, without port, brackets and the final dot. */
    static String hostOf(String authority) {
        String host = authority.toLowerCase(Locale.ROOT);
        if (host.startsWith("[")) {
            int end = host.indexOf(']');
            return end < 0 ? host : host.substring(1, end);
        }
        int colon = host.lastIndexOf(':');
        host = colon < 0 ? host : host.substring(0, colon);
        return host.endsWith(".") ? host.substring(0, host.length() - 1) : host;
    }

    private static boolean isLoopbackName(String host) {
        return host.equals("localhost")
                || host.endsWith(".localhost")
                || host.equals("::1")
                || host.matches("127\\.\\d{1,3}\\.\\d{1,3}\\.\\d{1,3}");
    }
}
