// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.transport.api.HttpStatusCodes;
import io.nereid.transport.api.VirtualHosts;

/**
 * What one listening address serves: routes of its own, and where somebody is to be asked, those of other sites.
 * Immutable.
 *
 * @param own the site of requests that nobody else claims
 * @param hosts who is asked first; {@link VirtualHosts#NONE} when nobody is
 */
record Sites(RouteSite own, VirtualHosts hosts) {
    /** Whether nobody is asked. */
    boolean alone() {
        return hosts == VirtualHosts.NONE;
    }

    /**
     * The site of a request.
     *
     * @throws ServingException what {@link VirtualHosts#find} threw, in the form that clients may see
     */
    RouteSite find(VirtualHosts.Head head) {
        if (alone()) {
            return own;
        }
        try {
            VirtualHosts.Site found = hosts.find(head);
            if (found == null) {
                return own;
            }
            if (found instanceof RouteSite site) {
                return site;
            }
            throw ServingException.of(
                    ErrorCode.INTERNAL,
                    "the site " + found.getClass().getSimpleName() + " was not made by a server's site factory");
        } catch (Throwable t) {
            throw own.server().published(t, head.method() + " " + head.path());
        }
    }

    /** The line of a request for which no site was found. */
    static RequestLine refused(RequestLine line, ServingException e) {
        return new RequestLine(
                line.method(),
                line.path(),
                line.query(),
                new RouteTable.Match(HttpStatusCodes.http(e.code()), null, new String[0], e.describe()),
                line.sent());
    }
}
