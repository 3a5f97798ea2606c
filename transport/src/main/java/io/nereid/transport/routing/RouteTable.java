// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.routing;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.transport.api.HttpRoute;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * Finds the route of a path in a tree of path segments. Precedence: literals before placeholders, a known {@code :verb}
 * suffix before a bare placeholder, and any complete route before one that ends in <code>{rest...}</code>. The search
 * goes back to the placeholder when a literal leads nowhere. Immutable once built.
 */
public final class RouteTable {
    private static final String[] NONE = {};

    private final Node root = new Node();
    /** Routes that end in <code>{rest...}</code>, longest first. */
    private final List<HttpRoute> tails = new ArrayList<>();

    /**
     * The result of a lookup. Immutable.
     *
     * @param status 200 when there is a route, else the status of the error response
     * @param route the route, if there is one
     * @param parameters the placeholders' values, decoded
     * @param text the error text when there is no route; the allowed methods for 405
     */
    public record Match(int status, @Nullable HttpRoute route, String[] parameters, String text) {
        /** The model that the path names; null when it names none. */
        public @Nullable String model() {
            int index = route == null ? -1 : route.modelParameter();
            return index < 0 ? null : parameters[index];
        }
    }

    public RouteTable(List<HttpRoute> routes) {
        for (HttpRoute route : routes) {
            add(route);
        }
    }

    private void add(HttpRoute route) {
        String template = route.template();
        if (!template.startsWith("/")) {
            throw ServingException.of(
                    ErrorCode.FAILED_PRECONDITION, "route template '" + template + "' does not start with '/'");
        }
        Node node = root;
        if (template.endsWith("/{rest...}")) {
            tails.add(route);
            tails.sort(Comparator.comparingInt((HttpRoute r) -> r.template().length())
                    .reversed());
            return;
        }
        String[] segments = template.substring(1).split("/", -1);
        for (int i = 0; i < segments.length; i++) {
            String segment = segments[i];
            int end = segment.startsWith("{") ? segment.indexOf('}') : -1;
            if (end < 0) {
                node = node.literals.computeIfAbsent(segment, s -> new Node());
            } else if (end == segment.length() - 1) {
                node = node.placeholder();
            } else if (segment.charAt(end + 1) == ':' && i == segments.length - 1) {
                node = node.verbs.computeIfAbsent(segment.substring(end + 2), s -> new Node());
            } else {
                throw ServingException.of(
                        ErrorCode.FAILED_PRECONDITION,
                        "route template '" + template + "' has text after a placeholder that is not a last ':verb'");
            }
        }
        HttpRoute before = node.routes.put(route.method(), route);
        if (before != null) {
            throw ServingException.of(
                    ErrorCode.FAILED_PRECONDITION,
                    "two routes for " + route.method() + " " + template + " (the other: " + before.template() + ")");
        }
    }

    /** The route of a verb and a raw path without query. INVALID_ARGUMENT when the path has a malformed escape. */
    public Match match(String method, String path) {
        List<String> parameters = new ArrayList<>(2);
        Node node = null;
        if (path.startsWith("/")) {
            node = find(root, path.substring(1).split("/", -1), 0, parameters);
        }
        if (node == null) {
            HttpRoute tail = tail(method, path);
            return tail == null ? new Match(404, null, NONE, "Not Found") : new Match(200, tail, NONE, "");
        }
        HttpRoute route = node.routes.get(method);
        if (route == null && method.equals("HEAD")) {
            route = node.routes.get("GET");
        }
        if (route == null) {
            HttpRoute tail = tail(method, path);
            if (tail != null) {
                return new Match(200, tail, NONE, "");
            }
            String allow = String.join(", ", node.routes.keySet());
            if (node.routes.containsKey("GET") && !node.routes.containsKey("HEAD")) {
                allow += ", HEAD";
            }
            return new Match(405, null, NONE, allow);
        }
        return new Match(200, route, parameters.toArray(NONE), "");
    }

    private @Nullable HttpRoute tail(String method, String path) {
        for (HttpRoute route : tails) {
            String template = route.template();
            int length = template.lastIndexOf('/');
            if ((route.method().equals(HttpRoute.ANY) || route.method().equals(method))
                    && path.regionMatches(0, template, 0, length)
                    && (path.length() == length || path.charAt(length) == '/')) {
                return route;
            }
        }
        return null;
    }

    private static @Nullable Node find(Node node, String[] segments, int i, List<String> parameters) {
        if (i == segments.length) {
            return node.routes.isEmpty() ? null : node;
        }
        String raw = segments[i];
        String segment = PercentEncoding.decode(raw, false);
        Node literal = node.literals.get(segment);
        if (literal != null) {
            Node found = find(literal, segments, i + 1, parameters);
            if (found != null) {
                return found;
            }
        }
        int colon = raw.lastIndexOf(':');
        if (colon > 0 && i == segments.length - 1) {
            Node verb = node.verbs.get(raw.substring(colon + 1));
            if (verb != null) {
                parameters.add(PercentEncoding.decode(raw.substring(0, colon), false));
                return verb;
            }
        }
        if (node.placeholder == null || segment.isEmpty()) {
            return null;
        }
        parameters.add(segment);
        Node found = find(node.placeholder, segments, i + 1, parameters);
        if (found == null) {
            parameters.remove(parameters.size() - 1);
        }
        return found;
    }

    private static final class Node {
        final Map<String, Node> literals = new HashMap<>();
        final Map<String, Node> verbs = new HashMap<>();
        final Map<String, HttpRoute> routes = new TreeMap<>();

        @Nullable Node placeholder;

        Node placeholder() {
            Node node = placeholder;
            if (node == null) {
                node = new Node();
                placeholder = node;
            }
            return node;
        }
    }
}
