// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport;

import org.jspecify.annotations.Nullable;

/**
 * The verb and the target of a request and the route they lead to. Immutable, so that it can be kept for the next
 * request with the same line.
 *
 * @param method the verb
 * @param path the path as sent, but for the prefix of the site that serves it
 * @param query the query as sent, without the question mark; null when there is none
 * @param match the route
 * @param sent the path as sent
 */
record RequestLine(String method, String path, @Nullable String query, RouteTable.Match match, String sent) {
    /** What is known of the route before anybody has looked for it. */
    private static final RouteTable.Match UNKNOWN = new RouteTable.Match(404, null, new String[0], "Not Found");

    /** Splits a target into path and query; the route is for a {@link RouteSite} to find. */
    static RequestLine of(String method, String target) {
        int mark = target.indexOf('?');
        String path = mark < 0 ? target : target.substring(0, mark);
        String query = mark < 0 ? null : target.substring(mark + 1);
        return new RequestLine(method, path, query, UNKNOWN, path);
    }

    /** The first value of a query parameter, decoded, or null. */
    @Nullable String queryParameter(String name) {
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
            if (PercentCoding.decode(q.substring(from, equals), true).equals(name)) {
                return equals == end ? "" : PercentCoding.decode(q.substring(equals + 1, end), true);
            }
            from = end + 1;
        }
        return null;
    }
}
