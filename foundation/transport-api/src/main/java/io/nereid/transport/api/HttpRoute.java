// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.api;

import io.nereid.base.ServingException;
import io.nereid.base.access.OperationSelector;

/**
 * An HTTP route. Immutable.
 *
 * @param method the HTTP method in capitals, or {@link #ANY} for every method, which requires a {@code {rest...}}
 *     segment
 * @param template a path whose segments are literals or {@code {name}} placeholders; a placeholder at the end may be
 *     followed by {@code :literal}, as in {@code /v1/models/{model}:predict}. A placeholder matches one non-empty
 *     segment up to the {@code :}, percent-decoded; literal segments take precedence over placeholders. A last segment
 *     {@code {rest...}} after literals matches every path with that prefix, including the bare prefix, when no other
 *     route matches path and method. It is not a parameter; {@link HttpExchange#path} returns the requested path
 * @param operations what the requests do, and so the permission that they need; an
 *     {@link io.nereid.base.access.Operation} where that is the same for all. The transport checks it before it reads a body
 * @param handler handles the requests, on an event loop
 */
public record HttpRoute(String method, String template, OperationSelector operations, HttpHandler handler) {
    /** The method of a route that matches every HTTP method. */
    public static final String ANY = "*";

    /** Handles the requests of a route. Called on the event loop of the connection; must not block. */
    @FunctionalInterface
    public interface HttpHandler {
        /**
         * Handles one exchange; the reply may be sent now or later. An exception is answered with the transport's own
         * mapping ({@code {"error": …}} and {@link HttpStatusCodes#http}).
         */
        void handle(HttpExchange exchange);

        /** The reply to a request that access was denied to, in the form of the protocol. */
        default HttpReply denied(ServingException e) {
            return HttpReply.error(e);
        }
    }

    /** A GET route. */
    public static HttpRoute get(String template, OperationSelector operations, HttpHandler handler) {
        return new HttpRoute("GET", template, operations, handler);
    }

    /** A POST route. */
    public static HttpRoute post(String template, OperationSelector operations, HttpHandler handler) {
        return new HttpRoute("POST", template, operations, handler);
    }

    /** The index of the placeholder {@code {model}} among the placeholders of the template; -1 without one. */
    public int modelParameter() {
        int index = 0;
        for (int at = template.indexOf('{'); at >= 0; at = template.indexOf('{', at + 1)) {
            if (template.startsWith("{model}", at)) {
                return index;
            }
            index++;
        }
        return -1;
    }
}
