// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.routing;

import io.nereid.base.access.Operation;
import io.nereid.transport.api.HttpRoute;
import org.jspecify.annotations.Nullable;

/**
 * Method and target of a request and the route found for them. Immutable, so that a connection can reuse it for the
 * next request with the same line.
 *
 * @param method the HTTP method
 * @param path the path as sent, without the path prefix of the virtual host that serves it
 * @param query the query as sent, without the question mark; null when the target has no query
 * @param match the result of the route lookup
 * @param sent the path as sent, with the prefix
 */
public record RequestLine(
        String method, String path, @Nullable String query, RouteTable.Match match, String sent) {
    /** The placeholder before the route has been looked up. */
    private static final RouteTable.Match UNKNOWN = new RouteTable.Match(404, null, new String[0], "Not Found");

    /** Splits a target into path and query; the caller looks the route up afterwards. */
    public static RequestLine of(String method, String target) {
        int mark = target.indexOf('?');
        String path = mark < 0 ? target : target.substring(0, mark);
        String query = mark < 0 ? null : target.substring(mark + 1);
        return new RequestLine(method, path, query, UNKNOWN, path);
    }

    /** What the request does; null when there is no route for it. */
    public @Nullable Operation operation() {
        HttpRoute route = match.route();
        return route == null ? null : route.operations().select(method, path);
    }

    /** The first value of a query parameter, decoded, or null. */
    public @Nullable String queryParameter(String name) {
        String q = query;
        if (q == null) {
            return null;
        }
        int from = 0;
        while (from <= q.length()) {
            int end = q.indexOf('&', from);
            if (end < 0) {
                end = q.length();
            }
            int equals = q.indexOf('=', from);
            if (equals < 0 || equals > end) {
                equals = end;
            }
            if (PercentEncoding.decode(q.substring(from, equals), true).equals(name)) {
                return equals == end ? "" : PercentEncoding.decode(q.substring(equals + 1, end), true);
            }
            from = end + 1;
        }
        return null;
    }
}
