// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.exchange;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.transport.api.HttpStatusCodes;
import io.nereid.transport.api.VirtualHosts;
import io.nereid.transport.routing.RequestLine;
import io.nereid.transport.routing.RouteTable;

/**
 * Resolves the routes of a request to a listening address: those of its virtual host, or else the address's own.
 * Immutable.
 *
 * @param own the routes of requests that no virtual host claims
 * @param hosts the virtual hosts, which take precedence; {@link VirtualHosts#NONE} for none
 */
public record VirtualHostResolver(CompiledRoutes own, VirtualHosts hosts) {
    /** Whether there are no virtual hosts. */
    public boolean alone() {
        return hosts == VirtualHosts.NONE;
    }

    /**
     * Resolves the routes of a request.
     *
     * @throws ServingException the exception of {@link VirtualHosts#find} in the form that clients may see
     */
    public CompiledRoutes find(VirtualHosts.Head head) {
        if (alone()) {
            return own;
        }
        try {
            VirtualHosts.VirtualHost found = hosts.find(head);
            if (found == null) {
                return own;
            }
            if (found instanceof CompiledRoutes site) {
                return site;
            }
            throw ServingException.of(
                    ErrorCode.INTERNAL,
                    "the site " + found.getClass().getSimpleName() + " was not made by a server's site factory");
        } catch (Throwable t) {
            throw own.server().published(t, head.method() + " " + head.path());
        }
    }

    /** The request line for a request whose virtual host could not be resolved. */
    public static RequestLine refused(RequestLine line, ServingException e) {
        return new RequestLine(
                line.method(),
                line.path(),
                line.query(),
                new RouteTable.Match(HttpStatusCodes.http(e.code()), null, new String[0], e.describe()),
                line.sent());
    }
}
